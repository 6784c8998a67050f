package actors_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/actors"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/lifecycle"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/stickiness"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/trends"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

func build(t *testing.T, fields string) (*insight.Listing, error) {
	t.Helper()
	q := insighttest.Node[*actors.Query](t, `{"kind": "ActorsQuery"`+fields+`}`)
	w := insighttest.World()
	var people *insight.People
	if source, ok := q.Source.(query.PeopleSource); ok {
		var err error
		if people, err = peopleOf(source, w); err != nil {
			return nil, err
		}
	}
	return actors.Build(q, people, w, 50_000)
}

// peopleOf returns the query for the actors behind a number of an insight, for the kinds of insights in these tests.
func peopleOf(source query.PeopleSource, w *insight.World) (*insight.People, error) {
	switch q := source.Behind().(type) {
	case *stickiness.Query:
		return stickiness.Actors(q, source.(*stickiness.ActorsQuery), w)
	case *lifecycle.Query:
		return lifecycle.Actors(q, source.(*query.InsightActors), w)
	}
	return trends.Actors(source.Behind().(*trends.Query), source.(*query.InsightActors), w)
}

func mustBuild(t *testing.T, fields string) *insight.Listing {
	t.Helper()
	built, err := build(t, fields)
	if err != nil {
		t.Fatal(err)
	}
	return built
}

const (
	trend  = `{"kind": "TrendsQuery", "series": [{"event": "a"}], "breakdownFilter": {"breakdown": "b"}, "compareFilter": {"compare": true}}`
	groups = `{"kind": "TrendsQuery", "series": [{"event": "a", "math": "unique_group", "math_group_type_index": 2}]}`
	day    = `{"kind": "InsightActorsQuery", "day": "2020-01-08", "source": `
)

func TestColumns(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, fields string
		want         []string
	}{
		{"people", ``, []string{"person", "id", "person.$delete"}},
		{"people of a trend", `, "source": ` + day + trend + `}`, []string{"person", "id", "person.$delete", "event_distinct_ids"}},
		{"people of a stickiness", `, "source": {"kind": "StickinessActorsQuery", "source": {"kind": "StickinessQuery", "series": [{}]}}`, []string{"person", "id", "person.$delete"}},
		{"groups", `, "source": ` + day + groups + `}`, []string{"group"}},
		{"those of a trend, whatever else is selected", `, "select": ["id"], "source": ` + day + trend + `}`, []string{"id", "event_distinct_ids"}},
		{"those of a trend, where they are selected", `, "select": ["event_distinct_ids", "id"], "source": ` + day + trend + `}`, []string{"event_distinct_ids", "id"}},
		{"groups of a trend", `, "select": ["event_count"], "source": ` + day + groups + `}`, []string{"event_count"}},
		{"those of the query", `, "select": ["actor", "created_at -- Made"]`, []string{"actor", "created_at -- Made"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, mustBuild(t, tt.fields).Columns); diff != "" {
				t.Errorf("columns (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, fields, want string }{
		{"by id", `, "select": ["id", "is_identified"]`, "SELECT id AS column_1, is_identified AS column_2 FROM persons ORDER BY id LIMIT 101"},
		{"those made last", `, "select": ["id", "created_at"]`, "SELECT id AS column_1, created_at AS column_2 FROM persons ORDER BY created_at DESC, persons.id LIMIT 101"},
		{"by the first column", `, "select": ["properties.a"]`, "SELECT properties.a AS column_1 FROM persons ORDER BY properties.a, persons.id LIMIT 101"},
		{"as a person", `, "select": ["id"], "orderBy": ["person DESC"]`, "SELECT id AS column_1 FROM persons ORDER BY persons.properties.email DESC, persons.id LIMIT 101"},
		{
			"by the name shown, which is no column", `, "select": ["id"], "orderBy": ["person_display_name -- Person DESC"]`,
			"SELECT id AS column_1 FROM persons ORDER BY (coalesce(nullIf(toString(persons.properties.email), ''), nullIf(toString(persons.properties.name), ''), " +
				"nullIf(toString(persons.properties.username), ''), toString(persons.id)), toString(persons.id)) DESC, persons.id LIMIT 101",
		},
		{
			"by a column's own name", `, "select": ["id", "properties.a as b"], "orderBy": ["b desc", "lower(b)"], "limit": 60000, "offset": 3`,
			"SELECT id AS column_1, properties.a AS b FROM persons ORDER BY properties.a DESC, lower(b), persons.id LIMIT 50001 OFFSET 3",
		},
		{
			"the greatest groups", `, "select": ["properties.a", "count()", "max(created_at) as last"]`,
			"SELECT properties.a AS column_1, count() AS column_2, max(created_at) AS last FROM persons GROUP BY properties.a ORDER BY count() DESC, properties.a LIMIT 101",
		},
		{
			"the greatest counts", `, "select": ["properties.a", "max(created_at)", "count()"]`,
			"SELECT properties.a AS column_1, max(created_at) AS column_2, count() AS column_3 FROM persons GROUP BY properties.a ORDER BY count() DESC, properties.a LIMIT 101",
		},
		{"an empty order", `, "select": ["properties.a", "created_at"], "orderBy": []`, "SELECT properties.a AS column_1, created_at AS column_2 FROM persons ORDER BY persons.id LIMIT 101"},
		{"no order", `, "select": ["id", "created_at"], "orderBy": null`, "SELECT id AS column_1, created_at AS column_2 FROM persons ORDER BY created_at DESC, persons.id LIMIT 101"},
		{"invalid limits", `, "select": ["id"], "limit": -3, "offset": -1`, "SELECT id AS column_1 FROM persons ORDER BY id LIMIT 101"},
		{"recordings, of which there are none", `, "select": ["id", "matched_recordings"], "orderBy": ["id"]`, "SELECT id AS column_1, [] AS column_2 FROM persons ORDER BY id LIMIT 101"},
		{"a name that is one of ours", `, "select": ["id as actor_id", "id as x", "created_at as x"], "orderBy": ["id"]`, "SELECT id AS column_1, id AS x, created_at AS column_3 FROM persons ORDER BY id LIMIT 101"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, hogql.Print(mustBuild(t, tt.fields).Query)); diff != "" {
				t.Errorf("query (-want +got):\n%s", diff)
			}
		})
	}
}

