package resolve

import (
	"cmp"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
)

// selection resolves one SELECT.
func (r *resolver) selection(sel *hogql.Select, env *environment) *relation {
	r.count(1, sel.Pos)
	if windows := sel.Windows; len(windows) > budget.MaxKeys {
		r.mistake(windows[budget.MaxKeys].Pos, "The query has more than %d windows", budget.MaxKeys)
		return nothing(sel.Pos)
	}
	s := &scope{
		r: r, env: r.with(sel.With, sel.Recursive, env),
		tree: &resolved.Select{Pos: sel.Pos, Distinct: sel.Distinct}, windows: sel.Windows,
	}
	s.frame = &s.aliases
	s.from(sel)
	s.collectAliases(sel)
	s.arrayJoin(sel.ArrayJoin)
	s.byProperty = s.groupsByProperty(sel)
	rel := &relation{tree: s.tree, scope: s, columns: s.columns(sel.Columns)}
	s.outputs = rel.columns

	s.clause = "PREWHERE"
	prewhere := s.conditionOf(sel.Prewhere)
	s.clause = "WHERE"
	s.tree.Where = s.conditionOf(sel.Where)
	// ClickHouse runs PREWHERE before additional_table_filters, the second line of defense, so it becomes part of WHERE. ClickHouse also moves
	// conditions to PREWHERE itself, after both.
	s.tree.Where = both(prewhere, s.tree.Where)
	s.boundGroups()
	s.clause = "GROUP BY"
	s.tree.GroupBy = s.groupBy(sel.GroupBy)
	s.clause = ""
	s.tree.Having = s.conditionOf(sel.Having)
	s.namedWindows(sel.Windows)
	s.tree.OrderBy = s.orderBy(sel.OrderBy, true)
	s.tree.Interpolate = s.interpolate(sel.Interpolate, sel.OrderBy)
	if by := sel.LimitBy; by != nil {
		s.tree.LimitBy = &resolved.LimitBy{N: s.rows(by.N), Offset: s.rows(by.Offset), Keys: s.keys(by.Keys)}
	}
	s.tree.Limit = s.limit(sel.Limit)
	if sel.GroupBy != nil && sel.GroupBy.Totals {
		s.totals(sel)
	}
	return rel
}

// columns resolves the select list, and gives each column a unique name in ClickHouse.
func (s *scope) columns(list []hogql.Expr) []*column {
	out := make([]*column, 0, len(list))
	s.tree.Columns = make([]resolved.Expr, 0, len(list))
	add := func(name string, e resolved.Expr, from *property, printed string) {
		if printed == "" {
			printed = s.unique(name)
		}
		s.tree.Columns = append(s.tree.Columns, named(e, printed))
		out = append(out, &column{name: name, printed: printed, typ: typeOf(e), from: from})
	}
	for i, e := range list {
		s.turn = i
		if items, ok := s.star(e); ok { // it has spent its columns before it made them
			for _, item := range items {
				add(item.name, item.value, item.from, "")
			}
			continue
		}
		s.r.spend.Columns(1)
		named, ok := e.(*hogql.Alias)
		if !ok {
			add(s.r.outputName(e), s.expr(e), s.document(e), s.unique(nameWithoutTexts(e)))
			continue
		}
		a := s.frame.alias(named.Name.Text)
		if a == nil || a.node != named { // refused before
			s.expr(named.X)
			continue
		}
		add(a.name, s.define(a), s.document(named.X), a.printed)
		out[len(out)-1].aliased = true
	}
	s.turn = len(list)
	return out
}

// outputName names a column without an alias (contract: hogql.md, section 1): the keys after the last "properties" of a chain, joined by __, or the
// chain's last name, or the expression in function form.
func (r *resolver) outputName(e hogql.Expr) string {
	if name, ok := chainName(e); ok {
		return name
	}
	return hogql.FunctionFormWithin(e, r.spend)
}

// chainName is the outputName of a chain of names; ok is false for any other expression.
func chainName(e hogql.Expr) (name string, ok bool) {
	base, keys := peel(e)
	field, ok := base.(*hogql.Field)
	if !ok {
		return "", false
	}
	chain := extendChain(field.Chain, keys)
	for i := len(chain) - 2; i >= 0; i-- {
		if chain[i].Text == "properties" {
			parts := make([]string, 0, len(chain)-i-1)
			for _, n := range chain[i+1:] {
				parts = append(parts, n.Text)
			}
			return strings.Join(parts, "__"), true
		}
	}
	last := chain[len(chain)-1]
	if len(keys) > 0 || last.Index { // an element of a tuple has no name
		return "", false
	}
	return last.Text, true
}

