package hogql

// Rewriter makes new trees from old ones. Each of its functions takes a node and gives the node to put in its place,
// itself for «leave it»; a nil function leaves all nodes of its family. No node that it is given is ever changed: a node
// is copied when something below it was replaced, and whole branches without a change are shared.
//
// There are two ways to use it. RewriteExpr, RewriteQuery and RewriteTable go through the whole tree, children first.
// A stage that must see a node before its children (to open a scope, say) calls ExprChildren, QueryChildren and
// TableChildren, which put only the direct children of one node through the functions and leave the descent to them.
//
// Children are visited in the order of the text, with two exceptions: in a Select, WITH comes first, then FROM and ARRAY
// JOIN, then the columns; the clauses behind follow in their order. The aliases in ARRAY JOIN and REPLACE stay; only
// their expressions are visited.
type Rewriter struct {
	Expr  func(Expr) Expr
	Query func(Query) Query
	Table func(Table) Table
}

// RewriteExpr rewrites e, children first. A nil e stays nil.
func (r *Rewriter) RewriteExpr(e Expr) Expr {
	if e == nil {
		return nil
	}
	d := r.descending()
	return d.Expr(e)
}

// RewriteQuery rewrites q, children first. A nil q stays nil.
func (r *Rewriter) RewriteQuery(q Query) Query {
	if q == nil {
		return nil
	}
	d := r.descending()
	return d.Query(q)
}

// RewriteTable rewrites t, children first. A nil t stays nil.
func (r *Rewriter) RewriteTable(t Table) Table {
	if t == nil {
		return nil
	}
	d := r.descending()
	return d.Table(t)
}

// descending gives the rewriter whose functions go down before they apply those of r.
func (r *Rewriter) descending() *Rewriter {
	d := new(Rewriter)
	d.Expr = func(e Expr) Expr { return r.expr(d.ExprChildren(e)) }
	d.Query = func(q Query) Query { return r.query(d.QueryChildren(q)) }
	d.Table = func(t Table) Table { return r.table(d.TableChildren(t)) }
	return d
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

// WalkExpr visits e and all that lies below it. A nil e is no visit.
func (v *Visitor) WalkExpr(e Expr) {
	if e != nil {
		v.rewriter().Expr(e)
	}
}

// WalkQuery visits q and all that lies below it. A nil q is no visit.
func (v *Visitor) WalkQuery(q Query) {
	if q != nil {
		v.rewriter().Query(q)
	}
}

// WalkTable visits t and all that lies below it. A nil t is no visit.
func (v *Visitor) WalkTable(t Table) {
	if t != nil {
		v.rewriter().Table(t)
	}
}

// rewriter gives the rewriter that replaces nothing and shows v each node on its way.
func (v *Visitor) rewriter() *Rewriter {
	r := new(Rewriter)
	r.Expr = func(e Expr) Expr {
		if v.Expr == nil || v.Expr(e) {
			r.ExprChildren(e)
		}
		return e
	}
	r.Query = func(q Query) Query {
		if v.Query == nil || v.Query(q) {
			r.QueryChildren(q)
		}
		return q
	}
	r.Table = func(t Table) Table {
		if v.Table == nil || v.Table(t) {
			r.TableChildren(t)
		}
		return t
	}
	return r
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

// expr, query and table apply the function of their family, if there is one, to what may be nil.
func (r *Rewriter) expr(e Expr) Expr {
	if e == nil || r.Expr == nil {
		return e
	}
	return r.Expr(e)
}

func (r *Rewriter) query(q Query) Query {
	if q == nil || r.Query == nil {
		return q
	}
	return r.Query(q)
}

func (r *Rewriter) table(t Table) Table {
	if t == nil || r.Table == nil {
		return t
	}
	return r.Table(t)
}
