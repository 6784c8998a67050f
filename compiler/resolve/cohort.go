package resolve

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// inCohort resolves IN COHORT and NOT IN COHORT: the test of whether a person is in the set of a cohort's members, which
// ClickHouse makes once for a query (contract: hogql.md, section 5, and api.md, section 9.2).
func (s *scope) inCohort(n *hogql.Compare) resolved.Expr {
	name := "in"
	if n.Op == hogql.NotInCohort {
		name = "notIn"
	}
	person := s.expr(n.Left)
	switch typeOf(person).Kind {
	case hogql.UUID, hogql.Unknown, hogql.Null: // what is wrong with a value of unknown type is reported elsewhere
	default:
		s.r.mistake(n.Left.At(), "IN COHORT takes the id of a person on its left side, such as person_id")
	}
	id, ok := s.r.cohort(n.Right)
	if !ok {
		return truthOf(false, n.Pos)
	}
	members := s.r.query(membersOf(id, n.Right.At()), nil)
	return native(boolType, n.Pos, name, person, &resolved.Subquery{Pos: n.Right.At(), Query: members.tree})
}

// cohort finds the cohort that the right side of IN COHORT names, by its id or its name.
func (r *resolver) cohort(e hogql.Expr) (id int64, ok bool) {
	at := e.At()
	if missing := r.db.MissingMembers(); missing != "" {
		r.mistake(at, "Cohorts cannot be used: the ClickHouse database has no table %s", missing)
		return 0, false
	}
	var value any
	if c, constant := e.(*hogql.Const); constant {
		value = c.Value
	}
	switch value := value.(type) {
	case int64:
		if !r.db.Cohorts.Has(value) {
			r.mistake(at, "Could not find cohort with ID %d", value)
			return 0, false
		}
		return value, true
	case string:
		if id, ok = r.db.Cohorts.ByName(value); !ok {
			if r.mistakes.Full() {
				return 0, false
			}
			written, _ := hogql.Excerpt(e)
			mistake := diag.New(diag.QueryError, at, "Could not find a cohort with the name %s", written)
			if near := schema.Nearest(value, r.spend.Hints(r.db.Cohorts.Names())); near != "" {
				mistake.Hint = near
				mistake.Fix = hogql.PrintExpr(&hogql.Const{Value: near})
			}
			r.mistakes.Add(mistake)
		}
		return id, ok
	}
	if value != nil {
		r.mistake(at, "cohort() takes exactly one string or integer argument")
		return 0, false
	}
	r.mistake(at, "IN COHORT only works with constant arguments: the id of a cohort, or its name")
	return 0, false
}

// membersOf is the query of a cohort's members, wherever they are kept: those that were given, and those that were computed.
// Of the computed ones the newest version counts; the whole table of them needs to look for it in all cohorts, this in one.
func membersOf(id int64, at hogql.Span) hogql.Query {
	field := func(name string) hogql.Expr { return &hogql.Field{Pos: at, Chain: []hogql.Name{{Pos: at, Text: name}}} }
	equals := func(left, right hogql.Expr) hogql.Expr {
		return &hogql.Compare{Pos: at, Op: hogql.Equals, Left: left, Right: right}
	}
	from := func(table string, column, where hogql.Expr) *hogql.Select {
		return &hogql.Select{
			Pos: at, From: &hogql.TableName{Pos: at, Chain: []hogql.Name{{Pos: at, Text: table}}},
			Columns: []hogql.Expr{column}, Where: where,
		}
	}
	const computed = "raw_cohort_people"
	own := equals(field("cohort_id"), &hogql.Const{Pos: at, Value: id})
	call := func(name, of string) hogql.Expr {
		return &hogql.Call{Pos: at, Name: name, Args: []hogql.Expr{field(of)}}
	}
	newest := &hogql.Subquery{Pos: at, Query: from(computed, call("max", "version"), own)}
	members := from(computed, field("person_id"), &hogql.Logic{Pos: at, Args: []hogql.Expr{own, equals(field("version"), newest)}})
	members.GroupBy = &hogql.GroupBy{Keys: []hogql.Expr{field("person_id")}}
	members.Having = &hogql.Compare{Pos: at, Op: hogql.Greater, Left: call("sum", "sign"), Right: &hogql.Const{Pos: at, Value: int64(0)}}
	return &hogql.SetQuery{
		Pos: at, Members: []hogql.Query{from("static_cohort_people", field("person_id"), own), members}, Ops: make([]hogql.SetOp, 1), // UnionAll
	}
}
