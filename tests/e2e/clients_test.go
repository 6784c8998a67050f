package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// These tests replay requests of PostHog's own clients, recorded while the clients ran against this server. docs/api.md lists them.

// object parses JSON in the source of the tests.
func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out
}

// terraform is a resource managed by the provider.
type terraform struct {
	client *harness.Client
	list   string // insights/ or dashboards/
	path   string // of the resource, once it exists
}

// apply brings the resource into a state: by POST, then by PATCH. The answer and the next read must show what was sent, otherwise the provider finds
// a difference between its plan and the server.
func (r *terraform) apply(t *testing.T, state map[string]any) {
	t.Helper()
	var answer map[string]any
	if r.path == "" {
		answer = mustDo(t, r.client, http.StatusCreated, http.MethodPost, r.list, state)
		id, _ := answer["id"].(float64)
		r.path = fmt.Sprintf("%s%.0f/", r.list, id)
	} else {
		state["deleted"] = false
		answer = mustDo(t, r.client, http.StatusOK, http.MethodPatch, r.path, state)
	}
	for from, got := range map[string]map[string]any{"the answer": answer, "the next read": mustDo(t, r.client, http.StatusOK, http.MethodGet, r.path, nil)} {
		if diff := cmp.Diff(any(state), harness.Only(state, got)); diff != "" {
			t.Errorf("%s differs from what was sent (-want +got):\n%s", from, diff)
		}
	}
}

// destroy deletes the resource; a read afterwards must say that it is gone.
func (r *terraform) destroy(t *testing.T) {
	t.Helper()
	mustDo(t, r.client, http.StatusOK, http.MethodPatch, r.path, map[string]any{"deleted": true})
	if answer := r.client.Do(t, http.MethodGet, r.path, nil); answer.Status != http.StatusNotFound {
		t.Errorf("%s answers %d after it was deleted: %s", r.path, answer.Status, answer.Raw)
	}
}

