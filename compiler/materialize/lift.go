package materialize

import (
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

// lift moves conditions on variables, with the columns that they use, from a common table expression to the query that reads it. If that would
// change the query's rows, or there is nothing to move, it returns the query unchanged.
//
//	WITH a AS (SELECT event FROM events WHERE x = {variables.v}) SELECT event FROM a
//	WITH a AS (SELECT event, x AS v FROM events) SELECT event FROM a WHERE v = {variables.v}
//
// The second result maps the moved columns to their expressions in the common table expression.
func lift(s *hogql.Select, taken map[string]bool) (*hogql.Select, map[string]hogql.Expr) {
	l := &lifter{taken: taken, reads: map[string]int{}, ctes: map[string]*hogql.CTE{}, changed: map[string]*hogql.Select{}, origins: map[string]hogql.Expr{}}
	v := hogql.Visitor{Table: func(t hogql.Table) bool {
		if n, ok := t.(*hogql.TableName); ok && len(n.Chain) == 1 {
			l.reads[n.Chain[0].Text]++
		}
		return true
	}}
	v.WalkQuery(s)
	for _, c := range s.With {
		if l.ctes[c.Name.Text] != nil || s.Recursive {
			return s, nil
		}
		l.ctes[c.Name.Text] = c
	}
	out, ok := l.lifted(s, 0)
	if !ok {
		return s, nil
	}
	out.With = make([]*hogql.CTE, len(s.With))
	for i, c := range s.With {
		out.With[i] = c
		if changed := l.changed[c.Name.Text]; changed != nil {
			own := *c
			own.Query = changed
			out.With[i] = &own
		}
	}
	return out, l.origins
}

type lifter struct {
	taken   map[string]bool
	reads   map[string]int // of tables, by name
	ctes    map[string]*hogql.CTE
	changed map[string]*hogql.Select
	origins map[string]hogql.Expr
}

// lifted returns a SELECT to which the conditions of the table that it reads have been moved; false if there are none, or they cannot be moved.
func (l *lifter) lifted(s *hogql.Select, depth int) (*hogql.Select, bool) {
	from, ok := s.From.(*hogql.TableName)
	if !ok || len(from.Chain) != 1 || len(from.Columns) > 0 || from.Sample != nil || depth > len(l.ctes) {
		return nil, false
	}
	c := l.ctes[from.Chain[0].Text]
	if c == nil || l.reads[c.Name.Text] != 1 || len(c.Columns) > 0 {
		return nil, false
	}
	below, ok := c.Query.(*hogql.Select)
	if !ok || len(below.With) > 0 {
		return nil, false
	}
	if deeper, moved := l.lifted(below, depth+1); moved {
		below = deeper
	}
	rest, found := parted(below.Where)
	if len(found) == 0 || !movable(below, found) {
		return nil, false
	}
	inner, outer := *below, *s
	inner.Where = logic(rest)
	inner.Columns = slices.Clone(below.Columns)
	group := &hogql.GroupBy{}
	if below.GroupBy != nil {
		group.Keys = slices.Clone(below.GroupBy.Keys)
	}
	table := from.Chain[0].Text
	if from.Alias.Text != "" {
		table = from.Alias.Text
	}
	conditions := hogql.Conjuncts(s.Where)
	var names []string
	for _, u := range found {
		name := freeName(l.taken, u.codes[0])
		names = append(names, name)
		l.origins[name] = origin(l.origins, u.column)
		inner.Columns = append(inner.Columns, alias(u.column, name))
		group.Keys = append(group.Keys, u.column)
		conditions = append(conditions, &hogql.Compare{Op: u.op, Left: field(table, name), Right: u.value})
	}
	if below.GroupBy != nil {
		inner.GroupBy = group
	}
	outer.Where = logic(conditions)
	if outer.Columns, ok = without(s.Columns, names); !ok {
		return nil, false
	}
	l.changed[c.Name.Text] = &inner
	return &outer, true
}

// origin returns the expression of a column at the place where it was moved from.
func origin(origins map[string]hogql.Expr, column hogql.Expr) hogql.Expr {
	if f, ok := column.(*hogql.Field); ok {
		if moved := origins[f.Chain[len(f.Chain)-1].Text]; moved != nil {
			return moved
		}
	}
	return column
}

// parted takes the conditions on variables out of a condition.
func parted(where hogql.Expr) (rest []hogql.Expr, found []*usage) {
	for _, c := range hogql.Conjuncts(where) {
		u, ok := usageOf(c)
		if _, supported := operatorOf(u); ok && supported {
			found = append(found, u)
		} else {
			rest = append(rest, c)
		}
	}
	return rest, found
}

func operatorOf(u *usage) (hogql.CompareOp, bool) {
	if u == nil {
		return 0, false
	}
	op, ok := operators[u.op]
	return op, ok
}

// movable reports whether applying conditions to the rows of a SELECT, instead of the rows that it reads, gives the same result.
func movable(s *hogql.Select, found []*usage) bool {
	if s.Distinct || s.Limit != nil || s.LimitBy != nil || s.Windows != nil || s.Interpolate != nil {
		return false
	}
	exprs := slices.Clone(s.Columns)
	if s.Having != nil {
		exprs = append(exprs, s.Having)
	}
	aggregated := s.GroupBy != nil
	for _, e := range exprs {
		if holdsWindow(e) || holdsArrayJoin(e) {
			return false
		}
		aggregated = aggregated || holdsAggregate(e)
	}
	if !aggregated {
		return true
	}
	onlyEqual := !slices.ContainsFunc(found, func(u *usage) bool { return u.op != hogql.Equals })
	return s.GroupBy != nil && s.GroupBy.Mode == hogql.GroupKeys && !s.GroupBy.Totals && onlyEqual
}

// without excludes columns from every *; false if columns are selected in another way.
func without(columns []hogql.Expr, names []string) ([]hogql.Expr, bool) {
	out := slices.Clone(columns)
	for i, e := range out {
		star, ok := e.(*hogql.Star)
		if !ok || star.Columns || star.Spread {
			if spreads(e) {
				return nil, false
			}
			continue
		}
		less := *star
		less.Exclude = slices.Clone(star.Exclude)
		for _, name := range names {
			less.Exclude = append(less.Exclude, []hogql.Name{{Text: name}})
		}
		out[i] = &less
	}
	return out, true
}

// spreads reports whether an expression contains COLUMNS(…), or a * whose columns are arguments.
func spreads(e hogql.Expr) bool {
	found := false
	hogql.WalkExpr(e, func(e hogql.Expr) bool {
		star, ok := e.(*hogql.Star)
		found = found || is[*hogql.ColumnsMatching](e) || ok && (star.Columns || star.Spread)
		return !found
	})
	return found
}
