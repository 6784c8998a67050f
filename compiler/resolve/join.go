package resolve

import (
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
)

// side is what is on one side of a join.
type side struct {
	sources []source
	using   map[string]source // as in scope
}

// find returns the table that the bare name of a column refers to, the first if there are several; nil if there is none. ambiguous reports a column of an
// earlier USING that refers to none.
func (d side) find(name string) (src source, ambiguous bool) {
	if src, merged := d.using[name]; merged {
		return src, src == nil
	}
	for _, src := range d.sources {
		if _, ok := src.find(name); ok {
			return src, false
		}
	}
	return nil, false
}

// unseen are tables of FROM that the condition of a join cannot use, and why.
type unseen struct {
	sources []source
	why     string
}

// join resolves a join; its condition sees the tables so far.
func (s *scope) join(j *hogql.Join) resolved.Table {
	s.r.countTables(1, j.Pos)
	out := &resolved.Join{Kind: j.Kind, Strictness: j.Strictness, Left: s.table(j.Left)}
	if group, ok := j.Right.(*hogql.Join); ok {
		return s.joinGroup(j, group, out)
	}
	left := side{s.sources, s.using}
	out.Right = s.table(j.Right)
	out.On = s.joinCondition(j, left, side{sources: s.sources[len(left.sources):]})
	return out
}

// joinGroup resolves a join whose right side is a join in parentheses. ClickHouse has no such joins, so the result has none either.
func (s *scope) joinGroup(j, group *hogql.Join, out *resolved.Join) resolved.Table {
	left, outside := side{s.sources, s.using}, s.unseen
	s.sources, s.using = nil, nil
	s.unseen = unseen{slices.Concat(outside.sources, left.sources), "a condition in parentheses sees only the tables in them"}
	inner, _ := s.table(group).(*resolved.Join)
	right := side{s.sources, s.using}
	s.sources, s.using, s.unseen = left.sources, s.bothUsing(left.using, right.using), outside
	for _, src := range right.sources {
		s.addSource(src, group.Pos)
	}
	if right.sources = s.sources[len(left.sources):]; inner == nil {
		return nil // after a mistake
	}
	out.Right = inner
	_, several := out.Left.(*resolved.Join)
	switch {
	case !several && j.Strictness != hogql.JoinAsof:
		out.On = s.joinCondition(j, left, right)
		return mirrored(out)
	case !pairs(j.Kind, j.Strictness) || !extends(group):
		s.r.mistake(group.Pos, "These tables in parentheses cannot be joined this way: make them a subquery with an alias")
		return nil
	}
	all := s.sources
	first := len(left.sources) + min(1, len(right.sources))
	s.sources = all[:first]
	s.unseen = unseen{
		slices.Concat(outside.sources, all[first:]),
		"after several tables, the condition sees only the first of those in parentheses: make these a subquery with an alias",
	}
	out.On = s.joinCondition(j, left, side{sources: s.sources[len(left.sources):]})
	s.sources, s.unseen = all, outside
	return appended(out, inner)
}

// bothUsing returns the columns of USING on both sides of a join. A column on both is ambiguous.
func (s *scope) bothUsing(left, right map[string]source) map[string]source {
	if len(left) == 0 {
		return right
	}
	for name, src := range right {
		if _, twice := left[name]; twice {
			src = nil
		}
		left[name] = src
	}
	return left
}

// mirrored exchanges the sides of a join, so that the join on its right side comes first. The rows stay the same.
func mirrored(j *resolved.Join) *resolved.Join {
	j.Left, j.Right = j.Right, j.Left
	switch j.Kind {
	case hogql.LeftJoin:
		j.Kind = hogql.RightJoin
	case hogql.RightJoin:
		j.Kind = hogql.LeftJoin
	case hogql.InnerJoin, hogql.FullJoin, hogql.CrossJoin: // the same from both sides
	}
	return j
}

// pairs reports whether a join pairs each row with each of its partners, and does nothing else.
func pairs(kind hogql.JoinKind, strictness hogql.JoinStrictness) bool {
	return (kind == hogql.InnerJoin || kind == hogql.CrossJoin) && (strictness == hogql.JoinDefault || strictness == hogql.JoinAll)
}

// extends reports whether each join only adds to rows of its left side or drops some, whatever else is in them. So other tables can be joined to the first one
// before.
func extends(t hogql.Table) bool {
	j, ok := t.(*hogql.Join)
	if !ok {
		return true
	}
	_, nested := j.Right.(*hogql.Join)
	return !nested && (j.Kind == hogql.LeftJoin || pairs(j.Kind, j.Strictness)) && extends(j.Left)
}

// appended joins the first table of group to the left side of j, and the others to the result.
func appended(j, group *resolved.Join) *resolved.Join {
	first := group
	for {
		next, ok := first.Left.(*resolved.Join)
		if !ok {
			break
		}
		first = next
	}
	j.Right, first.Left = first.Left, j
	return group
}

// onClause is the clause in which comparisons are not wrapped, so that ClickHouse sees the keys of the join.
const onClause = "JOIN ON"

// joinCondition resolves the condition of a join.
func (s *scope) joinCondition(j *hogql.Join, left, right side) resolved.Expr {
	if len(j.Using) > 0 {
		return s.usingColumns(j, left, right)
	}
	if j.On == nil {
		return nil
	}
	clause := s.clause
	s.clause = onClause
	on := s.condition(j.On)
	s.clause = clause
	return on
}

// usingColumns converts USING to the equivalent condition: equal columns, except that of an ASOF join the left value of the last column is at least the right
// one. Its columns can be named without their table; they are read from the side that keeps all rows.
func (s *scope) usingColumns(j *hogql.Join, left, right side) resolved.Expr {
	if len(right.sources) == 0 {
		return nil
	}
	var conditions []resolved.Expr
	for i, name := range j.Using {
		one, ambiguous := left.find(name.Text)
		other, also := right.find(name.Text)
		if ambiguous || also {
			s.r.mistake(name.Pos, "%s is a column of an earlier FULL JOIN, or of both sides of a join: write the condition of this join with ON", name.Text)
			continue
		}
		if one == nil || other == nil {
			missing := right.sources[0]
			if other != nil && len(left.sources) > 0 { // then the left side has none
				missing = left.sources[len(left.sources)-1]
			}
			s.r.unresolved(name.Text, name.Pos, missing.each)
			continue
		}
		function := "equals"
		if j.Strictness == hogql.JoinAsof && i == len(j.Using)-1 {
			function = "greaterOrEquals"
		}
		x, _ := one.find(name.Text)
		y, _ := other.find(name.Text)
		conditions = append(conditions, native(boolType, name.Pos, function, s.read(x, nil, name.Pos), s.read(y, nil, name.Pos)))
		if s.using == nil {
			s.using = map[string]source{}
		}
		switch j.Kind {
		case hogql.RightJoin:
			s.using[name.Text] = other
		case hogql.FullJoin: // neither side has all rows: the bare name stays ambiguous
			s.using[name.Text] = nil
		case hogql.InnerJoin, hogql.LeftJoin, hogql.CrossJoin:
			s.using[name.Text] = one
		}
	}
	if len(conditions) == 1 {
		return conditions[0]
	}
	return &resolved.Logic{Pos: j.Pos, Args: conditions}
}