// TestTerraformProvider replays the acceptance tests of the provider's insights, dashboards and alerts, and of project settings: each resource passes through
// its states, and is destroyed if it can be.
func TestTerraformProvider(t *testing.T) {
	c := newProject(t)
	c.Header = http.Header{"User-Agent": {"posthog/terraform-provider; version: test"}}
	board := func() float64 {
		id, _ := mustDo(t, c, http.StatusCreated, http.MethodPost, "dashboards/", map[string]any{"name": "board", "pinned": false})["id"].(float64)
		return id
	}
	first, second := board(), board()
	const pageviews = `"query": {"kind": "InsightVizNode", "source": {"kind": "TrendsQuery", "series": [
		{"event": "$pageview", "kind": "EventsNode", "math": "total", "name": "$pageview"}]}}`
	source := func(text string) []string {
		return []string{`{"name": "x", "description": "a query", "query": {"kind": "InsightVizNode", "source": ` + text + `}}`}
	}
	tests := []struct {
		name, list string
		states     []string
	}{
		{"basic", "insights/", []string{`{"name": "x", ` + pageviews + `}`}},
		{"all fields", "insights/", []string{`{"name": "x", "derived_name": "Custom derived name", "description": "d", "tags": ["env:test", "managed-by:terraform"], ` + pageviews + `}`}},
		{"trends", "insights/", source(`{"interval": "day", "kind": "TrendsQuery", "series": [{"event": "$pageview", "kind": "EventsNode", "math": "total", "name": "$pageview"}],
			"trendsFilter": {"display": "ActionsLineGraph", "showLegend": true}}`)},
		{"funnel", "insights/", source(`{"funnelsFilter": {"funnelVizType": "steps"}, "kind": "FunnelsQuery",
			"series": [{"event": "$pageview", "kind": "EventsNode", "name": "$pageview"}, {"event": "$autocapture", "kind": "EventsNode", "name": "$autocapture"}]}`)},
		{"retention", "insights/", source(`{"kind": "RetentionQuery", "retentionFilter": {"period": "Day", "retentionType": "retention_first_time",
			"returningEntity": {"id": "$pageview", "name": "$pageview", "type": "events"}, "targetEntity": {"id": "$pageview", "name": "$pageview", "type": "events"}, "totalIntervals": 7}}`)},
		{"lifecycle", "insights/", source(`{"kind": "LifecycleQuery", "lifecycleFilter": {}, "series": [{"event": "$pageview", "kind": "EventsNode", "name": "$pageview"}]}`)},
		{"paths", "insights/", source(`{"kind": "PathsQuery", "pathsFilter": {"includeEventTypes": ["$pageview"]}}`)},
		{"names and descriptions come and go", "insights/", []string{
			`{"name": "x", "description": "initial", ` + pageviews + `}`, `{"name": "x-updated", "description": "initial", ` + pageviews + `}`,
			`{"name": "x-updated", "description": "", ` + pageviews + `}`, `{"name": "", ` + pageviews + `}`, `{"name": "x-restored", ` + pageviews + `}`,
		}},
		{"tags", "insights/", []string{
			`{"name": "x", "tags": ["tag1", "tag2"], ` + pageviews + `}`, `{"name": "x", "tags": ["tag1", "tag2", "tag3"], ` + pageviews + `}`,
			`{"name": "x", "tags": ["tag1"], ` + pageviews + `}`,
		}},
		{"from one dashboard to another", "insights/", []string{
			fmt.Sprintf(`{"name": "x", "dashboards": [%.0f], %s}`, second, pageviews), fmt.Sprintf(`{"name": "x", "dashboards": [%.0f], %s}`, first, pageviews),
			fmt.Sprintf(`{"name": "x", "dashboards": [%.0f, %.0f], %s}`, first, second, pageviews),
		}},
		{"a dashboard", "dashboards/", []string{
			`{"name": "x", "description": "d", "pinned": true, "tags": ["env:test", "managed-by:terraform"]}`,
			`{"name": "x-updated", "description": "", "pinned": false, "tags": ["env:test"]}`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &terraform{client: c, list: tt.list}
			for _, state := range tt.states {
				r.apply(t, object(t, state))
			}
			r.destroy(t)
		})
	}
	t.Run("drift", func(t *testing.T) {
		r := &terraform{client: c, list: "insights/"}
		state := object(t, `{"name": "x", `+pageviews+`}`)
		r.apply(t, state)
		mustDo(t, c, http.StatusOK, http.MethodPatch, r.path, map[string]any{"name": "changed by hand"})
		if got := mustDo(t, c, http.StatusOK, http.MethodGet, r.path, nil); got["name"] != "changed by hand" {
			t.Errorf("the change is not seen: %v", got["name"])
		}
		r.apply(t, state)
		r.destroy(t)
	})
	t.Run("places of tiles", func(t *testing.T) {
		place := func(color string) map[string]any {
			return object(t, `{"layouts": {"sm": {"x": 0, "y": 0, "w": 6, "h": 5}, "xs": {"x": 0, "y": 0, "w": 1, "h": 5}}, "color": "`+color+`", "show_description": false}`)
		}
		saveInsight(t, c, object(t, fmt.Sprintf(`{"name": "x", "dashboards": [%.0f], %s}`, first, pageviews)))
		path := fmt.Sprintf("dashboards/%.0f/", first)
		tile := func(body map[string]any) map[string]any {
			tiles, _ := body["tiles"].([]any)
			if len(tiles) != 1 {
				t.Fatalf("the dashboard has the tiles %v", tiles)
			}
			found, _ := tiles[0].(map[string]any)
			return found
		}
		for _, color := range []string{"blue", "green"} {
			want := place(color)
			sent := place(color)
			sent["id"] = tile(mustDo(t, c, http.StatusOK, http.MethodGet, path, nil))["id"]
			got := tile(mustDo(t, c, http.StatusOK, http.MethodPatch, path, map[string]any{"tiles": []any{sent}}))
			if diff := cmp.Diff(any(want), harness.Only(want, got)); diff != "" {
				t.Errorf("tile (-want +got):\n%s", diff)
			}
		}
	})
	t.Run("text tiles", func(t *testing.T) {
		path := fmt.Sprintf("dashboards/%.0f/", board())
		text := func(body string) map[string]any {
			return object(t, `{"layouts": {"sm": {"x": 0, "y": 0, "w": 6, "h": 2}}, "color": "", "show_description": null, "text": {"body": "`+body+`"}}`)
		}
		// apply sends a tile, and expects the dashboard to have what is wanted and nothing else.
		apply := func(sent, want map[string]any) (id any) {
			t.Helper()
			answer := mustDo(t, c, http.StatusOK, http.MethodPatch, path, map[string]any{"tiles": []any{sent}})
			for from, got := range map[string]map[string]any{"the answer": answer, "the next read": mustDo(t, c, http.StatusOK, http.MethodGet, path, nil)} {
				tiles, _ := got["tiles"].([]any)
				if want == nil && len(tiles) == 0 {
					continue
				}
				if want == nil || len(tiles) != 1 {
					t.Fatalf("%s has the tiles %v", from, tiles)
				}
				tile, _ := tiles[0].(map[string]any)
				if diff := cmp.Diff(any(want), harness.Only(want, tile)); diff != "" {
					t.Errorf("%s differs from what was sent (-want +got):\n%s", from, diff)
				}
				id = tile["id"]
			}
			return id
		}
		id := apply(text("# Hello"), text("# Hello"))
		changed := text("# Goodbye")
		changed["id"] = id
		apply(changed, changed)
		apply(map[string]any{"id": id, "deleted": true}, nil)
	})
	environment := fmt.Sprintf("/api/environments/%d/", c.Project)
	t.Run("an alert", func(t *testing.T) {
		_, insight := saveInsight(t, c, object(t, `{"name": "x", `+pageviews+`}`))
		path := environment + "alerts/"
		state := func(more string) map[string]any {
			return object(t, `{"name": "x", "subscribed_users": [], "condition": {"type": "absolute_value"}, "config": {"type": "TrendsAlertConfig", "series_index": 0`+more+`}`)
		}
		for at, want := range []map[string]any{
			state(`}, "threshold": {"configuration": {"type": "absolute", "bounds": {"upper": 100}}}`),
			state(`, "check_ongoing_interval": true}, "threshold": {"configuration": {"type": "absolute", "bounds": {"lower": 10, "upper": 100}}},
				"enabled": true, "calculation_interval": "daily", "skip_weekend": false`),
		} {
			method, status := http.MethodPatch, http.StatusOK
			if at == 0 {
				method, status = http.MethodPost, http.StatusCreated
			}
			want["insight"] = insight
			answer := mustDo(t, c, status, method, path, want)
			if at == 0 {
				path += fmt.Sprint(answer["id"], "/")
			}
			want["insight"] = map[string]any{"id": insight}
			for from, got := range map[string]map[string]any{"the answer": answer, "the next read": mustDo(t, c, http.StatusOK, http.MethodGet, path, nil)} {
				if diff := cmp.Diff(any(want), harness.Only(want, got)); diff != "" {
					t.Errorf("%s differs from what was sent (-want +got):\n%s", from, diff)
				}
			}
		}
		mustDo(t, c, http.StatusNoContent, http.MethodDelete, path, nil)
		if answer := c.Do(t, http.MethodGet, path, nil); answer.Status != http.StatusNotFound {
			t.Errorf("the alert answers %d after it was deleted: %s", answer.Status, answer.Raw)
		}
	})
	t.Run("project settings", func(t *testing.T) {
		c := c.Server.Client(c.Project, c.Server.Key(t, c.Project, "project:write", "personal"))
		for _, want := range []map[string]any{
			object(t, `{"heatmaps_opt_in": true, "autocapture_exceptions_opt_in": true, "session_recording_opt_in": true, "surveys_opt_in": true,
				"autocapture_web_vitals_opt_in": false, "cookieless_server_hash_mode": 0}`),
			object(t, `{"app_urls": ["https://app.example.com", "https://www.example.com"], "recording_domains": ["https://app.example.com"]}`),
		} {
			answer := mustDo(t, c, http.StatusOK, http.MethodPatch, environment, want)
			for from, got := range map[string]map[string]any{"the answer": answer, "the next read": mustDo(t, c, http.StatusOK, http.MethodGet, environment, nil)} {
				if diff := cmp.Diff(any(want), harness.Only(want, got)); diff != "" {
					t.Errorf("%s differs from what was sent (-want +got):\n%s", from, diff)
				}
			}
		}
	})
}

