package resolve

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// boundGroups carries the bounds that WHERE sets to a time into the tables of groups that the SELECT reads, so that ClickHouse
// reads the rows of that time instead of all that there are. A group lasts a few days at most (schema.Grouping), so the
// bounds on its first or last row, or on an event that belongs to it, hold for all of its rows when they are moved by that.
// WHERE itself stays as it is: no group that it lets through has lost a row.
func (s *scope) boundGroups() {
	if s.tree.Where == nil {
		return
	}
	for _, src := range s.sources {
		t := stored(src)
		if t == nil || t.direct {
			continue
		}
		inner := onlyInner(s.tree.From)
		if g := t.table.Grouping; g != nil && inner {
			for _, field := range []string{g.First, g.Last} {
				s.eachBound(t.given(field), t.bound)
			}
		}
		for _, child := range t.joins {
			g := child.table.Grouping
			if g == nil || g.Table != t.table.Name {
				continue
			}
			s.eachBound(t.given(g.Time), child.bound)
			if inner {
				s.eachBound(t.lifted(child, g.First), func(lower, _ bool, moment resolved.Expr) { t.boundMembers(child, lower, moment) })
			}
		}
	}
}

// given is the column by which the query around reads a field of the table; nil when it reads none.
func (t *tableSource) given(field string) *resolved.Column {
	f, ok := t.r.db.Field(t.table, field)
	switch {
	case !ok:
		return nil
	case t.whole != nil:
		return t.whole.made(f.Key())
	}
	return t.rows.made(f.Key())
}

// lifted is the column by which the query around reads a field of a table that was joined to this one.
func (t *tableSource) lifted(child *tableSource, field string) *resolved.Column {
	f, ok := child.r.db.Field(child.table, field)
	if !ok {
		return nil
	}
	return t.whole.made(child.alias + "\x00" + f.Key())
}

// boundMembers uses a lower bound on the first row of a group: no row of the group lies before it. An upper bound would
// make rows without a group of those whose group is left out.
func (t *tableSource) boundMembers(groups *tableSource, lower bool, moment resolved.Expr) {
	if lower {
		groups.bound(true, false, moment)
		row := native(boolType, hogql.Span{}, "greaterOrEquals", t.raw(groups.table.Grouping.Time), moment)
		t.rows.tree.Where = both(t.rows.tree.Where, row)
	}
}

// onlyInner reports whether FROM gives each row of a table with each partner and nothing else. Where it also gives rows without
// a partner, or one partner of several, a bound inside a table could make more of these, or choose another.
func onlyInner(t resolved.Table) bool {
	j, ok := t.(*resolved.Join)
	if !ok {
		return true
	}
	inner := (j.Kind == hogql.InnerJoin || j.Kind == hogql.CrossJoin) && (j.Strictness == hogql.JoinDefault || j.Strictness == hogql.JoinAll)
	return inner && onlyInner(j.Left) && onlyInner(j.Right)
}

// eachBound calls use for the moments that WHERE compares a column with: those before which it does not lie, those after which it does
// not, and those at which it lies, which are both.
func (s *scope) eachBound(c *resolved.Column, use func(lower, upper bool, moment resolved.Expr)) {
	if c == nil {
		return
	}
	for _, condition := range conjuncts(s.tree.Where) {
		n, ok := condition.(*resolved.Native)
		if !ok || len(n.Args) != 2 {
			continue
		}
		left, right := bare(n.Args[0]), bare(n.Args[1])
		lower, upper := boundsOf(n)
		if constant(left) {
			left, right, lower, upper = right, left, upper, lower
		}
		read, ok := left.(*resolved.Column)
		if ok && (lower || upper) && read.Table == c.Table && read.Name == c.Name && constant(right) && typeOf(right).Kind == hogql.DateTime {
			use(lower, upper, right)
		}
	}
}

// boundsOf reports whether a comparison bounds its left side from below and from above.
func boundsOf(n *resolved.Native) (lower, upper bool) {
	f, _ := schema.LookupFunction(n.Name)
	if f == nil || f.Rule != schema.RuleCompare {
		return false, false
	}
	lower = f.Op == hogql.Greater || f.Op == hogql.GreaterOrEquals || f.Op == hogql.Equals
	upper = f.Op == hogql.Less || f.Op == hogql.LessOrEquals || f.Op == hogql.Equals
	return lower, upper
}

// conjuncts lists the conditions that all must hold for a condition to hold.
func conjuncts(e resolved.Expr) []resolved.Expr {
	l, ok := e.(*resolved.Logic)
	if !ok {
		return []resolved.Expr{e}
	}
	if l.Or {
		return nil
	}
	var out []resolved.Expr
	for _, arg := range l.Args {
		out = append(out, conjuncts(arg)...)
	}
	return out
}

// bound leaves out rows that are further from a moment than a group lasts.
func (t *tableSource) bound(lower, upper bool, moment resolved.Expr) {
	g := t.table.Grouping
	row := bare(t.of.rowField(g.Time))
	longest := native(hogql.Type{Kind: hogql.IntervalKind}, hogql.Span{}, "toIntervalDay", literal(g.MostDays))
	var all resolved.Expr
	if lower {
		all = native(boolType, hogql.Span{}, "greaterOrEquals", row, arithmetic(hogql.Span{}, "minus", moment, longest))
	}
	if upper {
		all = both(all, native(boolType, hogql.Span{}, "lessOrEquals", row, arithmetic(hogql.Span{}, "plus", moment, longest)))
	}
	t.rows.tree.Where = both(t.rows.tree.Where, all)
}
