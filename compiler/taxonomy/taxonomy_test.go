package taxonomy_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/compiler/taxonomy"
)

// TestQueries pins what is asked, and that names which callers give stand in it as constants.
func TestQueries(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		node *query.HogQL
		want string
	}{
		{"events", taxonomy.Events(), "SELECT event, min(timestamp), max(timestamp) FROM events GROUP BY event ORDER BY event LIMIT 50000"},
		{
			"cohorts", taxonomy.Cohorts(),
			"SELECT cohort_id, count(), sum(computed) FROM (SELECT cohort_id, person_id, max(source) AS computed FROM " +
				"(SELECT cohort_id, person_id, 0 AS source FROM static_cohort_people UNION ALL SELECT cohort_id, person_id, 1 AS source FROM cohort_people) " +
				"GROUP BY cohort_id, person_id) GROUP BY cohort_id ORDER BY cohort_id LIMIT 50000",
		},
		{
			"properties", taxonomy.Properties([]string{"a", "it's"}),
			`SELECT DISTINCT arrayJoin(JSONExtractKeys(properties)) FROM (SELECT properties FROM events WHERE event IN ['a', 'it\'s'] ` +
				"ORDER BY timestamp DESC LIMIT 1000) LIMIT 50000",
		},
		{
			"properties of no event", taxonomy.Properties(nil),
			"SELECT DISTINCT arrayJoin(JSONExtractKeys(properties)) FROM (SELECT properties FROM events WHERE event IN [] " +
				"ORDER BY timestamp DESC LIMIT 1000) LIMIT 50000",
		},
		{
			"values of events", taxonomy.EventValues("a.b'", []string{"a"}),
			`SELECT toString(properties['a.b\'']) AS value, count() FROM events WHERE event IN ['a'] AND toString(properties['a.b\'']) IS NOT NULL ` +
				"GROUP BY value ORDER BY count() DESC, value LIMIT 25",
		},
		{
			"values of people", taxonomy.PersonValues("email"),
			"SELECT toString(properties['email']) AS value, count() FROM persons WHERE toString(properties['email']) IS NOT NULL " +
				"GROUP BY value ORDER BY count() DESC, value LIMIT 25",
		},
	}
	env := compiler.Env{Database: &schema.Database{Project: 7, Location: time.UTC}, Now: time.Date(2024, 5, 31, 0, 0, 0, 0, time.UTC), MaxRows: 50_000}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			compiled, err := compiler.Compile(tt.node, env)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, compiled.HogQL); diff != "" {
				t.Errorf("query (-want +got):\n%s", diff)
			}
		})
	}
}