func TestObjects(t *testing.T) {
	t.Parallel()
	const id = `"6f1bb2ab-1f7e-4f6c-9f0e-0b0a0c0d0e0f"`
	tests := []struct {
		name, fields, row, want string
		missing                 bool
	}{
		{
			"a person", `, "select": ["id", "person"]`,
			`[` + id + `, [` + id + `, 1, "{\"a\":[1]}", "2020-01-01T00:00:00Z", "true", ["x", "y"]]]`,
			`[` + id + `,{"id":` + id + `,"properties":{"a":[1]},"created_at":"2020-01-01T00:00:00Z","is_identified":true,"distinct_ids":["x", "y"]}]`, false,
		},
		{
			"a person of whom nothing is known", `, "select": ["actor"]`,
			`[[` + id + `, 0, "", "1970-01-01T00:00:00Z", "", []]]`, `[{"id":` + id + `}]`, true,
		},
		{
			"the same, with the ids of its events", `, "select": ["actor", "event_distinct_ids"], "source": ` + day + trend + `}`,
			`[[` + id + `, 0, "", "1970-01-01T00:00:00Z", "", [], ["x"]], ["x"]]`, `[{"id":` + id + `,"distinct_ids":["x"]},["x"]]`, true,
		},
		{
			"a group", `, "source": ` + day + groups + `}`,
			`[["org:1", 1, "{\"a\":1}", "{\"a\":1}", "2020-01-01T00:00:00Z"]]`,
			`[{"id":"org:1","type":"group","group_key":"org:1","group_type_index":2,"properties":{"a":1},"group_properties":{"a":1},"created_at":"2020-01-01T00:00:00Z"}]`, false,
		},
		{
			"a group of which nothing is known", `, "select": ["actor", "event_count"], "source": ` + day + groups + `}`,
			`[["org:1", 0, "", "", "1970-01-01T00:00:00Z"], 3]`, `[{"id":"org:1","group_type_index":2},3]`, true,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			built := mustBuild(t, tt.fields)
			got, err := built.Row([]byte(tt.row))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("row (-want +got):\n%s", diff)
			}
			if missing, err := built.Missing(got); err != nil || missing != tt.missing {
				t.Errorf("missing: %t, %v", missing, err)
			}
		})
	}
}

