package cohort

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// PersonID is the only column of a query for members.
const PersonID = "person_id"

// The parts of queries for members. All conditions that one pass over a table can check are checked in one pass; others become conditions on the
// ids of these people.
const (
	// people evaluates the condition on each version of a person, and takes the result of the latest version. Aggregating one boolean per person
	// costs less than aggregating the values that it depends on. The table persons defines who exists.
	people = `SELECT id AS person_id FROM raw_persons WHERE {condition} GROUP BY id ` +
		`HAVING argMax(is_deleted = 0 AND created_at < {tomorrow} AND {own}, version)`
	anyOf  = `SELECT person_id FROM {sets} WHERE {condition} GROUP BY person_id`
	nobody = `SELECT id AS person_id FROM persons WHERE false`
)

// builder holds what the parts of one query share.
type builder struct {
	world *insight.World
}

// Build returns the query for the members of a cohort, over virtual tables: their ids in the column PersonID, without duplicates, in no order and
// without a limit. Members of other cohorts are taken from the versions in the world's database. The error is a *diag.Error.
func Build(d *Definition, w *insight.World) (hogql.Query, error) {
	if d.Root == nil {
		return insight.Template(nobody, nil), nil
	}
	s, negated := normal(d.Root)
	if negated {
		panic("BUG: a cohort of all people but some was not refused when it was read")
	}
	b := &builder{world: w}
	return b.query(s, nil)
}

// query lists the people in a set for whom condition holds too; nil for no condition.
func (b *builder) query(s set, condition conditions) (hogql.Query, error) {
	b.world.Spend.Nodes(1)
	switch sourceOf(s) {
	case ofEvents:
		return b.scan(s, condition)
	case ofPersons:
		own, err := b.personal(s)
		if err != nil {
			return nil, err
		}
		return insight.Template(people, map[string]any{
			"condition": insight.OrTrue(condition.on("id")), "tomorrow": physical.CreatedBefore(b.world.Now), "own": insight.OrTrue(own),
		}), nil
	case ofMembers:
		return b.members(s, condition)
	case several:
	}
	switch s := s.(type) {
	case union:
		return b.joined(s, condition)
	case rest:
		return b.narrowed(s, condition)
	case leaf:
	}
	panic("BUG: a leaf of several sources")
}

// joined lists the people in any of the sets.
func (b *builder) joined(sets union, condition conditions) (hogql.Query, error) {
	parts := groupBySource(sets)
	var queries []hogql.Query
	for _, from := range []source{ofEvents, ofPersons, ofMembers} {
		if len(parts[from]) > 0 {
			parts[several] = append(parts[several], unionOf(parts[from]))
		}
	}
	for _, s := range parts[several] {
		q, err := b.query(s, nil)
		if err != nil {
			return nil, err
		}
		queries = append(queries, q)
	}
	return insight.Template(anyOf, map[string]any{
		"sets": insight.From(insight.Union(queries...)), "condition": insight.OrTrue(condition.on(PersonID)),
	}), nil
}

// narrowed lists the people in all of some sets and in none of others: it reads those of one source, with conditions for the other sets.
func (b *builder) narrowed(s rest, condition conditions) (hogql.Query, error) {
	all, none := groupBySource(s.all), groupBySource(s.none)
	all[several], none[several] = append(all[several], all[ofMembers]...), append(none[several], none[ofMembers]...)
	var base set
	for _, from := range []source{ofEvents, ofPersons} {
		switch {
		case len(all[from]) > 0 && base == nil:
			base = restOf(all[from], none[from])
		case len(all[from]) > 0:
			all[several] = append(all[several], restOf(all[from], none[from]))
		case len(none[from]) > 0:
			none[several] = append(none[several], unionOf(none[from]))
		}
	}
	if base == nil {
		base, all[several] = all[several][0], all[several][1:]
	}
	for _, in := range all[several] {
		test, err := b.test(in, true)
		if err != nil {
			return nil, err
		}
		condition = append(condition, test)
	}
	for _, out := range none[several] {
		test, err := b.test(out, false)
		if err != nil {
			return nil, err
		}
		condition = append(condition, test)
	}
	return b.query(base, condition)
}

// conditions are tests of a person's id, all of which must hold.
type conditions []func(id hogql.Expr) hogql.Expr

// on returns the tests of the id in a column; nil for no conditions.
func (c conditions) on(column string) hogql.Expr {
	all := make([]hogql.Expr, len(c))
	for i, test := range c {
		all[i] = test(insight.Field(column))
	}
	return insight.And(all...)
}

// test returns the condition that a person is in a set or, without in, is not.
func (b *builder) test(s set, in bool) (func(id hogql.Expr) hogql.Expr, error) {
	op, members := hogql.In, hogql.Expr(nil)
	if !in {
		op = hogql.NotIn
	}
	if l, ok := s.(leaf); ok {
		if m, ok := l.is.(*Member); ok {
			if missing := b.missing(m); missing != nil {
				return nil, missing
			}
			if op = hogql.InCohort; !in {
				op = hogql.NotInCohort
			}
			members = insight.Const(m.Cohort)
		}
	}
	if members == nil {
		q, err := b.query(s, nil)
		if err != nil {
			return nil, err
		}
		members = &hogql.Subquery{Query: q}
	}
	return func(id hogql.Expr) hogql.Expr { return insight.Compare(id, op, members) }, nil
}

// personal returns the condition of a set over the table of people.
func (b *builder) personal(s set) (hogql.Expr, error) {
	return b.condition(s, func(n Node) (hogql.Expr, error) {
		switch n := n.(type) {
		case *Person:
			return b.world.PersonCondition(n.Filter, "")
		case *Created:
			return b.world.PersonCondition(n.Filter, "")
		case *Member, *Behavior, *Group:
		}
		panic("BUG: a set of people that the table of people does not tell")
	})
}

// condition returns the condition of a set whose leaves can be decided by one row. A leaf whose condition is nil always holds.
func (b *builder) condition(s set, of func(Node) (hogql.Expr, error)) (hogql.Expr, error) {
	b.world.Spend.Nodes(1)
	switch s := s.(type) {
	case leaf:
		return of(s.is)
	case union:
		all, err := b.each(s, of)
		return insight.Or(all...), err
	case rest:
		all, err := b.each(s.all, of)
		if err != nil || len(s.none) == 0 {
			return insight.And(all...), err
		}
		none, err := b.each(s.none, of)
		return insight.And(append(all, &hogql.Unary{Op: hogql.Not, X: insight.Or(none...)})...), err
	}
	panic("BUG: a set that is nothing")
}

func (b *builder) each(sets []set, of func(Node) (hogql.Expr, error)) ([]hogql.Expr, error) {
	out := make([]hogql.Expr, len(sets))
	for i, s := range sets {
		condition, err := b.condition(s, of)
		if err != nil {
			return nil, err
		}
		out[i] = insight.OrTrue(condition)
	}
	return out, nil
}
