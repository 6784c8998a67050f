package resolve

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// grouped is the table whose rows a table of groups is built from, as seen by its SELECT.
type grouped struct {
	*tableSource
	scope *scope // of the grouping SELECT
}

// grouping builds the rows of a table of groups: the SELECT that groups the rows of the other table.
func (t *tableSource) grouping() *resolved.Select {
	g := t.table.Grouping
	t.r.reads.Beyond = true
	tree := &resolved.Select{}
	t.rows = t.r.newGrowingSelect(tree)
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

// apart returns a scope for a SELECT that is not part of the query's text.
func (r *resolver) apart(tree *resolved.Select, taken *names) *scope {
	s := &scope{r: r, tree: tree, names: taken}
	s.frame = &s.aliases
	return s
}

// formula resolves a formula in a SELECT built by the resolver. Names defined by the formula are local to it.
func (s *scope) formula(f *schema.Formula) resolved.Expr {
	e := f.Expr(s.r.db)
	s.aliases.byName = smallMap[*alias]{}
	s.aliasVisitor(&s.aliases).WalkExpr(e)
	return s.expr(e)
}

// ofGroup makes a field over the rows of a group a column of rows.
func (t *tableSource) ofGroup(f *schema.Field) *resolved.Column {
	return t.rows.column(f.Key(), f.Name, t.alias, func() resolved.Expr { return t.of.scope.formula(f.Formula) })
}

// computed returns the value of a field with a formula.
//
// A formula over fields of the table itself becomes a column of whole, where it is computed once for all clauses that use it. Other formulas
// there refer to it by name.
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
	return t.liftColumn(f.Key()+"\x00computed", c)
}