func TestOtherRows(t *testing.T) {
	t.Parallel()
	built := mustBuild(t, `, "select": ["person_display_name"]`)
	got, err := built.Row([]byte(`[["a@b.c", "i"]]`))
	if want := `[{"display_name":"a@b.c","id":"i"}]`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	if built.Missing != nil {
		t.Error("an answer without actors counts those that are missing")
	}
	if mustBuild(t, `, "select": ["id"]`).Row != nil {
		t.Error("rows without objects are changed too")
	}
	known := mustBuild(t, ``)
	for _, row := range []string{`[]`, `[[1], 2, 3]`, `[["i", 1, "{", "c", "true", []], "i", 1]`, `x`} {
		if got, err := known.Row([]byte(row)); err == nil {
			t.Errorf("row %s gives %s", row, got)
		}
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	drill := func(fields, source string) string {
		return `, "source": {"kind": "InsightActorsQuery"` + fields + `, "source": ` + source + `}`
	}
	lifecycle := `{"kind": "LifecycleQuery", "series": [{"event": "a"}]}`
	stickiness := func(fields, source string) string {
		return `, "source": {"kind": "StickinessActorsQuery"` + fields + `, "source": {"kind": "StickinessQuery", ` + source + `}}`
	}
	tests := []struct{ name, fields, want string }{
		{"half an expression", `, "select": ["id", "1 +"]`, "select.1: The HogQL expression is invalid: 3:3: Unexpected end of the expression, expected an expression"},
		{"properties of events", `, "properties": [{"type": "event", "key": "a", "value": 1}]`, "properties.0: People cannot be filtered by properties of type 'event': use person or hogql"},
		{"properties of groups", `, "fixedProperties": [{"type": "person", "key": "a", "value": 1}], "source": ` + day + groups + `}`, "fixedProperties: Groups cannot be filtered by properties here: put the filters into the insight"},
		{"no day", drill(``, trend), "source.day: A `day` is required for trends actors queries without total value aggregation"},
		{"a day of one number", drill(`, "day": "2020-01-08"`, `{"kind": "TrendsQuery", "series": [{}], "trendsFilter": {"display": "BoldNumber"}}`), "source.day: A `day` is forbidden for trends actors queries with total value aggregation"},
		{"a relative day", drill(`, "day": "-1d"`, trend), "source.day: The time '-1d' is not ISO 8601, such as 2026-01-31"},
		{"no such series", drill(`, "day": "2020-01-08", "series": 1`, trend), "source.series: The insight has no series 1"},
		{"nothing before", drill(`, "day": "2020-01-08", "compare": "previous"`, groups), "source.compare: The insight is not compared with a previous period"},
		{"half a value", drill(`, "day": "2020-01-08", "breakdown": ["x", "y"]`, trend), "source.breakdown: The insight has 1 breakdowns, this value has 2 parts"},
		{"a mistake in the insight", drill(`, "day": "2020-01-08"`, `{"kind": "TrendsQuery", "series": [{"math": "hogql", "math_hogql": "sum({x})"}]}`), "source.source.series.0.math_hogql: The aggregate expression cannot hold placeholders"},
		{"a lifecycle is not compared", drill(`, "compare": "previous"`, lifecycle), "source.compare: A lifecycle is not compared with a previous period"},
		{"no day of a lifecycle", drill(`, "day": "soon"`, lifecycle), "source.day: The time 'soon' is not ISO 8601, such as 2026-01-31"},
		{"no such series of a stickiness", stickiness(`, "series": 3`, `"series": [{}]`), "source.series: The insight has no series 3"},
		{"values of an expression", stickiness(``, `"series": [{"math": "hogql", "math_hogql": "event"}]`), "source.source.series.0.math: A series that counts the values of an expression has no actors"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := build(t, tt.fields)
			if diff := cmp.Diff(tt.want, insighttest.Mistake(t, err)); diff != "" {
				t.Errorf("mistake (-want +got):\n%s", diff)
			}
		})
	}
}
