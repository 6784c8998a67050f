package hogql

// Rewriter makes new trees from old ones. Each of its functions takes a node and returns its replacement, or the node itself to keep it; a nil
// function keeps all nodes of its family. Nodes are never modified: a node is copied if something below it was replaced, and unchanged
// branches are shared.
//
// There are two ways to use it. RewriteExpr and RewriteQuery walk the whole tree, children first. A stage that must see a node before its
// children (to open a scope, say) calls ExprChildren, QueryChildren and TableChildren, which apply the functions only to the direct children
// of one node and leave the descent to them.
//
// Children are visited in text order, except that in a Select, WITH comes first, then FROM and ARRAY JOIN, then the columns; the later clauses
// follow in order. The aliases in ARRAY JOIN and REPLACE are kept; only their expressions are visited.
type Rewriter struct {
	Expr  func(Expr) Expr
	Query func(Query) Query
	Table func(Table) Table

	// Exactly one of these is set in rewriters that walk a whole tree themselves. They are fields and not functions, because walks are started
	// often, and three functions that refer to each other are four allocations.
	below   *Rewriter // its functions are applied on the way up
	visitor *Visitor  // it is shown each node on the way down
}

// RewriteExpr rewrites e, children first. A nil e stays nil.
func (r *Rewriter) RewriteExpr(e Expr) Expr {
	d := Rewriter{below: r}
	return d.expr(e)
}

// RewriteQuery rewrites q, children first. A nil q stays nil.
func (r *Rewriter) RewriteQuery(q Query) Query {
	d := Rewriter{below: r}
	return d.query(q)
}

// RewriteExpr applies f to every expression at and below e, including those in subqueries, children first.
func RewriteExpr(e Expr, f func(Expr) Expr) Expr {
	r := Rewriter{Expr: f}
	return r.RewriteExpr(e)
}

// Visitor visits the nodes of a tree, parents first. If a function returns false, the walk skips everything below the node; a nil function
// skips nothing.
type Visitor struct {
	Expr  func(Expr) bool
	Query func(Query) bool
	Table func(Table) bool
}

// WalkExpr visits e and everything below it. A nil e is not visited.
func (v *Visitor) WalkExpr(e Expr) {
	r := Rewriter{visitor: v}
	r.expr(e)
}

// WalkQuery visits q and everything below it. A nil q is not visited.
func (v *Visitor) WalkQuery(q Query) {
	r := Rewriter{visitor: v}
	r.query(q)
}

// WalkExpr calls f for every expression at and below e, including those in subqueries, parents first; f returns false to skip what is below.
func WalkExpr(e Expr, f func(Expr) bool) {
	v := Visitor{Expr: f}
	v.WalkExpr(e)
}

// WalkQuery calls f for every expression of q, including those in subqueries, parents first; f returns false to skip what is below.
func WalkQuery(q Query, f func(Expr) bool) {
	v := Visitor{Expr: f}
	v.WalkQuery(q)
}

// expr, query and table apply the rewriter to one node of its family, which may be nil.
func (r *Rewriter) expr(e Expr) Expr {
	switch {
	case e == nil:
	case r.below != nil:
		return r.below.expr(r.ExprChildren(e))
	case r.visitor != nil:
		if r.visitor.Expr == nil || r.visitor.Expr(e) {
			r.ExprChildren(e)
		}
	case r.Expr != nil:
		return r.Expr(e)
	}
	return e
}

func (r *Rewriter) query(q Query) Query {
	switch {
	case q == nil:
	case r.below != nil:
		return r.below.query(r.QueryChildren(q))
	case r.visitor != nil:
		if r.visitor.Query == nil || r.visitor.Query(q) {
			r.QueryChildren(q)
		}
	case r.Query != nil:
		return r.Query(q)
	}
	return q
}

func (r *Rewriter) table(t Table) Table {
	switch {
	case t == nil:
	case r.below != nil:
		return r.below.table(r.TableChildren(t))
	case r.visitor != nil:
		if r.visitor.Table == nil || r.visitor.Table(t) {
			r.TableChildren(t)
		}
	case r.Table != nil:
		return r.Table(t)
	}
	return t
}

// Conjuncts returns the conditions that a condition joins by AND, at any depth, or the condition itself; none for nil.
func Conjuncts(e Expr) []Expr {
	l, ok := e.(*Logic)
	switch {
	case e == nil:
		return nil
	case !ok || l.Or:
		return []Expr{e}
	}
	var out []Expr
	for _, arg := range l.Args {
		out = append(out, Conjuncts(arg)...)
	}
	return out
}