// nameWithoutTexts is outputName without the texts of constants: clients' values are parameters, and must not be in the text of a query, which logs
// show.
func nameWithoutTexts(e hogql.Expr) string {
	if isWritten[*hogql.Field](e) {
		if name, ok := chainName(e); ok {
			return name
		}
	} else if base, _ := peel(e); isWritten[*hogql.Field](base) {
		if name, ok := chainName(hogql.RewriteExpr(e, keyWithoutText)); ok {
			return name
		}
	}
	return hogql.ShortForm(e, longestName)
}

// keyWithoutText replaces a text by a word.
func keyWithoutText(e hogql.Expr) hogql.Expr {
	if _, ok := writtenText(e); ok {
		return &hogql.Const{Pos: e.At(), Value: "value"}
	}
	return e
}

// conditionOf resolves a clause with a condition on rows; nil if it always holds.
func (s *scope) conditionOf(e hogql.Expr) resolved.Expr {
	if e == nil {
		return nil
	}
	out := s.condition(e)
	if value, known := truth(out); known && value {
		return nil
	}
	return out
}

// both joins two conditions, either of which may be nil.
func both(a, b resolved.Expr) resolved.Expr {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return &resolved.Logic{Pos: a.At(), Args: []resolved.Expr{a, b}}
}

func (s *scope) groupBy(g *hogql.GroupBy) *resolved.GroupBy {
	if g == nil {
		return nil
	}
	s.grouped = true
	out := &resolved.GroupBy{Mode: g.Mode, Keys: s.keys(g.Keys), Totals: g.Totals}
	inSets := 0
	for _, set := range g.Sets {
		if inSets += len(set); inSets > budget.MaxKeys {
			s.r.mistake(g.Pos, "The query has more than %d keys in GROUPING SETS", budget.MaxKeys)
			break
		}
		out.Sets = append(out.Sets, s.keys(set))
	}
	return out
}

// keys resolves the keys of GROUP BY and LIMIT BY, in which a whole number is the position of a column in the select list.
func (s *scope) keys(list []hogql.Expr) []resolved.Expr {
	if len(list) > budget.MaxKeys {
		s.r.mistake(list[budget.MaxKeys].At(), "The query has more than %d keys in %s", budget.MaxKeys, cmp.Or(s.clause, "LIMIT BY"))
		return nil
	}
	out := make([]resolved.Expr, len(list))
	for i, e := range list {
		out[i] = s.key(e)
	}
	return out
}

func (s *scope) key(e hogql.Expr) resolved.Expr {
	c, ok := e.(*hogql.Const)
	if !ok {
		return s.expr(e)
	}
	n, ok := c.Value.(int64)
	if !ok {
		return s.expr(e)
	}
	if n < 1 || n > int64(len(s.outputs)) {
		s.r.mistake(e.At(), "Position %d is not in the select list of %d columns", n, len(s.outputs))
		return &resolved.Const{Pos: e.At()}
	}
	col := s.outputs[n-1]
	return &resolved.AliasRef{Pos: e.At(), Name: col.printed, Type: col.typ}
}

func (s *scope) orderBy(list []*hogql.Order, positions bool) []*resolved.Order {
	if len(list) == 0 {
		return nil
	}
	out := make([]*resolved.Order, len(list))
	for i, o := range list {
		c := &resolved.Order{Desc: o.Desc, Nulls: o.Nulls}
		if positions {
			c.X = s.key(o.X)
		} else {
			c.X = s.expr(o.X)
		}
		if o.Fill != nil {
			c.Fill = &resolved.Fill{From: s.optional(o.Fill.From), To: s.optional(o.Fill.To), Step: s.optional(o.Fill.Step)}
		}
		out[i] = c
	}
	return out
}

func (s *scope) optional(e hogql.Expr) resolved.Expr {
	if e == nil {
		return nil
	}
	return s.expr(e)
}

func (s *scope) limit(l *hogql.Limit) *resolved.Limit {
	if l == nil {
		return nil
	}
	out := &resolved.Limit{N: s.rows(l.N), Offset: s.rows(l.Offset), WithTies: l.WithTies, Percent: l.Percent}
	if out.Percent && !isPercentage(out.N) {
		s.r.mistake(l.N.At(), "LIMIT %% takes a number from 0 to 100")
	}
	return out
}

func isPercentage(e resolved.Expr) bool {
	c, ok := e.(*resolved.Const)
	if !ok {
		return false
	}
	switch v := c.Value.(type) {
	case int64:
		return v >= 0 && v <= 100
	case float64:
		return v >= 0 && v <= 100
	}
	return false
}

