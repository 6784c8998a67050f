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

// TestQueries checks the queries, and that names from callers are constants in them.
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
			"properties by event", taxonomy.PropertiesByEvent(),
			"SELECT event, tupleElement(pair, 1) AS name, arraySort(groupUniqArray(substring(tupleElement(pair, 2), 1, 1))) FROM " +
				"(SELECT event, arrayJoin(JSONExtractKeysAndValuesRaw(properties)) AS pair FROM events WHERE uuid IN " +
				"(SELECT uuid FROM (SELECT event, timestamp, uuid FROM events ORDER BY timestamp DESC, uuid LIMIT 1000000) ORDER BY timestamp DESC, uuid " +
				"LIMIT 50 BY event LIMIT 1000000)) WHERE NOT startsWith(tupleElement(pair, 1), '$') AND tupleElement(pair, 2) != 'null' " +
				"GROUP BY event, name ORDER BY event, name LIMIT 50000",
		},
		{
			"values of events", taxonomy.EventValues("a.b'", []string{"a"}),
			`SELECT toString(properties['a.b\'']) AS value, count() FROM events WHERE event IN ['a'] AND toString(properties['a.b\'']) IS NOT NULL ` +
				"GROUP BY value ORDER BY count() DESC, value LIMIT 25",
		},
		{
			"properties of an action", taxonomy.ActionProperties(4),
			"SELECT DISTINCT arrayJoin(JSONExtractKeys(properties)) FROM (SELECT properties FROM events WHERE matchesAction(4) " +
				"ORDER BY timestamp DESC LIMIT 1000) LIMIT 50000",
		},
		{
			"values of an action", taxonomy.ActionValues("plan", 4),
			"SELECT toString(properties['plan']) AS value, count() FROM events WHERE matchesAction(4) AND toString(properties['plan']) IS NOT NULL " +
				"GROUP BY value ORDER BY count() DESC, value LIMIT 25",
		},
		{
			"values of groups", taxonomy.GroupValues("plan", 2),
			"SELECT toString(properties['plan']) AS value, count() FROM groups WHERE index = 2 AND toString(properties['plan']) IS NOT NULL " +
				"GROUP BY value ORDER BY count() DESC, value LIMIT 25",
		},
		{
			"values of people", taxonomy.PersonValues("email"),
			"SELECT toString(properties['email']) AS value, count() FROM persons WHERE toString(properties['email']) IS NOT NULL " +
				"GROUP BY value ORDER BY count() DESC, value LIMIT 25",
		},
	}
	noon := time.Date(2024, 3, 1, 12, 0, 0, 1000, time.UTC)
	tests = append(tests, []struct {
		name string
		node *query.HogQL
		want string
	}{
		{
			"a page of events",
			(&taxonomy.EventPage{Event: "a'", DistinctID: "d", Person: "p", After: noon, Before: noon, Limit: 3, Offset: 2}).Query(), "SELECT e.uuid, e.event, e.properties, e.timestamp, e.distinct_id, e.elements_chain, e.person_id, p.known, p.identified, p.email, p.name, p.username " +
				`FROM (SELECT uuid, event, properties, timestamp, distinct_id, elements_chain, person_id FROM events WHERE true AND event = 'a\'' AND distinct_id = ` +
				"'d' AND person_id = 'p' AND timestamp > toDateTime64('2024-03-01 12:00:00.000001', 6, 'UTC') AND timestamp < toDateTime64('2024-03-01 " +
				`12:00:00.000001', 6, 'UTC') AND timestamp >= (SELECT min(timestamp) FROM (SELECT timestamp FROM events WHERE true AND event = 'a\'' AND distinct_id = ` +
				"'d' AND person_id = 'p' AND timestamp > toDateTime64('2024-03-01 12:00:00.000001', 6, 'UTC') AND timestamp < toDateTime64('2024-03-01 " +
				"12:00:00.000001', 6, 'UTC') ORDER BY timestamp DESC, uuid LIMIT 5)) ORDER BY timestamp DESC, uuid LIMIT 3 OFFSET 2) AS e LEFT JOIN (SELECT id, 1 AS " +
				"known, if(is_identified, 1, 0) AS identified, properties.email AS email, properties.name AS name, properties.username AS username FROM persons WHERE " +
				"id IN (SELECT person_id FROM (SELECT uuid, event, properties, timestamp, distinct_id, elements_chain, person_id FROM events WHERE true AND event = " +
				`'a\'' AND distinct_id = 'd' AND person_id = 'p' AND timestamp > toDateTime64('2024-03-01 12:00:00.000001', 6, 'UTC') AND timestamp < ` +
				"toDateTime64('2024-03-01 12:00:00.000001', 6, 'UTC') AND timestamp >= (SELECT min(timestamp) FROM (SELECT timestamp FROM events WHERE true AND event " +
				`= 'a\'' AND distinct_id = 'd' AND person_id = 'p' AND timestamp > toDateTime64('2024-03-01 12:00:00.000001', 6, 'UTC') AND timestamp < ` +
				"toDateTime64('2024-03-01 12:00:00.000001', 6, 'UTC') ORDER BY timestamp DESC, uuid LIMIT 5)) ORDER BY timestamp DESC, uuid LIMIT 3 OFFSET 2))) AS p " +
				"ON p.id = e.person_id ORDER BY e.timestamp DESC, e.uuid LIMIT 3",
		},
		{"the oldest events", (&taxonomy.EventPage{Before: noon, OldestFirst: true, Limit: 3}).Query(), "SELECT e.uuid, e.event, e.properties, e.timestamp, e.distinct_id, e.elements_chain, e.person_id, p.known, p.identified, p.email, p.name, p.username " +
			"FROM (SELECT uuid, event, properties, timestamp, distinct_id, elements_chain, person_id FROM events WHERE true AND timestamp < " +
			"toDateTime64('2024-03-01 12:00:00.000001', 6, 'UTC') AND timestamp <= (SELECT max(timestamp) FROM (SELECT timestamp FROM events WHERE true AND " +
			"timestamp < toDateTime64('2024-03-01 12:00:00.000001', 6, 'UTC') ORDER BY timestamp, uuid LIMIT 3)) ORDER BY timestamp, uuid LIMIT 3 OFFSET 0) AS e " +
			"LEFT JOIN (SELECT id, 1 AS known, if(is_identified, 1, 0) AS identified, properties.email AS email, properties.name AS name, properties.username AS " +
			"username FROM persons WHERE id IN (SELECT person_id FROM (SELECT uuid, event, properties, timestamp, distinct_id, elements_chain, person_id FROM " +
			"events WHERE true AND timestamp < toDateTime64('2024-03-01 12:00:00.000001', 6, 'UTC') AND timestamp <= (SELECT max(timestamp) FROM (SELECT timestamp " +
			"FROM events WHERE true AND timestamp < toDateTime64('2024-03-01 12:00:00.000001', 6, 'UTC') ORDER BY timestamp, uuid LIMIT 3)) ORDER BY timestamp, " +
			"uuid LIMIT 3 OFFSET 0))) AS p ON p.id = e.person_id ORDER BY e.timestamp, e.uuid LIMIT 3"},
		{"one event", taxonomy.OneEvent("u"), "SELECT e.uuid, e.event, e.properties, e.timestamp, e.distinct_id, e.elements_chain, e.person_id, p.known, p.identified, p.email, p.name, p.username " +
			"FROM (SELECT uuid, event, properties, timestamp, distinct_id, elements_chain, person_id FROM events WHERE uuid = 'u' ORDER BY timestamp DESC LIMIT 1) " +
			"AS e LEFT JOIN (SELECT id, 1 AS known, if(is_identified, 1, 0) AS identified, properties.email AS email, properties.name AS name, properties.username " +
			"AS username FROM persons WHERE id IN (SELECT person_id FROM (SELECT uuid, event, properties, timestamp, distinct_id, elements_chain, person_id FROM " +
			"events WHERE uuid = 'u' ORDER BY timestamp DESC LIMIT 1))) AS p ON p.id = e.person_id ORDER BY e.timestamp LIMIT 1"},
		{"when a person was last seen", taxonomy.LastSeen("p"), "SELECT max(timestamp) AS latest FROM events WHERE person_id = 'p' HAVING count() > 0 LIMIT 101"},
		{"the cohorts of a person", taxonomy.CohortsOf("p"), "SELECT DISTINCT cohort_id FROM (SELECT cohort_id, person_id FROM static_cohort_people UNION ALL SELECT cohort_id, person_id FROM cohort_people) WHERE " +
			"person_id = 'p' ORDER BY cohort_id LIMIT 50000"},
		{"recent values", (&taxonomy.RecentValues{Property: "a'"}).Query(), `SELECT toString(properties['a\'']) AS value, count() FROM events WHERE timestamp > now() - INTERVAL 7 day AND toString(properties['a\'']) IS NOT NULL ` +
			`AND toString(properties['a\'']) != '' GROUP BY value ORDER BY count() DESC, value LIMIT 10`},
		{
			"recent values of a column",
			(&taxonomy.RecentValues{Property: "b", Column: "event", Search: "50%", Events: []string{"a"}, Others: map[string][]string{"c": {"d"}}}).Query(), `SELECT event AS value, count() FROM events WHERE timestamp > now() - INTERVAL 7 day AND event IS NOT NULL AND event != '' AND event ILIKE '%50\\%%' ` +
				"AND event IN ['a'] AND toString(properties['c']) IN ['d'] GROUP BY value ORDER BY length(value), value LIMIT 10",
		},
		{"values of people to choose from", taxonomy.SuggestedPersonValues("plan", "PRO_"), "SELECT toString(properties['plan']) AS value, count() FROM persons WHERE toString(properties['plan']) IS NOT NULL AND toString(properties['plan']) != " +
			`'' AND toString(properties['plan']) ILIKE '%PRO\\_%' GROUP BY value ORDER BY count() DESC, value LIMIT 20`},
	}...)
	for _, f := range taxonomy.SessionFields() {
		tests = append(tests, []struct {
			name string
			node *query.HogQL
			want string
		}{{"values of a session's " + f.Name, taxonomy.SessionValues(f.Name), "SELECT toString(" + f.Name + ") AS value, count() FROM sessions WHERE $start_timestamp > now() - INTERVAL 7 day " +
			"AND toString(" + f.Name + ") IS NOT NULL GROUP BY value ORDER BY count() DESC, value LIMIT 25"}}...)
	}
	env := compiler.Env{
		Database: &schema.Database{Project: 7, Location: time.UTC}, Now: time.Date(2024, 5, 31, 0, 0, 0, 0, time.UTC), MaxRows: 50_000,
		Actions: query.NewActions([]query.Action{{ID: 4, Name: "four"}}),
	}
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
