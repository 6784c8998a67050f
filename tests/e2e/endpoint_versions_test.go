package e2e_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// changesOf lists the codes and names of an answer's changes, with a ! before the breaking ones.
func changesOf(body map[string]any) []string {
	changes, _ := body["changes"].(map[string]any)
	found := []string{}
	for kind, mark := range map[string]string{"breaking": "!", "compatible": ""} {
		list, _ := changes[kind].([]any)
		for _, item := range list {
			change := item.(map[string]any)
			found = append(found, mark+change["code"].(string)+" "+change["name"].(string))
		}
	}
	// breaking changes sort first: ! comes before letters
	slices.Sort(found)
	return found
}

// TestDraftPromoteRollBack follows the life of an endpoint: a draft that its author tries and customers do not see, its promotion with breaking
// changes, and the way back.
func TestDraftPromoteRollBack(t *testing.T) {
	c := newProject(t)
	customer := server.Client(c.Project, server.Key(t, c.Project, "endpoint:read", "secret"))
	for _, v := range []map[string]any{{"name": "plan", "type": "String", "default_value": "pro"}, {"name": "city", "type": "String"}} {
		must(t, c, http.StatusCreated, http.MethodPost, "insight_variables/", v)
	}
	must(t, c, http.StatusCreated, http.MethodPost, "endpoints/", map[string]any{
		"name": "orders", "query": hogql("select 1 as id, 2 as amount, 'x' as plan where {variables.plan} = 'pro'"), "data_freshness_seconds": 900,
	})
	results := func(from *harness.Client, body map[string]any) any {
		t.Helper()
		return must(t, from, http.StatusOK, http.MethodPost, "endpoints/orders/run", body)["results"]
	}
	empty := map[string]any{}
	old, next := []any{[]any{1.0, 2.0, "x"}}, []any{[]any{1.0, 2.5, "new"}}
	query := hogql("select 1 as id, 2.5 as total, 'new' as plan where {variables.city} is null")

	draft := must(t, c, http.StatusOK, http.MethodPatch, "endpoints/orders/", map[string]any{"query": query, "draft": true, "description": "next"})
	if diff := cmp.Diff(map[string]any{
		"version": 2.0, "is_draft": true, "is_current": false, "published_at": nil, "current_version": 1.0, "versions_count": 2.0,
		"data_freshness_seconds": 900.0, "description": "next",
	},
		pick(draft, "version", "is_draft", "is_current", "published_at", "current_version", "versions_count", "data_freshness_seconds", "description")); diff != "" {
		t.Errorf("draft (-want +got):\n%s", diff)
	}
	breaking := []string{"!column_renamed amount", "!variable_removed plan", "!variable_required city"}
	if diff := cmp.Diff(breaking, changesOf(draft)); diff != "" {
		t.Errorf("changes of the draft (-want +got):\n%s", diff)
	}
	if got := must(t, c, http.StatusOK, http.MethodPatch, "endpoints/orders/", map[string]any{"query": query, "draft": true})["version"]; got != 2.0 {
		t.Errorf("the same draft again is version %v", got)
	}

	if diff := cmp.Diff([]any{old, old, next}, []any{results(c, empty), results(customer, empty), results(c, map[string]any{"version": 2})}); diff != "" {
		t.Errorf("runs beside a draft (-want +got):\n%s", diff)
	}
	unseen := must(t, customer, http.StatusNotFound, http.MethodPost, "endpoints/orders/run", map[string]any{"version": 2})
	if unseen["error"] != "Version 2 not found for endpoint 'orders'" {
		t.Errorf("a customer who asks for the draft: %v", unseen)
	}

	refused := must(t, c, http.StatusBadRequest, http.MethodPost, "endpoints/orders/promote/", map[string]any{"version": 2, "refuse_breaking": true})
	if refused["code"] != "breaking_change" || refused["attr"] != "version" || !strings.Contains(refused["detail"].(string), "column amount is renamed to total") {
		t.Errorf("refused promotion: %v", refused)
	}
	if diff := cmp.Diff(old, results(customer, empty)); diff != "" {
		t.Errorf("a refused promotion changed the runs (-before +after):\n%s", diff)
	}
	promoted := must(t, c, http.StatusOK, http.MethodPost, "endpoints/orders/promote/", map[string]any{"version": 2})
	if diff := cmp.Diff([]any{2.0, "next", breaking}, []any{promoted["current_version"], promoted["description"], changesOf(promoted)}); diff != "" {
		t.Errorf("promotion (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{next, old}, []any{results(customer, empty), results(customer, map[string]any{"version": 1})}); diff != "" {
		t.Errorf("runs after the promotion (-want +got):\n%s", diff)
	}

	back := must(t, c, http.StatusOK, http.MethodPost, "endpoints/orders/rollback/", nil)
	if back["current_version"] != 1.0 || back["versions_count"] != 2.0 {
		t.Errorf("rolled back: %v", pick(back, "current_version", "versions_count"))
	}
	if diff := cmp.Diff([]any{old, next}, []any{results(customer, empty), results(customer, map[string]any{"version": 2})}); diff != "" {
		t.Errorf("runs after rolling back (-want +got):\n%s", diff)
	}
	if got := must(t, c, http.StatusBadRequest, http.MethodPost, "endpoints/orders/rollback/", nil)["attr"]; got != "version" {
		t.Errorf("rolling back from the first version names %v", got)
	}
	third := must(t, c, http.StatusOK, http.MethodPatch, "endpoints/orders/", map[string]any{"query": hogql("select 1 as id, 2 as amount, 'x' as plan, {variables.plan} as asked")})
	if diff := cmp.Diff([]string{"column_added asked"}, changesOf(third)); third["current_version"] != 3.0 || diff != "" {
		t.Errorf("published after rolling back: version %v, changes (-want +got):\n%s", third["current_version"], diff)
	}
	if again := must(t, c, http.StatusOK, http.MethodPost, "endpoints/orders/rollback/", map[string]any{"version": 2}); again["current_version"] != 2.0 {
		t.Errorf("rolled back by number: %v", again["current_version"])
	}
}

// TestBreakingChanges checks, column by column, which changes are breaking.
func TestBreakingChanges(t *testing.T) {
	c := newProject(t)
	must(t, c, http.StatusCreated, http.MethodPost, "endpoints/", map[string]any{"name": "e", "query": hogql("select 1 as a, 'b' as b, 3 as c")})
	tests := []struct {
		name  string
		query any
		want  []string
	}{
		{"another type", hogql("select 'x' as a, 'b' as b, 3 as c"), []string{"!column_retyped a"}},
		{"a column less", hogql("select 1 as a, 'b' as b"), []string{"!column_removed c"}},
		{"a column at the end", hogql("select 1 as a, 'b' as b, 3 as c, 4 as d"), []string{"column_added d"}},
		{"a column in front", hogql("select 0 as z, 1 as a, 'b' as b, 3 as c"), []string{"!column_moved a", "!column_moved b", "!column_moved c", "column_added z"}},
		{"another name and type", hogql("select 1 as a, 2.5 as bb, 3 as c"), []string{"!column_renamed b"}},
		{"other values", hogql("select 100 as a, 'bb' as b, 300 as c"), []string{}},
		{"an insight", map[string]any{"kind": "TrendsQuery", "series": []any{map[string]any{"kind": "EventsNode", "event": "a"}}}, []string{
			"!kind_changed TrendsQuery", "variable_added date_from", "variable_added date_to",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			draft := must(t, c, http.StatusOK, http.MethodPatch, "endpoints/e/", map[string]any{"query": tt.query, "draft": true})
			if diff := cmp.Diff(tt.want, changesOf(draft)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if len(tt.want) > 0 && !strings.HasPrefix(tt.want[0], "!") {
				return
			}
			status := http.StatusBadRequest
			if len(tt.want) == 0 {
				status = http.StatusOK
			}
			must(t, c, status, http.MethodPut, "endpoints/e/", map[string]any{"query": tt.query, "refuse_breaking": true})
		})
	}
}

// TestDeprecatedVersions: runs of a version with an announced end say so, even from the cache; others do not.
func TestDeprecatedVersions(t *testing.T) {
	c := newProject(t)
	must(t, c, http.StatusCreated, http.MethodPost, "endpoints/", map[string]any{"name": "e", "query": hogql("select 1")})
	must(t, c, http.StatusOK, http.MethodPatch, "endpoints/e/", map[string]any{"query": hogql("select 2")})
	record := must(t, c, http.StatusOK, http.MethodPatch, "endpoints/e/", map[string]any{
		"version": 1, "deprecated_at": "2026-06-30T00:00:00Z", "sunset_at": "2026-12-31T23:59:59+01:00",
	})
	if diff := cmp.Diff(map[string]any{"deprecated_at": "2026-06-30T00:00:00Z", "sunset_at": "2026-12-31T22:59:59Z"}, pick(record, "deprecated_at", "sunset_at")); diff != "" {
		t.Errorf("version record (-want +got):\n%s", diff)
	}
	headers := func(body map[string]any) []string {
		t.Helper()
		answer := c.Do(t, http.MethodPost, "endpoints/e/run", body)
		return []string{answer.Header.Get("Deprecation"), answer.Header.Get("Sunset")}
	}
	announced := []string{"@1782777600", "Thu, 31 Dec 2026 22:59:59 GMT"}
	for range 2 { // the second run is a hit
		if diff := cmp.Diff(announced, headers(map[string]any{"version": 1})); diff != "" {
			t.Errorf("headers of the deprecated version (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"", ""}, headers(map[string]any{})); diff != "" {
			t.Errorf("headers of the current version (-want +got):\n%s", diff)
		}
	}
	must(t, c, http.StatusOK, http.MethodPatch, "endpoints/e/", map[string]any{"version": 1, "deprecated_at": nil, "sunset_at": nil})
	if diff := cmp.Diff([]string{"", ""}, headers(map[string]any{"version": 1})); diff != "" {
		t.Errorf("headers after it was taken back (-want +got):\n%s", diff)
	}
	must(t, c, http.StatusOK, http.MethodPatch, "endpoints/e/", map[string]any{"version": 1, "is_active": false})
	inactive := must(t, c, http.StatusBadRequest, http.MethodPost, "endpoints/e/run", map[string]any{"version": 1})
	if inactive["detail"] != "Version 1 is inactive and cannot be executed." {
		t.Errorf("inactive version: %v", inactive)
	}
	must(t, c, http.StatusBadRequest, http.MethodPost, "endpoints/e/promote/", map[string]any{"version": 1})
}

const overrideWarning = "filters_override is deprecated. Use variables instead, or mark the breakdown property as optional on the endpoint " +
	"if you want to call /run without supplying its value: https://posthog.com/docs/api/endpoints"

// TestOverridesAreDeprecated: filters_override still works on endpoints of insights, overrides variables, and is reported as deprecated.
func TestOverridesAreDeprecated(t *testing.T) {
	c := newProject(t)
	must(t, c, http.StatusCreated, http.MethodPost, "endpoints/", map[string]any{"name": "trend", "query": map[string]any{
		"kind": "TrendsQuery", "series": []any{map[string]any{"kind": "EventsNode", "event": "a"}}, "dateRange": map[string]any{"date_from": "2024-01-01", "date_to": "2024-01-01"},
	}})
	must(t, c, http.StatusCreated, http.MethodPost, "endpoints/", map[string]any{"name": "hogql", "query": hogql("select 1")})
	body := map[string]any{
		"variables":        map[string]any{"date_from": "2024-02-01", "date_to": "2024-02-01"},
		"filters_override": map[string]any{"date_from": "2024-03-01", "date_to": "2024-03-02"},
	}
	for range 2 { // the second run is a hit
		answer := c.Do(t, http.MethodPost, "endpoints/trend/run", body)
		series, _ := answer.Body["results"].([]any)
		if answer.Status != http.StatusOK || len(series) != 1 || answer.Header.Get("X-PostHog-Warn") != overrideWarning {
			t.Fatalf("overridden run: %d %s, X-PostHog-Warn: %q", answer.Status, answer.Raw, answer.Header.Get("X-PostHog-Warn"))
		}
		if diff := cmp.Diff([]any{"2024-03-01", "2024-03-02"}, series[0].(map[string]any)["days"]); diff != "" {
			t.Errorf("days (-want +got):\n%s", diff)
		}
	}
	delete(body, "filters_override")
	if answer := c.Do(t, http.MethodPost, "endpoints/trend/run", body); answer.Status != http.StatusOK || answer.Header["X-Posthog-Warn"] != nil {
		t.Errorf("run with variables: %d %s, X-PostHog-Warn: %q", answer.Status, answer.Raw, answer.Header.Get("X-PostHog-Warn"))
	}
	refused := must(t, c, http.StatusBadRequest, http.MethodPost, "endpoints/hogql/run", map[string]any{"filters_override": map[string]any{"date_from": "2024-03-01"}})
	if refused["attr"] != "filters_override" {
		t.Errorf("filters_override of a HogQL endpoint: %v", refused)
	}
}
