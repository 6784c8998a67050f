package resolve

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// grouped is the table whose rows a table of groups is made of, as its SELECT sees it.
type grouped struct {
	*tableSource
	scope *scope // of the SELECT that groups
}

// grouping makes rows of a table of groups: the SELECT that groups the rows of the other table.
func (t *tableSource) grouping() *hogql.Select {
	g := t.table.Grouping
	core := &hogql.Select{}
	t.rows = t.r.grow(core)
	s := t.r.apart(core, t.rows.names)
	table, ok := t.r.db.Table(g.Table)
	if !ok {
		panic("BUG: groups of an unknown table " + g.Table)
	}
	src := s.newTable(table, g.Table)
	src.untyped = true
	s.sources = []source{src}
	core.From = src.from(nil)
	t.of = &grouped{src, s}
	core.GroupBy = &hogql.GroupBy{Keys: []hogql.Expr{src.rowField(g.Key)}}
	core.Where = s.condition(g.Where(t.r.db))
	return core
}

// apart makes a scope for a SELECT that no query has written.
func (r *resolver) apart(core *hogql.Select, taken *names) *scope {
	s := &scope{r: r, core: core, names: taken}
	s.aliases.byName = map[string]*alias{}
	s.frame = &s.aliases
	return s
}

// formula resolves a formula in a SELECT of the resolver's own. Names that the formula defines are its own.
func (s *scope) formula(f *schema.Formula) hogql.Expr {
	e := f.Expr(s.r.db)
	s.aliases.byName = map[string]*alias{}
	s.aliasVisitor(&s.aliases).WalkExpr(e)
	return s.expr(e)
}

// ofGroup makes a field over the rows of a group into a column of rows.
func (t *tableSource) ofGroup(f *schema.Field) *hogql.Column {
	return t.rows.column(f.Key(), f.Name, t.alias, func() hogql.Expr { return t.of.scope.formula(f.Formula) })
}

// computed makes the value of a field that has a formula.
//
// A formula over the fields of the table itself stands in whole, where it is computed once, whatever the clauses are that
// use it; another formula there refers to it by its name.
func (t *tableSource) computed(f *schema.Field) hogql.Expr {
	if f.Formula.OfGroup {
		return t.outside(f.Key(), t.ofGroup(f))
	}
	if t.whole == nil {
		t.stack()
	}
	c := t.whole.column(f.Key()+"\x00computed", f.Name, t.alias, func() hogql.Expr {
		outer := t.inside
		t.inside = true
		defer func() { t.inside = outer }()
		s := t.r.apart(t.whole.core, t.whole.names)
		s.sources = []source{t}
		return s.formula(f.Formula)
	})
	if t.inside {
		return &hogql.AliasRef{Name: c.Name, Type: c.Type}
	}
	return t.upwards(f.Key()+"\x00computed", c)
}
