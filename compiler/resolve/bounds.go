package resolve

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// boundGroups copies the bounds on a time in WHERE into the tables of groups that the SELECT reads, so that ClickHouse reads only the rows of that
// time. A group lasts a few days at most (schema.Grouping), so bounds on its first or last row, or on an event in it, hold for all of its
// rows when they are widened by that. WHERE itself is unchanged, and no group that it lets through loses a row.
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

// given returns the column through which the outer query reads a field of the table; nil if it does not read it.
func (t *tableSource) given(field string) *resolved.Column {
	f, ok := t.r.db.Field(t.table, field)
	switch {
	case !ok:
		return nil
	case t.whole != nil:
		return t.whole.existing(f.Key())
	}
	return t.rows.existing(f.Key())
}

// lifted returns the column through which the outer query reads a field of a table joined to this one.
func (t *tableSource) lifted(child *tableSource, field string) *resolved.Column {
	f, ok := child.r.db.Field(child.table, field)
	if !ok {
		return nil
	}
	return t.whole.existing(child.alias + "\x00" + f.Key())
}

// boundMembers applies a lower bound on the first row of a group: no row of the group lies before it. An upper bound would turn the rows of
// groups that are left out into rows without a group.
func (t *tableSource) boundMembers(groups *tableSource, lower bool, moment resolved.Expr) {
	if lower {
		groups.bound(true, false, moment)
		row := native(boolType, hogql.Span{}, "greaterOrEquals", t.raw(groups.table.Grouping.Time), moment)
		t.rows.tree.Where = both(t.rows.tree.Where, row)
	}
}

// onlyInner reports whether FROM pairs each row of a table with each of its partners, and does nothing else. If it also kept rows without a
// partner, or picked one of several partners, a bound inside a table could add such rows, or change the pick.
func onlyInner(t resolved.Table) bool {
	j, ok := t.(*resolved.Join)
	if !ok {
		return true
	}
	return pairs(j.Kind, j.Strictness) && onlyInner(j.Left) && onlyInner(j.Right)
}

// eachBound calls use for every time that WHERE compares a column with: lower if the column cannot be less, upper if it cannot be greater, and
// both if it is equal.
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

// conjuncts returns the conditions that a condition joins by AND.
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

// bound leaves out rows that are further from a time than a group lasts.
func (t *tableSource) bound(lower, upper bool, moment resolved.Expr) {
	g := t.table.Grouping
	row := bare(t.of.rowField(g.Time))
	longest := native(hogql.Type{Kind: hogql.IntervalKind}, hogql.Span{}, "toIntervalDay", literal(g.MostDays))
	var all resolved.Expr
	if lower {
		all = native(boolType, hogql.Span{}, "greaterOrEquals", row, t.r.arithmetic(hogql.Span{}, "minus", moment, longest))
	}
	if upper {
		all = both(all, native(boolType, hogql.Span{}, "lessOrEquals", row, t.r.arithmetic(hogql.Span{}, "plus", moment, longest)))
	}
	t.rows.tree.Where = both(t.rows.tree.Where, all)
}
