package hogql

// Rewriter makes new trees from old ones. Each of its functions takes a node and gives the node to put in its place,
// itself to leave it; a nil function leaves all nodes of its family. No node that it is given is ever changed: a node
// is copied when something below it was replaced, and whole branches without a change are shared.
//
// There are two ways to use it. RewriteExpr and RewriteQuery go through the whole tree, children first.
// A stage that must see a node before its children (to open a scope, say) calls ExprChildren, QueryChildren and
// TableChildren, which put only the direct children of one node through the functions and leave the descent to them.
//
// Children are visited in the order of the text, with two exceptions: in a Select, WITH comes first, then FROM and ARRAY
// JOIN, then the columns; the later clauses follow in their order. The aliases in ARRAY JOIN and REPLACE stay; only
// their expressions are visited.
type Rewriter struct {
	Expr  func(Expr) Expr
	Query func(Query) Query
	Table func(Table) Table

	// Exactly one of these is set in the rewriters that go through a whole tree by themselves: in fields rather than in
	// functions, since a walk begins often, and three functions that know each other are four allocations.
	below   *Rewriter // whose functions are applied on the way up
	visitor *Visitor  // that is shown each node on the way down
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

// RewriteExpr puts every expression below e through f, children first, those in subqueries included.
func RewriteExpr(e Expr, f func(Expr) Expr) Expr {
	r := Rewriter{Expr: f}
	return r.RewriteExpr(e)
}

// RewriteQuery puts every expression of q through f, children first, those in subqueries included.
func RewriteQuery(q Query, f func(Expr) Expr) Query {
	r := Rewriter{Expr: f}
	return r.RewriteQuery(q)
}

// Visitor looks at the nodes of a tree, parents first. A function that returns false keeps the walk out of what lies
// below its node; a nil function lets it in.
type Visitor struct {
	Expr  func(Expr) bool
	Query func(Query) bool
	Table func(Table) bool
}

// WalkExpr visits e and all that lies below it. A nil e is not visited.
func (v *Visitor) WalkExpr(e Expr) {
	r := Rewriter{visitor: v}
	r.expr(e)
}

// WalkQuery visits q and all that lies below it. A nil q is not visited.
func (v *Visitor) WalkQuery(q Query) {
	r := Rewriter{visitor: v}
	r.query(q)
}

// WalkExpr shows f every expression at and below e, parents first, those in subqueries included; f returns false to keep
// out of what lies below.
func WalkExpr(e Expr, f func(Expr) bool) {
	v := Visitor{Expr: f}
	v.WalkExpr(e)
}

// WalkQuery shows f every expression of q, parents first, those in subqueries included; f returns false to keep out of
// what lies below.
func WalkQuery(q Query, f func(Expr) bool) {
	v := Visitor{Expr: f}
	v.WalkQuery(q)
}

// expr, query and table put one node, which may be nil, through what the rewriter does with its family.
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

// Conjuncts gives the conditions that all hold when a condition holds: those that it joins by AND, at any depth, or itself; none for nil.
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
