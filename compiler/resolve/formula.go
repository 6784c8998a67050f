package resolve

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// grouped is the table whose rows a table of groups is made of, as its SELECT sees it.
type grouped struct {
	*tableSource
	scope *scope // of the SELECT that groups
}

// grouping makes rows of a table of groups: the SELECT that groups the rows of the other table.
func (t *tableSource) grouping() *resolved.Select {
	g := t.table.Grouping
	t.r.reads.Beyond = true
	tree := &resolved.Select{}
	t.rows = t.r.grow(tree)
	s := t.r.apart(tree, &t.rows.names)
	table, ok := t.r.db.Table(g.Table)
	if !ok {
		panic("BUG: groups of an unknown table " + g.Table)
	}
	src := s.newTable(table, g.Table)
	src.untyped = true
	s.sources = []source{src}
	tree.From = src.from(nil)
	t.of = &grouped{src, s}
	tree.GroupBy = &resolved.GroupBy{Keys: []resolved.Expr{src.rowField(g.Key)}}
	tree.Where = s.condition(g.Where(t.r.db))
	return tree
}

// apart returns a scope for a SELECT that no query has written.
func (r *resolver) apart(tree *resolved.Select, taken *names) *scope {
	s := &scope{r: r, tree: tree, names: taken}
	s.frame = &s.aliases
	return s
}

// formula resolves a formula in a SELECT of the resolver's own. Names that the formula defines are its own.
func (s *scope) formula(f *schema.Formula) resolved.Expr {
	e := f.Expr(s.r.db)
	s.aliases.byName = few[*alias]{}
	s.aliasVisitor(&s.aliases).WalkExpr(e)
	return s.expr(e)
}

// ofGroup turns a field over the rows of a group into a column of rows.
func (t *tableSource) ofGroup(f *schema.Field) *resolved.Column {
	return t.rows.column(f.Key(), f.Name, t.alias, func() resolved.Expr { return t.of.scope.formula(f.Formula) })
}

// computed returns the value of a field that has a formula.
//
// A formula over the fields of the table itself is a column of whole, where it is computed once, whatever the clauses are that
// use it; another formula there refers to it by its name.
func (t *tableSource) computed(f *schema.Field) resolved.Expr {
	if f.Formula.OfGroup {
		return t.outside(f.Key(), t.ofGroup(f))
	}
	if t.whole == nil {
		t.stack()
	}
	c := t.whole.column(f.Key()+"\x00computed", f.Name, t.alias, func() resolved.Expr {
		outer := t.inside
		t.inside = true
		defer func() { t.inside = outer }()
		s := t.r.apart(t.whole.tree, &t.whole.names)
		s.sources = []source{t}
		return s.formula(f.Formula)
	})
	if t.inside {
		return &resolved.AliasRef{Name: c.Name, Type: c.Type}
	}
	return t.upwards(f.Key()+"\x00computed", c)
}