// rows resolves a number of rows, which must be known before any row is read.
func (s *scope) rows(e hogql.Expr) resolved.Expr {
	if e == nil {
		return nil
	}
	if isWritten[*hogql.Const](e) {
		return s.expr(e)
	}
	apart := &scope{r: s.r, env: s.env, tree: &resolved.Select{}, clause: "LIMIT and OFFSET"}
	apart.frame = &apart.aliases
	return apart.expr(e)
}

func (s *scope) namedWindows(list []*hogql.NamedWindow) {
	for _, w := range list {
		if s.window(w.Name.Text) != nil {
			s.r.mistake(w.Name.Pos, "Cannot redefine a window with the name: %s", w.Name.Text)
			continue
		}
		out := &resolved.NamedWindow{Name: w.Name.Text, Window: s.over(w.Window)}
		s.tree.Windows = append(s.tree.Windows, out)
	}
}

func (s *scope) window(name string) *resolved.NamedWindow {
	for _, w := range s.tree.Windows {
		if w.Name == name {
			return w
		}
	}
	return nil
}

// over resolves the definition of a window.
func (s *scope) over(w *hogql.Window) *resolved.Window {
	if w == nil {
		return nil
	}
	outer := s.inWindow
	s.inWindow = true
	defer func() { s.inWindow = outer }()
	if s.r.windowKeys += len(w.PartitionBy) + len(w.OrderBy); s.r.windowKeys > budget.MaxKeys {
		s.r.tooManyWindowKeys(w.Pos)
		return &resolved.Window{}
	}
	out := &resolved.Window{Name: w.Name.Text, OrderBy: s.orderBy(w.OrderBy, false)}
	for _, e := range w.PartitionBy {
		out.PartitionBy = append(out.PartitionBy, s.expr(e))
	}
	if f := w.Frame; f != nil {
		out.Frame = &resolved.Frame{Range: f.Range, Start: s.frameBound(f.Start), End: s.frameBound(f.End)}
	}
	return out
}

func (s *scope) frameBound(b hogql.Bound) resolved.Bound {
	return resolved.Bound{Kind: b.Kind, N: s.optional(b.N)}
}

// tooManyWindowKeys notes once that the windows of the query have too many keys, counting the keys of a named window at each use.
func (r *resolver) tooManyWindowKeys(at hogql.Span) {
	if !r.manyKeys {
		r.manyKeys = true
		r.mistake(at, "The query has more than %d keys in its windows", budget.MaxKeys)
	}
}

// set resolves queries joined by set operators. The columns are those of the first member, and all members see its CTEs.
func (r *resolver) set(q *hogql.SetQuery, env *environment) *relation {
	env = r.with(q.With, q.Recursive, env)
	members := make([]*relation, len(q.Members))
	for i, m := range q.Members {
		members[i] = r.query(m, env)
		if i == 0 && members[i].scope != nil {
			env = members[i].scope.env
		}
	}
	if q.ByName != nil {
		members = r.byName(q, members)
	}
	tree := &resolved.SetQuery{Pos: q.Pos, Ops: q.Ops, Members: make([]resolved.Query, len(q.Members))}
	rel := &relation{tree: tree, ops: q.Ops, members: members}
	first := members[0]
	r.spend.Columns(len(first.columns))
	for _, c := range first.columns {
		rel.columns = append(rel.columns, &column{name: c.name, printed: c.printed, typ: c.typ, from: c.from, aliased: c.aliased, hidden: c.hidden})
	}
	for i, m := range members {
		tree.Members[i] = m.tree
		if len(m.columns) != len(first.columns) {
			r.unevenMembers(q.Members[i], len(first.columns), len(m.columns))
			continue
		}
		for j, c := range m.columns {
			rel.columns[j].typ = merged(rel.columns[j].typ, c.typ)
		}
	}
	if len(q.OrderBy) > 0 || q.Limit != nil {
		s := &scope{r: r, env: env, tree: &resolved.Select{}, outputs: rel.columns}
		s.frame = &s.aliases
		for _, c := range rel.columns {
			if s.aliases.alias(c.name) == nil {
				s.put(&s.aliases, &alias{name: c.name, printed: c.printed, typ: c.typ, state: aliasDefined})
			}
		}
		tree.OrderBy, tree.Limit = s.orderBy(q.OrderBy, true), s.limit(q.Limit)
	}
	return rel
}

// unevenMembers notes that a member of a set has another number of columns than the first, unless one of them is invalid anyway.
func (r *resolver) unevenMembers(m hogql.Query, first, found int) {
	if first > 0 && found > 0 {
		r.mistake(m.At(), "The members of a set operation must have as many columns as the first: %d, found %d", first, found)
	}
}
