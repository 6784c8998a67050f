package resolve

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// inCohort resolves IN COHORT and NOT IN COHORT: a test for membership in the set of a cohort's members, which ClickHouse builds once per query
// (contract: hogql.md, section 5, and api.md, section 9.2).
func (s *scope) inCohort(n *hogql.Compare) resolved.Expr {
	name := "in"
	if n.Op == hogql.NotInCohort {
		name = "notIn"
	}
	person := s.expr(n.Left)
	switch typeOf(person).Kind {
	case hogql.UUID, hogql.Unknown, hogql.Null: // an invalid value of unknown type is reported elsewhere
	default:
		s.r.mistake(n.Left.At(), "IN COHORT takes the id of a person on its left side, such as person_id")
	}
	id, ok := s.r.cohort(n.Right)
	if !ok {
		return truthOf(false, n.Pos)
	}
	s.r.reads.Cohorts = append(s.r.reads.Cohorts, id)
	beyond := s.r.reads.Beyond // queries of members do not count as such
	members := s.r.query(membersOf(id, s.r.db.Cohorts.Members(id), n.Right.At()), nil)
	s.r.reads.Beyond = beyond
	return native(boolType, n.Pos, name, person, &resolved.Subquery{Pos: n.Right.At(), Query: members.tree})
}

// cohort finds the cohort named by the right side of IN COHORT, by id or name.
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
		if missing := r.db.Cohorts.Missing(value); missing != "" {
			r.mistake(at, "%s", missing)
			return 0, false
		}
		return value, true
	case string:
		return r.cohortByName(e, value)
	}
	if value != nil {
		r.mistake(at, "cohort() takes exactly one string or integer argument")
		return 0, false
	}
	r.mistake(at, "IN COHORT only works with constant arguments: the id of a cohort, or its name")
	return 0, false
}

// cohortByName finds the cohort with a name, which e is the text of.
func (r *resolver) cohortByName(e hogql.Expr, name string) (id int64, ok bool) {
	ids := r.db.Cohorts.ByName(name)
	if len(ids) == 1 {
		return ids[0], true
	}
	if r.mistakes.Full() {
		return 0, false
	}
	written := hogql.ShortText(e)
	if len(ids) > 1 {
		r.mistake(e.At(), "Found multiple cohorts with name %s", written)
		return 0, false
	}
	mistake := diag.New(diag.QueryError, e.At(), "Could not find a cohort with the name %s", written)
	if near := schema.Nearest(name, r.spend.Hints(r.db.Cohorts.Names())); near != "" {
		mistake.Hint = near
		mistake.Fix = hogql.PrintExpr(&hogql.Const{Value: near})
	}
	r.mistakes.Add(mistake)
	return 0, false
}

// membersOf returns the query for a cohort's members, wherever they are stored.
func membersOf(id int64, kept schema.Members, at hogql.Span) hogql.Query {
	m := members{at: at}
	m.own = m.equals("cohort_id", m.number(id))
	switch {
	case kept.Given && kept.Computed:
		return &hogql.SetQuery{Pos: at, Members: []hogql.Query{m.given(), m.newest()}, Ops: make([]hogql.SetOp, 1)} // UnionAll
	case kept.Given:
		return m.given()
	case kept.Newest:
		return m.newest()
	}
	return m.version(kept.Version)
}

// members builds queries for a cohort's members.
type members struct {
	at  hogql.Span
	own hogql.Expr // the condition that a row belongs to the cohort
}

func (m members) field(name string) hogql.Expr {
	return &hogql.Field{Pos: m.at, Chain: []hogql.Name{{Pos: m.at, Text: name}}}
}

func (m members) number(n int64) hogql.Expr { return &hogql.Const{Pos: m.at, Value: n} }

func (m members) equals(name string, right hogql.Expr) hogql.Expr {
	return &hogql.Compare{Pos: m.at, Op: hogql.Equals, Left: m.field(name), Right: right}
}

func (m members) from(table string, column, where hogql.Expr) *hogql.Select {
	return &hogql.Select{
		Pos: m.at, From: &hogql.TableName{Pos: m.at, Chain: []hogql.Name{{Pos: m.at, Text: table}}},
		Columns: []hogql.Expr{column}, Where: where,
	}
}

func (m members) call(name, of string) hogql.Expr {
	return &hogql.Call{Pos: m.at, Name: name, Args: []hogql.Expr{m.field(of)}}
}

// given returns the query for the members that were added to the cohort directly.
func (m members) given() hogql.Query {
	return m.from("static_cohort_people", m.field("person_id"), m.own)
}

// everyVersion is the table of all versions of computed members.
const everyVersion = "raw_cohort_people"

// version returns the query for the members computed as one version. Signs do not matter: anyone removed from a version of ours was merged into
// another person, who is in it.
func (m members) version(version uint64) hogql.Query {
	of := m.equals("version", m.number(int64(version))) //nolint:gosec // versions are counted from 1
	return m.from(everyVersion, m.field("person_id"), &hogql.Logic{Pos: m.at, Args: []hogql.Expr{m.own, of}})
}

// newest returns the query for the members computed last, by another product. The whole table of members would have to find the newest version of
// every cohort; this only looks in one.
func (m members) newest() hogql.Query {
	newest := &hogql.Subquery{Pos: m.at, Query: m.from(everyVersion, m.call("max", "version"), m.own)}
	who := m.field("person_id")
	members := m.from(everyVersion, who, &hogql.Logic{Pos: m.at, Args: []hogql.Expr{m.own, m.equals("version", newest)}})
	members.GroupBy = &hogql.GroupBy{Keys: []hogql.Expr{who}}
	members.Having = &hogql.Compare{Pos: m.at, Op: hogql.Greater, Left: m.call("sum", "sign"), Right: m.number(0)}
	return members
}
