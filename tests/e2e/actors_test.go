package e2e_test

import (
	"maps"
	"net/http"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// askActors requests a list of actors, and returns its rows.
func askActors(t *testing.T, c *harness.Client, fields map[string]any) (harness.Answer, [][]any) {
	t.Helper()
	node := map[string]any{"kind": "ActorsQuery"}
	maps.Copy(node, fields)
	answer := c.Do(t, http.MethodPost, "query/", map[string]any{"query": node})
	if answer.Status != http.StatusOK {
		t.Fatalf("%v: %d %s", node, answer.Status, answer.Raw)
	}
	list, _ := answer.Body["results"].([]any)
	rows := make([][]any, len(list))
	for i, row := range list {
		rows[i], _ = row.([]any)
	}
	return answer, rows
}

// TestActorsOfAPoint compares the number of actors behind each point of the demo's insights with the number of the point.
func TestActorsOfAPoint(t *testing.T) {
	c := demoProject(t)
	series := []any{map[string]any{"kind": "EventsNode", "event": "commit authored", "math": "dau"}}
	months := map[string]any{"date_from": "2023-01-01", "date_to": "2023-06-30"}
	insights := []struct {
		kind    string
		fields  map[string]any
		perItem map[string]string // field of the drill-down to the field of an item
	}{
		{"TrendsQuery", map[string]any{"interval": "month"}, nil},
		{"TrendsQuery", map[string]any{"interval": "week", "compareFilter": map[string]any{"compare": true}}, map[string]string{"compare": "compare_label"}},
		{
			"TrendsQuery",
			map[string]any{"interval": "month", "breakdownFilter": map[string]any{"breakdown": "is_fix", "breakdown_type": "event"}},
			map[string]string{"breakdown": "breakdown_value"},
		},
		{
			"TrendsQuery", map[string]any{"interval": "month", "trendsFilter": map[string]any{"display": "ActionsLineGraphCumulative"}}, nil,
		},
		{"LifecycleQuery", map[string]any{"interval": "month"}, map[string]string{"status": "status"}},
		{"StickinessQuery", map[string]any{"interval": "month"}, nil},
		{"StickinessQuery", map[string]any{"interval": "month", "stickinessFilter": map[string]any{"computedAs": "cumulative"}}, nil},
	}
	for i, insight := range insights {
		t.Run(strconv.Itoa(i)+" "+insight.kind, func(t *testing.T) {
			node := map[string]any{"kind": insight.kind, "series": series, "dateRange": months}
			maps.Copy(node, insight.fields)
			items := results(t, c, node)
			points := 0
			for _, item := range items {
				days, _ := item["days"].([]any)
				if item["compare_label"] == "previous" { // a point is identified by the bucket that it is compared with
					days, _ = items[0]["days"].([]any)
				}
				for k, want := range numbers(item["data"]) {
					if k >= len(days) {
						continue
					}
					want = max(want, -want)
					drill := map[string]any{"kind": "InsightActorsQuery", "source": node, "day": days[k]}
					if insight.kind == "StickinessQuery" {
						drill["kind"] = "StickinessActorsQuery"
					}
					for field, from := range insight.perItem {
						drill[field] = item[from]
					}
					answer, rows := askActors(t, c, map[string]any{"source": drill, "select": []string{"actor"}, "limit": 5000})
					if float64(len(rows)) != want {
						t.Errorf("%v of %v on %v has %d actors, want %v\n%s", insight.kind, drill["status"], days[k], len(rows), want, answer.Body["hogql"])
					}
					if answer.Body["missing_actors_count"] != 0.0 {
						t.Errorf("%v people are missing", answer.Body["missing_actors_count"])
					}
					if want > 0 {
						points++
					}
				}
			}
			if points < 5 {
				t.Errorf("only %d points have actors", points)
			}
		})
	}
}

// TestActorsAnswer checks an entire answer: columns, types, objects, pages.
func TestActorsAnswer(t *testing.T) {
	c := newProject(t)
	importLines(t, c, `{"type": "person", "distinct_ids": ["b", "a"], "properties": {"email": "b@x.example", "n": 2}, "created_at": "2024-01-01T00:00:00Z"}
{"type": "person", "distinct_ids": ["c"], "properties": {"email": "c@x.example"}, "created_at": "2024-01-02T00:00:00Z"}
{"type": "group", "group_type": "organization", "group_type_index": 0, "group_key": "org:1", "properties": {"name": "One"}, "created_at": "2024-01-03T00:00:00Z"}
{"event": "a", "distinct_id": "a", "timestamp": "2024-02-01T10:00:00Z", "properties": {"$group_0": "org:1"}}
{"event": "a", "distinct_id": "b", "timestamp": "2024-02-01T11:00:00Z", "properties": {"$group_0": "org:2"}}
{"event": "a", "distinct_id": "c", "timestamp": "2024-02-01T11:00:00Z"}
`)
	ids := map[any]any{}
	for _, row := range c.Query(t, "select properties.email, toString(id) from persons") {
		cells, _ := row.([]any)
		ids[cells[0]] = cells[1]
	}
	b := map[string]any{
		"id": ids["b@x.example"], "properties": map[string]any{"email": "b@x.example", "n": 2.0}, "created_at": "2024-01-01T00:00:00Z",
		"is_identified": false, "distinct_ids": []any{"a", "b"},
	}
	other := map[string]any{
		"id": ids["c@x.example"], "properties": map[string]any{"email": "c@x.example"}, "created_at": "2024-01-02T00:00:00Z",
		"is_identified": false, "distinct_ids": []any{"c"},
	}
	check := func(what string, fields map[string]any, want map[string]any) {
		t.Helper()
		answer, _ := askActors(t, c, fields)
		got := map[string]any{}
		for name := range want {
			got[name] = answer.Body[name]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	check("all people, the second page", map[string]any{"select": []string{"person", "created_at"}, "limit": 1, "offset": 1}, map[string]any{
		"results": []any{[]any{b, "2024-01-01T00:00:00Z"}}, "columns": []any{"person", "created_at"}, "types": []any{"UUID", "DateTime64(6, 'UTC')"},
		"hasMore": false, "limit": 1.0, "offset": 1.0, "missing_actors_count": 0.0,
	})
	check("without a column of actors", map[string]any{"select": []string{"properties.email"}, "orderBy": []string{"properties.email DESC"}, "limit": 1}, map[string]any{
		"results": []any{[]any{"c@x.example"}}, "hasMore": true, "missing_actors_count": nil,
	})
	for _, search := range []string{"B@X", ids["b@x.example"].(string)[:13], "a"} {
		want := []any{[]any{b}}
		if search == "a" { // also part of the address
			want = []any{[]any{b}, []any{other}}
		}
		check("people like "+search, map[string]any{"select": []string{"actor"}, "search": search, "orderBy": []string{"person"}}, map[string]any{"results": want})
	}
	check("people by a property", map[string]any{
		"select": []string{"id"}, "properties": []any{map[string]any{"type": "person", "key": "n", "operator": "gt", "value": 1}},
	}, map[string]any{"results": []any{[]any{ids["b@x.example"]}}})

	trend := map[string]any{
		"kind": "TrendsQuery", "dateRange": map[string]any{"date_from": "2024-02-01", "date_to": "2024-02-02"},
		"series": []any{map[string]any{"kind": "EventsNode", "event": "a", "math": "unique_group", "math_group_type_index": 0}},
	}
	drill := map[string]any{"kind": "InsightActorsQuery", "source": trend, "day": "2024-02-01"}
	check("groups, one of which is not known", map[string]any{"select": []string{"group", "event_count"}, "source": drill}, map[string]any{
		"results": []any{
			[]any{map[string]any{
				"id": "org:1", "type": "group", "group_key": "org:1", "group_type_index": 0.0, "created_at": "2024-01-03T00:00:00Z",
				"properties": map[string]any{"name": "One"}, "group_properties": map[string]any{"name": "One"},
			}, 1.0},
			[]any{map[string]any{"id": "org:2", "group_type_index": 0.0}, 1.0},
		},
		"types": []any{"String", "UInt64"}, "missing_actors_count": 1.0,
	})
	check("groups by a property", map[string]any{"select": []string{"key", "properties.name"}, "source": drill}, map[string]any{
		"results": []any{[]any{"org:1", "One"}},
	})
	trend["series"] = []any{map[string]any{"kind": "EventsNode", "event": "a"}}
	check("people of an insight with a property", map[string]any{
		"select": []string{"actor", "event_count", "properties.email"}, "orderBy": []string{"event_count DESC"}, "source": drill,
	}, map[string]any{"results": []any{[]any{b, 2.0, "b@x.example", []any{"a", "b"}}, []any{other, 1.0, "c@x.example", []any{"c"}}}})
	events := c.Do(t, http.MethodPost, "query/", map[string]any{"query": map[string]any{
		"kind": "EventsQuery", "select": []string{"distinct_id"}, "orderBy": []string{"distinct_id"}, "after": "all",
		"source": map[string]any{"kind": "StickinessActorsQuery", "day": 1, "source": map[string]any{
			"kind": "StickinessQuery", "dateRange": trend["dateRange"], "series": []any{map[string]any{
				"kind": "EventsNode", "event": "a", "properties": []any{map[string]any{"type": "event", "key": "$group_0", "value": "org:2"}},
			}},
		}},
	}})
	if diff := cmp.Diff([]any{[]any{"a"}, []any{"b"}}, events.Body["results"]); diff != "" {
		t.Errorf("all events of who sent one of them (-want +got):\n%s", diff)
	}
	check("people of a query, with a column of its own", map[string]any{
		"select": []string{"person", "n"}, "orderBy": []string{"n"},
		"source": map[string]any{"kind": "HogQLQuery", "query": "select person_id, count() as n from events group by person_id"},
	}, map[string]any{"results": []any{[]any{other, 1.0}, []any{b, 2.0}}, "missing_actors_count": 0.0})

	broken := c.Do(t, http.MethodPost, "query/", map[string]any{"query": map[string]any{
		"kind": "ActorsQuery", "source": map[string]any{"kind": "HogQLQuery", "query": "select person_id\nfrom evnts"},
	}})
	extra, _ := broken.Body["extra"].(map[string]any)
	if broken.Status != http.StatusBadRequest || extra["line"] != 2.0 || extra["hint"] != "events" {
		t.Errorf("a source with a mistake: %d %s", broken.Status, broken.Raw)
	}
	published := c.Do(t, http.MethodPost, "endpoints/", map[string]any{"name": "people", "query": map[string]any{"kind": "ActorsQuery"}})
	if published.Status != http.StatusBadRequest || published.Body["attr"] != "query" {
		t.Errorf("an endpoint over actors: %d %s", published.Status, published.Raw)
	}
}
