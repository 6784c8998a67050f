package ingest_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/ingest"
)

// computedToday are the members of versions of cohorts by all their distinct ids; each is there once.
const computedToday = `SELECT m.cohort_id, m.version, arrayStringConcat(p.ids, '+') FROM (
		SELECT cohort_id, version, person_id FROM cohortpeople GROUP BY ALL HAVING sum(sign) > 0) m
	LEFT JOIN (SELECT person_id, arraySort(groupArray(distinct_id)) AS ids FROM (
		SELECT distinct_id, argMax(person_id, version) AS person_id FROM person_distinct_id2 GROUP BY distinct_id) GROUP BY person_id) p
	ON m.person_id = p.person_id ORDER BY ALL`

// TestMergesInComputedCohorts: the person that a merged one becomes is a member in its place, in each version of each cohort that is named.
func TestMergesInComputedCohorts(t *testing.T) {
	c := client(t)
	options := ingest.Options{Project: project(), Computed: []int64{5, 6}}
	load(t, c, options, `{"type":"person","distinct_ids":["x"]}
{"type":"person","distinct_ids":["y"]}
{"type":"person","distinct_ids":["z"]}`)
	for _, in := range []struct {
		cohort, version uint64
		ids             string
	}{{5, 1, "'x', 'z'"}, {5, 2, "'z'"}, {6, 7, "'y'"}, {8, 1, "'z'"}} {
		fill := clickhouse.Fill{
			Query: clickhouse.Query{SQL: fmt.Sprintf("SELECT person_id FROM person_distinct_id2 WHERE distinct_id IN (%s)", in.ids), Project: options.Project},
			Table: "cohortpeople", Columns: []string{"person_id"},
			Fixed: []clickhouse.FixedColumn{{Name: "cohort_id", Number: in.cohort}, {Name: "version", Number: in.version}, {Name: "sign", Number: 1}},
		}
		if err := c.Fill(t.Context(), fill); err != nil {
			t.Fatal(err)
		}
	}
	const merge = `{"event":"$identify","distinct_id":"y","timestamp":"2024-01-02T00:00:00Z","properties":{"$anon_distinct_id":"z"}}`
	for range 2 {
		load(t, c, options, merge)
		want := []string{`[5, 1, "x"]`, `[5, 1, "y+z"]`, `[5, 2, "y+z"]`, `[6, 7, "y+z"]`, `[8, 1, ""]`}
		if diff := cmp.Diff(want, ask(t, c, options.Project, computedToday)); diff != "" {
			t.Errorf("members (-want +got):\n%s", diff)
		}
	}
	load(t, c, options, `{"type":"person","distinct_ids":["x","y"]}`)
	want := []string{`[5, 1, "x+y+z"]`, `[5, 2, "x+y+z"]`, `[6, 7, "x+y+z"]`, `[8, 1, ""]`}
	if diff := cmp.Diff(want, ask(t, c, options.Project, computedToday)); diff != "" {
		t.Errorf("members after the second merge (-want +got):\n%s", diff)
	}
}

// TestMergesOfTwoMembers: a merged person is no longer a member, even if both were, and each is a member once.
func TestMergesOfTwoMembers(t *testing.T) {
	c := client(t)
	options := ingest.Options{Project: project(), Computed: []int64{5}}
	load(t, c, options, `{"type":"person","distinct_ids":["x"]}
{"type":"person","distinct_ids":["y"]}
{"type":"person","distinct_ids":["z"]}`)
	fill := func(version uint64) {
		t.Helper()
		err := c.Fill(t.Context(), clickhouse.Fill{
			Query: clickhouse.Query{SQL: "SELECT person_id FROM person_distinct_id2 WHERE distinct_id IN ('x', 'y')", Project: options.Project},
			Table: "cohortpeople", Columns: []string{"person_id"},
			Fixed: []clickhouse.FixedColumn{{Name: "cohort_id", Number: 5}, {Name: "version", Number: version}, {Name: "sign", Number: 1}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	fill(1)
	fill(2)
	fill(2) // as earlier versions left it after a merge
	for _, step := range []struct{ merge, member string }{
		{`{"type":"person","distinct_ids":["y","x"]}`, "x+y"},
		{`{"event":"$identify","distinct_id":"z","timestamp":"2024-01-02T00:00:00Z","properties":{"$anon_distinct_id":"x"}}`, "x+y+z"},
	} {
		load(t, c, options, step.merge)
		want := []string{`[5, 1, "` + step.member + `"]`, `[5, 2, "` + step.member + `"]`}
		if diff := cmp.Diff(want, ask(t, c, options.Project, computedToday)); diff != "" {
			t.Errorf("members after a merge into %s (-want +got):\n%s", step.member, diff)
		}
	}
	for _, sum := range ask(t, c, options.Project, "SELECT sum(sign) FROM cohortpeople WHERE version = 1 GROUP BY person_id HAVING sum(sign) != 0") {
		if sum != "[1]" {
			t.Errorf("the signs of a member have the sum %s, want 1", sum)
		}
	}
}