// TestMCPServer replays the tools of PostHog's MCP server: finding the project, running queries, and saving insights.
func TestMCPServer(t *testing.T) {
	c := sixEvents(t)
	c.Header = http.Header{"User-Agent": {"posthog/mcp-server"}, "X-Posthog-Client": {"mcp"}}
	get := func(path string) map[string]any {
		t.Helper()
		return mustDo(t, c, http.StatusOK, http.MethodGet, path, nil)
	}

	// The organization and the project are the user's, unless the key names others.
	key, me := get("/api/personal_api_keys/@current"), get("/api/users/@me/")
	own, _ := me["organization"].(map[string]any)
	team, _ := me["team"].(map[string]any)
	organizations, _ := key["scoped_organizations"].([]any)
	if !reflect.DeepEqual(key["scoped_teams"], []any{}) || !slices.Contains(organizations, own["id"]) || team["id"] != float64(c.Project) {
		t.Fatalf("the key tells %v, the user %v of %v", key, team, own)
	}
	organization := fmt.Sprintf("/api/organizations/%v/", own["id"])
	for _, path := range []string{organization, fmt.Sprintf("/api/projects/%d/", c.Project)} {
		if got := get(path)["name"]; got != t.Name() {
			t.Errorf("%s has the name %v", path, got)
		}
	}
	for _, path := range []string{"/api/organizations/", organization + "projects/"} {
		if results, _ := get(path)["results"].([]any); len(results) != 1 {
			t.Errorf("%s lists %v", path, results)
		}
	}

	run := func(query any) map[string]any {
		t.Helper()
		return mustDo(t, c, http.StatusOK, http.MethodPost, fmt.Sprintf("/api/environments/%d/query/", c.Project), map[string]any{"query": query})
	}
	const march = `"dateRange": {"date_from": "2024-03-01", "date_to": "2024-03-03"}`
	const trend = `{"kind": "TrendsQuery", "series": [{"kind": "EventsNode", "event": "$pageview", "math": "total"}], ` + march + `, "interval": "day"}`
	actors := func(selected, source string) string {
		return `{"kind": "ActorsQuery", "select": [` + selected + `], "orderBy": ["event_count DESC", "actor_id DESC"], "limit": 100, "offset": 0, "source": ` + source + `}`
	}
	const group = `{"kind": "GroupNode", "operator": "OR", "name": "either", "nodes": [
		{"kind": "EventsNode", "event": "$pageview", "name": "Pageview", "properties": [{"key": "path", "operator": "exact", "type": "event", "value": ["/a"]}]},
		{"kind": "EventsNode", "event": "$pageleave", "name": "Pageleave", "properties": [{"key": "path", "operator": "exact", "type": "event", "value": ["/b"]}]}]}`
	tests := []struct{ name, query, want string }{
		{
			"SQL", `{"kind": "DataVisualizationNode", "source": {"kind": "HogQLQuery", "query": "SELECT event, count() AS event_count FROM events WHERE {filters} GROUP BY event",
				"filters": {"dateRange": {"date_from": "2024-03-01", "date_to": null}}}}`,
			`[["$pageview", 6]]`,
		},
		{
			"a funnel until today", `{"kind": "InsightVizNode", "source": {"kind": "FunnelsQuery", "series": [{"kind": "EventsNode", "event": "$pageview", "custom_name": "View",
				"properties": [{"key": "path", "type": "event", "value": "a", "operator": "icontains"}]}, {"kind": "EventsNode", "event": "$pageview", "custom_name": "Again"}],
				"dateRange": {"date_from": "2024-03-01", "date_to": "today"}, "properties": [], "filterTestAccounts": true, "funnelsFilter": {"layout": "vertical",
				"breakdownAttributionType": "first_touch", "funnelOrderType": "ordered", "funnelVizType": "steps", "funnelWindowInterval": 24,
				"funnelWindowIntervalUnit": "hour", "funnelStepReference": "total"}}}`,
			`[{"count": 1, "custom_name": "View"}, {"count": 1, "custom_name": "Again"}]`,
		},
		{"trends", trend, `[{"data": [2, 2, 2]}]`},
		{"a group of events", `{"kind": "TrendsQuery", "series": [` + group + `], ` + march + `}`, `[{"data": [1, 1, 1]}]`},
		{
			"retention", `{"kind": "RetentionQuery", ` + march + `, "retentionFilter": {"targetEntity": {"id": "$pageview", "type": "events"},
				"returningEntity": {"id": "$pageview", "type": "events"}, "period": "Day", "totalIntervals": 3}}`,
			`[{"values": [{"count": 1}, {"count": 1}, {"count": 1}]}, {"label": "Day 1"}, {"label": "Day 2"}]`,
		},
		{"stickiness", `{"kind": "StickinessQuery", "series": [{"kind": "EventsNode", "event": "$pageview"}], ` + march + `}`, `[{"data": [0, 0, 1]}]`},
		{
			"lifecycle", `{"kind": "LifecycleQuery", "series": [{"kind": "EventsNode", "event": "$pageview"}], ` + march + `, "lifecycleFilter": {"toggledLifecycles": ["new", "dormant"]}}`,
			`[{"status": "new"}, {"status": "returning"}, {"status": "resurrecting"}, {"status": "dormant"}]`,
		},
		{
			"who is behind a point", actors(`"actor", "event_count", "matched_recordings"`, `{"kind": "InsightActorsQuery", "source": `+trend+`, "day": "2024-03-02", "series": 0, "includeRecordings": true}`),
			`[[{"distinct_ids": ["ann"]}, 2, [], ["ann"]]]`,
		},
		{
			"who was retained", `{"kind": "ActorsQuery", "select": ["person", "day_0", "day_1"], "orderBy": ["length(appearances) DESC", "actor_id"], "limit": 10, "offset": 0,
				"source": {"kind": "InsightActorsQuery", "interval": 0, "source": {"kind": "RetentionQuery", ` + march + `, "retentionFilter": {"period": "Day", "totalIntervals": 2,
				"targetEntity": {"id": "$pageview", "name": "Pageview", "type": "events"}, "returningEntity": {"id": "$pageview", "name": "Pageview", "type": "events"}}}}}`,
			`[[{"distinct_ids": ["ann"]}, 1, 1]]`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var want any
			if err := json.Unmarshal([]byte(tt.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, harness.Only(want, run(object(t, tt.query))["results"])); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
		})
	}

	// It gets text to pass on to the model, and other clients do not, even if the answer is cached.
	other := *c
	other.Header = nil
	for _, client := range []*harness.Client{c, &other, c} {
		answer := mustDo(t, client, http.StatusOK, http.MethodPost, "query/", map[string]any{"query": object(t, trend)})
		var want any
		if client == c {
			want = "date|$pageview\n2024-03-01|2\n2024-03-02|2\n2024-03-03|2"
		}
		if diff := cmp.Diff(want, answer["formatted_results"]); diff != "" {
			t.Errorf("formatted_results (-want +got):\n%s", diff)
		}
	}
	if text := run(hogQL("select event as name, count() from events group by event"))["formatted_results"]; text != "name|count()\n$pageview|6" {
		t.Errorf("SQL as text: %q", text)
	}

	t.Run("tools that run here", func(t *testing.T) {
		action := mustDo(t, c, http.StatusCreated, http.MethodPost, "actions/", object(t, `{"name": "b", "steps": [{"event": "$pageview", "properties": [{"key": "path", "value": "/b", "type": "event"}]}]}`))["id"]
		environment := fmt.Sprintf("/api/environments/%d/mcp_tools/", c.Project)
		for _, tt := range []struct {
			tool, args string
			success    bool
			content    string
		}{
			{"execute_sql", `{"query": "select event, count() as n from events group by event", "truncate": true}`, true, "event|n\n$pageview|6"},
			{"execute_sql", `{"query": "select number from numbers(200) limit 1"}`, true, "number\n0"},
			{"execute_sql", `{"query": "select length(value), value from (select repeat('a', 501) as value)", "truncate": false}`, true, "length(value)|value\n501|" + strings.Repeat("a", 501)},
			{"execute_sql", `{"query": "select repeat('a', 501) as value"}`, true, "value\n" + strings.Repeat("a", 500) + "…"},
			{"execute_sql", `{"query": "select nothing from events"}`, false, "Unable to resolve field: nothing"},
			{"execute_sql", `{"query": "select 1", "connectionId": "x"}`, false, "There are no other connections than the project's own data."},
			{"read_taxonomy", `{"query": {"kind": "events", "limit": 500, "offset": 0}}`, true, "event|last_seen_at\n$pageview|2024-03-03T10:00:00Z"},
			{"read_taxonomy", `{"query": {"kind": "events", "offset": 1}}`, true, "event|last_seen_at"},
			{"read_taxonomy", `{"query": {"kind": "event_properties", "event_name": "$pageview"}}`, true, "property|type\npath|String"},
			{"read_taxonomy", `{"query": {"kind": "event_property_values", "event_name": ["$pageview", "it's"], "property_name": "path"}}`, true, "value|events\n/a|3\n/b|3"},
			{"read_taxonomy", `{"query": {"kind": "entity_properties", "entity": "person"}}`, true, "property|type"},
			{"read_taxonomy", `{"query": {"kind": "entity_properties", "entity": "company"}}`, false, `There is no entity "company" here.`},
			{"read_taxonomy", `{"query": {"kind": "entity_property_values", "entity": "persons", "property_name": "it's"}}`, true, "value|persons"},
			{"read_taxonomy", `{"query": {"kind": "entity_property_values", "entity": "company", "property_name": "plan"}}`, false, `There is no entity "company" here.`},
			{"read_taxonomy", `{"query": {"kind": "entity_property_values", "entity": "session", "property_name": "$entry_pathname"}}`, true, "value|sessions"},
			{"read_taxonomy", `{"query": {"kind": "entity_property_values", "entity": "session", "property_name": "plan"}}`, false, `Sessions have no property "plan".`},
			{"read_taxonomy", fmt.Sprintf(`{"query": {"kind": "action_properties", "action_id": %v}}`, action), true, "property|type\npath|String"},
			{"read_taxonomy", fmt.Sprintf(`{"query": {"kind": "action_property_values", "action_id": %v, "property_name": "path"}}`, action), true, "value|events\n/b|3"},
			{"read_taxonomy", `{"query": {"kind": "action_properties", "action_id": 99}}`, false, "Could not find an action with the ID 99"},
			{"read_taxonomy", `{"query": {"kind": "actions"}}`, false, `There is no "actions" here: read events, event_properties, event_property_values, action_properties, action_property_values, entity_properties or entity_property_values.`},
		} {
			answer := mustDo(t, c, http.StatusOK, http.MethodPost, environment+tt.tool+"/", map[string]any{"args": object(t, tt.args)})
			if diff := cmp.Diff(map[string]any{"success": tt.success, "content": tt.content}, answer); diff != "" {
				t.Errorf("%s %s (-want +got):\n%s", tt.tool, tt.args, diff)
			}
		}
		if text := mustDo(t, c, http.StatusOK, http.MethodPost, environment+"execute_sql", map[string]any{"args": map[string]any{"query": "select number from numbers(200)"}})["content"]; !strings.HasSuffix(fmt.Sprint(text), "\n99\n\nThere are more rows than these 100: give the query a LIMIT and an OFFSET.") {
			t.Errorf("more rows than a page: %q", text)
		}
	})

	t.Run("dashboards", func(t *testing.T) {
		board := mustDo(t, c, http.StatusCreated, http.MethodPost, "dashboards/", map[string]any{"name": "Results"})
		path := fmt.Sprintf("dashboards/%.0f/", board["id"])
		for _, query := range []map[string]any{object(t, trend), hogQL("select count() from events")} {
			saveInsight(t, c, map[string]any{"name": "x", "query": wrapped(query), "dashboards": []any{board["id"]}})
		}
		for form, want := range map[string][]any{
			"json":      {[]any{map[string]any{"data": []any{2.0, 2.0, 2.0}}}, []any{[]any{6.0}}},
			"optimized": {"date|$pageview\n2024-03-01|2\n2024-03-02|2\n2024-03-03|2", "count()\n6"},
		} {
			results, _ := get(path + "run_insights/?refresh=blocking&output_format=" + form)["results"].([]any)
			var got []any
			for _, r := range results {
				tile, _ := r.(map[string]any)
				insight, _ := tile["insight"].(map[string]any)
				got = append(got, insight["result"])
			}
			if diff := cmp.Diff(any(want), harness.Only(any(want), any(got))); diff != "" {
				t.Errorf("run_insights as %s (-want +got):\n%s", form, diff)
			}
		}
		places := func(body map[string]any) (ids []any, at []string) {
			tiles, _ := body["tiles"].([]any)
			for _, tile := range tiles {
				record, _ := tile.(map[string]any)
				layouts, _ := record["layouts"].(map[string]any)
				sm, _ := layouts["sm"].(map[string]any)
				ids = append(ids, record["id"])
				at = append(at, fmt.Sprint(sm["x"], sm["y"], sm["w"], sm["h"]))
			}
			return ids, at
		}
		ids, _ := places(get(path))
		slices.Reverse(ids)
		for layout, want := range map[string][]string{"two_column": {"0 0 6 5", "6 0 6 5"}, "full_width": {"0 0 12 5", "0 5 12 5"}} {
			after, at := places(mustDo(t, c, http.StatusOK, http.MethodPost, path+"reorder_tiles/", map[string]any{"tile_order": ids, "layout": layout}))
			if diff := cmp.Diff(ids, after) + cmp.Diff(want, at); diff != "" {
				t.Errorf("%s (-want +got):\n%s", layout, diff)
			}
		}
		if answer := c.Do(t, http.MethodPost, path+"reorder_tiles/", map[string]any{"tile_order": []any{0}}); answer.Status != http.StatusNotFound {
			t.Errorf("the order of an unknown tile answers %d: %s", answer.Status, answer.Raw)
		}
		for _, order := range [][]any{{}, {ids[0], ids[0]}} {
			if answer := c.Do(t, http.MethodPost, path+"reorder_tiles/", map[string]any{"tile_order": order}); answer.Status != http.StatusBadRequest || answer.Body["attr"] != "tile_order" {
				t.Errorf("the order %v answers %d: %s", order, answer.Status, answer.Raw)
			}
		}
	})

	t.Run("saved", func(t *testing.T) {
		made := mustDo(t, c, http.StatusCreated, http.MethodPost, "insights/", map[string]any{"name": "Views", "query": object(t, trend), "saved": true})
		if diff := cmp.Diff(any(wrapped(object(t, trend))), made["query"]); diff != "" {
			t.Errorf("a bare query is not shown by a node (-want +got):\n%s", diff)
		}
		found, _ := get("insights/?short_id=" + fmt.Sprint(made["short_id"]))["results"].([]any)
		if len(found) != 1 {
			t.Fatalf("%v finds %v", made["short_id"], found)
		}
		// The query that runs is the one shown, with the overrides applied.
		path := fmt.Sprintf("insights/%.0f/", made["id"])
		shown := get(path + "?" + url.Values{"filters_override": {`{"date_from": "2024-03-03", "date_to": "2024-03-03"}`}}.Encode())
		if diff := cmp.Diff([]any{2.0}, points(map[string]any{"result": run(shown["query"])["results"]})); diff != "" {
			t.Errorf("the query with overrides (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(made["query"], get(path)["query"]); diff != "" {
			t.Errorf("the saved query changed (-want +got):\n%s", diff)
		}
		board := mustDo(t, c, http.StatusCreated, http.MethodPost, "dashboards/", map[string]any{"name": "Board", "description": "d", "pinned": false, "tags": []string{"mcp"}})
		mustDo(t, c, http.StatusOK, http.MethodPatch, path, map[string]any{"dashboards": []any{board["id"]}})
		tiles, _ := get(fmt.Sprintf("dashboards/%.0f/", board["id"]))["tiles"].([]any)
		want := []any{map[string]any{"order": 0.0, "insight": map[string]any{"name": "Views", "short_id": made["short_id"], "query": made["query"]}}}
		if diff := cmp.Diff(any(want), harness.Only(want, tiles)); diff != "" {
			t.Errorf("tiles (-want +got):\n%s", diff)
		}
		if deleted := mustDo(t, c, http.StatusOK, http.MethodPatch, path, map[string]any{"deleted": true}); deleted["deleted"] != true {
			t.Errorf("a deleted insight answers %v", deleted)
		}
	})
}
