package filter

import (
	"math"
	"strconv"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

// cohortCondition returns the condition of a filter on membership in a cohort, whose value is the cohort's id (contract: api.md, section 2.4).
// The error is a *diag.Error.
func cohortCondition(f Property, s Subject) (hogql.Expr, error) {
	op := hogql.InCohort
	switch f.Operator {
	case "", "in", "exact":
	case "not_in", "is_not":
		op = hogql.NotInCohort
	default:
		return nil, s.unsupported(f)
	}
	id, ok := CohortID(f.Value)
	switch {
	case f.Key != "id":
		return nil, s.refuse("A property filter of type 'cohort' has the key 'id', not '%s'", f.Key)
	case !ok:
		return nil, s.refuse("A property filter of type 'cohort' has the id of a cohort as its value")
	}
	if missing := s.Cohorts.Missing(id); missing != "" {
		return nil, s.refuse("%s", missing)
	}
	person := s.field("person_id")
	if s.People {
		person = s.field("id")
	}
	return &hogql.Compare{Pos: s.At, Op: op, Left: person, Right: &hogql.Const{Pos: s.At, Value: id}}, nil
}

// CohortID reads the value of a cohort filter: an id as a whole number, or as text.
func CohortID(v any) (id int64, ok bool) {
	switch v := Numeric(v).(type) {
	case int64:
		return v, true
	case float64:
		return int64(v), v == math.Trunc(v) && math.Abs(v) < 1<<53
	case string:
		id, err := strconv.ParseInt(v, 10, 64)
		return id, err == nil
	}
	return 0, false
}
