package schema

import (
	"slices"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

// The physical tables of computed members, and of members that were added directly.
const (
	computedMembers = physical.ComputedMembers
	givenMembers    = physical.StaticMembers
)

var memberFields = []Field{
	{Name: "person_id", Type: uuidType},
	{Name: "cohort_id", Type: intType},
	project,
	{Name: "person", Join: &LazyJoin{
		Name: "person", Table: "persons", Local: "person_id", Foreign: "id", Inner: true, Unique: true, Group: -1,
	}},
}

// cohortTables are the tables of members of cohorts (contract: hogql.md, section 7).
var cohortTables = []*Table{
	{
		Name: "cohort_people", Physical: computedMembers, Fields: memberFields,
		Merge: &Merge{Keys: []string{"person_id", "cohort_id"}, Version: "version", Sign: "sign", Current: "cohort_id"},
	},
	{
		Name: "raw_cohort_people", Physical: computedMembers,
		Fields: slices.Concat(memberFields, []Field{{Name: "sign", Type: intType}, {Name: "version", Type: intType}}),
	},
	{Name: "static_cohort_people", Physical: givenMembers, Fields: memberFields},
}

// HoldsMembers reports whether a table has the members of all cohorts.
func HoldsMembers(table string) bool {
	return slices.ContainsFunc(cohortTables, func(t *Table) bool { return t.Name == table })
}
