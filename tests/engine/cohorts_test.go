package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// The project of these tests, and another one whose cohorts have the same numbers and the same people.
const cohortProject, cohortStranger = 741, 742

// TestMembersOfCohorts: of members that another product computes the newest version of each cohort counts, and in it those whose signs add up to more
// than 0, before and after ClickHouse has merged the rows; who was put into a cohort counts beside them.
func TestMembersOfCohorts(t *testing.T) {
	id := func(person int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", person) }
	for person := 1; person <= 9; person++ {
		execute(t, dsn, fmt.Sprintf("INSERT INTO person (id, created_at, team_id, properties, version) VALUES ('%s', '2024-01-01', %d, '{}', 1)", id(person), cohortProject))
	}
	execute(t, dsn, "SYSTEM STOP MERGES cohortpeople")
	defer execute(t, dsn, "SYSTEM START MERGES cohortpeople")
	type row struct{ team, cohort, version, sign, person int }
	for _, block := range [][]row{ // no two of them alike: ClickHouse would take the second for the first, sent again
		{{cohortProject, 5, 1, 1, 1}, {cohortProject, 5, 1, 1, 2}}, // as it was before
		{{cohortProject, 5, 2, 1, 2}, {cohortProject, 5, 2, 1, 3}, {cohortProject, 5, 2, 1, 4}},
		{{cohortProject, 5, 2, -1, 4}, {cohortProject, 5, 2, -1, 3}}, // who left
		{{cohortProject, 5, 2, 1, 3}},                                // and came back
		{{cohortProject, 6, 1, 1, 5}},                                // its own newest version
		{{cohortProject, 8, 3, 1, 6}},
		{{cohortProject, 8, 3, -1, 6}},
		{{cohortStranger, 5, 9, 1, 1}, {cohortStranger, 5, 9, 1, 7}, {cohortStranger, 7, 1, 1, 1}},
	} {
		var values []string
		for _, r := range block {
			values = append(values, fmt.Sprintf("('%s', %d, %d, %d, %d)", id(r.person), r.cohort, r.team, r.sign, r.version))
		}
		execute(t, dsn, "INSERT INTO cohortpeople VALUES "+strings.Join(values, ", "))
	}
	for _, row := range []struct{ team, cohort, person int }{
		{cohortProject, 5, 8}, {cohortProject, 5, 2}, {cohortProject, 7, 9}, {cohortStranger, 5, 9}, {cohortStranger, 8, 9},
	} {
		execute(t, dsn, fmt.Sprintf("INSERT INTO person_static_cohort (id, person_id, cohort_id, team_id) VALUES ('%[1]s', '%[1]s', %d, %d)", id(row.person), row.cohort, row.team))
	}
	db := &schema.Database{Project: cohortProject, Location: time.UTC, Cohorts: schema.NewCohorts(nil, true)}
	ask := func(t *testing.T, text string) []string {
		t.Helper()
		compiled, err := compiler.Compile(&query.HogQL{Query: text}, compiler.Env{Database: db, Now: day})
		if err != nil {
			t.Fatal(err)
		}
		rows, err := rowsOfFunnel(t, compiled, cohortProject)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(rows)
		return rows
	}
	tests := []struct {
		text string
		want []string
	}{
		{"select substring(toString(id), 36, 1) from persons where id in cohort 5", []string{`["2"]`, `["3"]`, `["8"]`}},
		{"select substring(toString(id), 36, 1) from persons where id in cohort 6", []string{`["5"]`}},
		{"select substring(toString(id), 36, 1) from persons where id in cohort 7", []string{`["9"]`}},
		{"select count() from persons where id in cohort 8", []string{"[0]"}},
		{"select count() from persons where id not in cohort 5", []string{"[6]"}},
		{"select cohort_id, substring(toString(person_id), 36, 1) from cohort_people", []string{`[5, "2"]`, `[5, "3"]`, `[6, "5"]`}},
		{"select cohort_id, count() from cohort_people where cohort_id < 6 group by cohort_id", []string{"[5, 2]"}},
		{"select cohort_id, count(), min(person.is_identified) from static_cohort_people group by cohort_id", []string{"[5, 2, 0]", "[7, 1, 0]"}},
		{"select max(version) from raw_cohort_people", []string{"[3]"}},
	}
	// The versions of ours that count are known, whatever else is there: one that is being computed, or one that no query reads any more.
	theirs := db.Cohorts
	db.Cohorts = schema.NewCohorts([]schema.Cohort{
		{ID: 5, Name: "old", Version: 1}, {ID: 6, Name: "new"}, {ID: 7, Static: true}, {ID: 8, Deleted: true, Version: 3}, {ID: 9, Static: true},
	}, false)
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"select substring(toString(id), 36, 1) from persons where id in cohort 'old'", []string{`["1"]`, `["2"]`}},
		{"select count() from persons where id in cohort 'new'", []string{"[0]"}},
		{"select substring(toString(id), 36, 1) from persons where id in cohort 7", []string{`["9"]`}},
		{"select cohort_id, substring(toString(person_id), 36, 1) from cohort_people", []string{`[5, "1"]`, `[5, "2"]`}},
	} {
		t.Run("known, "+tt.text, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, ask(t, tt.text)); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
	db.Cohorts = theirs
	for _, merged := range []bool{false, true} {
		if merged {
			execute(t, dsn, "SYSTEM START MERGES cohortpeople", "OPTIMIZE TABLE cohortpeople FINAL", "OPTIMIZE TABLE person_static_cohort FINAL")
			tests = tests[:len(tests)-1] // rows that cancel each other are gone
		}
		for _, tt := range tests {
			t.Run(fmt.Sprintf("merged %t, %s", merged, tt.text), func(t *testing.T) {
				if diff := cmp.Diff(tt.want, ask(t, tt.text)); diff != "" {
					t.Errorf("rows (-want +got):\n%s", diff)
				}
			})
		}
	}
}
