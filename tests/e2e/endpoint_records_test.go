package e2e_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// hogql returns the node for a HogQL text.
func hogql(text string) map[string]any { return map[string]any{"kind": "HogQLQuery", "query": text} }

// must sends a request and requires a status.
func must(t *testing.T, c *harness.Client, status int, method, path string, body any) map[string]any {
	t.Helper()
	answer := c.Do(t, method, path, body)
	if answer.Status != status {
		t.Fatalf("%s %s answers %d: %s", method, path, answer.Status, answer.Raw)
	}
	return answer.Body
}

// pick keeps some fields of an object.
func pick(body map[string]any, names ...string) map[string]any {
	out := make(map[string]any, len(names))
	for _, name := range names {
		value, ok := body[name]
		if !ok {
			value = "(missing)"
		}
		out[name] = value
	}
	return out
}

// TestEndpointRecords checks the fields of records: contract api.md, section 5.3.
func TestEndpointRecords(t *testing.T) {
	c := newProject(t)
	made := must(t, c, http.StatusCreated, http.MethodPost, "endpoints/", map[string]any{
		"name": "daily", "description": "d", "query": hogql("select 1 as n, 'x' as s, now() as at, [1] as list"), "tags": []string{"b", "a"},
		"derived_from_insight": "AbCd1234", "optional_breakdown_properties": []string{}, "bucket_overrides": nil,
	})
	path := fmt.Sprintf("/api/environments/%d/endpoints/daily/run", c.Project)
	want := map[string]any{
		"name": "daily", "description": "d", "is_active": true, "data_freshness_seconds": 86400.0, "endpoint_path": path, "url": c.Server.URL + path,
		"ui_url": nil, "is_materialized": false, "current_version": 1.0, "versions_count": 1.0, "derived_from_insight": "AbCd1234",
		"last_executed_at": nil, "bucket_overrides": nil, "tags": []any{"b", "a"}, "optional_breakdown_properties": []any{},
		"rate_limit": nil, "materialization": map[string]any{
			"enabled": false, "ready": false, "can_materialize": true, "hibernated": false, "reason": nil,
		},
		"columns": []any{
			map[string]any{"name": "n", "type": "integer"},
			map[string]any{"name": "s", "type": "string"},
			map[string]any{"name": "at", "type": "datetime"},
			map[string]any{"name": "list", "type": "array"},
		},
		"deprecated_at": nil, "sunset_at": nil, "version": "(missing)", "changes": "(missing)",
	}
	names := make([]string, 0, len(want))
	for name := range want {
		names = append(names, name)
	}
	for _, column := range made["columns"].([]any) {
		delete(column.(map[string]any), "clickhouse_type") // ours, in addition to the contract's
	}
	if diff := cmp.Diff(want, pick(made, names...)); diff != "" {
		t.Errorf("endpoint record (-want +got):\n%s", diff)
	}

	must(t, c, http.StatusOK, http.MethodPatch, "endpoints/daily/", map[string]any{"query": hogql("select 2 as n")})
	must(t, c, http.StatusOK, http.MethodPatch, "endpoints/daily/", map[string]any{"version": 1, "is_active": false, "description": "old"})
	first := must(t, c, http.StatusOK, http.MethodGet, "endpoints/daily/?version=1", nil)
	wantFirst := map[string]any{
		"url": nil, "ui_url": nil, "description": "old", "is_active": false, "endpoint_is_active": true, "version": 1.0, "current_version": 2.0,
		"versions_count": 2.0, "version_id": made["current_version_id"], "is_current": false, "is_draft": false, "query": hogql("select 1 as n, 'x' as s, now() as at, [1] as list"),
	}
	if diff := cmp.Diff(wantFirst, pick(first, "url", "ui_url", "description", "is_active", "endpoint_is_active", "version", "current_version",
		"versions_count", "version_id", "is_current", "is_draft", "query")); diff != "" {
		t.Errorf("version record (-want +got):\n%s", diff)
	}
	insight := must(t, c, http.StatusCreated, http.MethodPost, "endpoints/", map[string]any{"name": "trend", "query": map[string]any{
		"kind": "TrendsQuery", "series": []any{map[string]any{"kind": "EventsNode", "event": "a"}}, "breakdownFilter": map[string]any{"breakdown": "plan", "breakdown_type": "event"},
	}, "optional_breakdown_properties": []string{"plan"}})
	if diff := cmp.Diff(map[string]any{"columns": []any{}, "optional_breakdown_properties": []any{"plan"}}, pick(insight, "columns", "optional_breakdown_properties")); diff != "" {
		t.Errorf("record of an insight (-want +got):\n%s", diff)
	}
	for _, body := range []map[string]any{
		{"optional_breakdown_properties": []string{"color"}},
		{"query": hogql("select 1"), "optional_breakdown_properties": []string{"plan"}},
	} {
		if answer := c.Do(t, http.MethodPatch, "endpoints/trend/", body); answer.Status != http.StatusBadRequest || answer.Body["attr"] != "optional_breakdown_properties" {
			t.Errorf("%v answers %d %s", body, answer.Status, answer.Raw)
		}
	}
	changed := must(t, c, http.StatusOK, http.MethodPatch, "endpoints/trend/", map[string]any{"query": map[string]any{
		"kind": "TrendsQuery", "series": []any{map[string]any{"kind": "EventsNode", "event": "b"}}, "breakdownFilter": map[string]any{"breakdown": "plan", "breakdown_type": "event"},
	}})
	if diff := cmp.Diff(map[string]any{"current_version": 2.0, "optional_breakdown_properties": []any{"plan"}}, pick(changed, "current_version", "optional_breakdown_properties")); diff != "" {
		t.Errorf("a new version of an insight (-want +got):\n%s", diff)
	}
	changed = must(t, c, http.StatusOK, http.MethodPatch, "endpoints/trend/", map[string]any{"query": hogql("select 1")})
	if diff := cmp.Diff(map[string]any{"current_version": 3.0, "optional_breakdown_properties": []any{}}, pick(changed, "current_version", "optional_breakdown_properties")); diff != "" {
		t.Errorf("a new version without breakdowns (-want +got):\n%s", diff)
	}
	record := must(t, c, http.StatusOK, http.MethodGet, "endpoints/daily/", nil)
	must(t, c, http.StatusOK, http.MethodPut, "endpoints/daily/", record) // as it was read: nothing changes
	again := must(t, c, http.StatusOK, http.MethodGet, "endpoints/daily/", nil)
	delete(record, "updated_at")
	delete(again, "updated_at")
	if diff := cmp.Diff(record, again); diff != "" {
		t.Errorf("a record sent back as it was read changed something (-before +after):\n%s", diff)
	}
}

// TestEndpointMaterialization: the materialization routes answer in PostHog's shapes for versions without a table.
func TestEndpointMaterialization(t *testing.T) {
	c := newProject(t)
	must(t, c, http.StatusCreated, http.MethodPost, "insight_variables/", map[string]any{"name": "x", "type": "String"})
	must(t, c, http.StatusCreated, http.MethodPost, "endpoints/", map[string]any{"name": "e", "query": hogql("select {variables.x} as one from events")})
	const reason = "Variables not supported: Variable not used in WHERE clause"
	status := must(t, c, http.StatusOK, http.MethodGet, "endpoints/e/materialization_status/?version=1", nil)
	if diff := cmp.Diff(map[string]any{"name": "e", "enabled": false, "ready": false, "can_materialize": false, "hibernated": false, "reason": reason}, status); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	preview := must(t, c, http.StatusOK, http.MethodPost, "endpoints/e/materialization_preview/", map[string]any{"version": 1, "bucket_overrides": map[string]string{"timestamp": "hour"}})
	want := map[string]any{
		"can_materialize": false, "reason": reason, "transformed_query": nil, "execution_query": nil, "display_execution_query": nil,
		"range_pairs": []any{}, "aggregates": []any{},
	}
	if diff := cmp.Diff(want, preview); diff != "" {
		t.Errorf("preview (-want +got):\n%s", diff)
	}
	refusedTable := must(t, c, http.StatusBadRequest, http.MethodPatch, "endpoints/e/", map[string]any{"is_materialized": true, "description": "d"})
	if refusedTable["detail"] != "Cannot materialize endpoint. Reason: "+reason {
		t.Errorf("materializing a variable in SELECT: %v", refusedTable["detail"])
	}
	if got := must(t, c, http.StatusOK, http.MethodGet, "endpoints/e/", nil); got["description"] != "" || got["is_materialized"] != false {
		t.Errorf("a write that was refused changed the record: %v", got)
	}
	texts := must(t, c, http.StatusOK, http.MethodGet, "endpoints/materialization_conditions/", nil)
	for _, name := range []string{"conditions_source", "rewrite_contract"} {
		if text, _ := texts[name].(string); len(text) < 100 || strings.Contains(text, "{kinds}") {
			t.Errorf("%s is %q", name, text)
		}
	}
	must(t, c, http.StatusNotFound, http.MethodPost, "endpoints/e/materialization_suggestion/", map[string]any{})
	for _, request := range [][2]string{{http.MethodGet, "endpoints/e/materialization_status/?version=9"}, {http.MethodPost, "endpoints/e/materialization_preview/"}} {
		var body any
		if request[0] == http.MethodPost {
			body = map[string]any{"version": 9}
		}
		if got := must(t, c, http.StatusNotFound, request[0], request[1], body)["error"]; got != "Version 9 not found" {
			t.Errorf("%s %s: error %v", request[0], request[1], got)
		}
	}
	must(t, c, http.StatusNotFound, http.MethodGet, "endpoints/x/materialization_status/", nil)
	must(t, c, http.StatusBadRequest, http.MethodPost, "endpoints/e/materialization_preview/", map[string]any{"revision": 1})
	refused := must(t, c, http.StatusMethodNotAllowed, http.MethodPost, "endpoints/bulk_update_tags/", map[string]any{})
	if refused["detail"] != "Bulk tag updates are not supported for endpoints." {
		t.Errorf("bulk_update_tags: %v", refused)
	}
}

// TestEndpointLogs runs an endpoint successfully and with errors, and checks what is logged: no value and no row.
func TestEndpointLogs(t *testing.T) {
	c := newProject(t)
	must(t, c, http.StatusCreated, http.MethodPost, "insight_variables/", map[string]any{"name": "n", "type": "Number", "default_value": 7})
	made := must(t, c, http.StatusCreated, http.MethodPost, "endpoints/", map[string]any{"name": "e", "query": hogql("select arrayJoin(range({variables.n})) as x, 'secret row' as s order by x")})
	run := must(t, c, http.StatusOK, http.MethodPost, "endpoints/e/run", map[string]any{"limit": 5, "offset": 4})
	must(t, c, http.StatusOK, http.MethodPost, "endpoints/e/run", map[string]any{"limit": 5})
	must(t, c, http.StatusBadRequest, http.MethodPost, "endpoints/e/run", map[string]any{"variables": map[string]any{"n": "secret value"}})

	logs := must(t, c, http.StatusOK, http.MethodGet, "endpoints/e/logs/", nil)
	if logs["count"] != 3.0 || logs["next"] != nil || logs["previous"] != nil {
		t.Errorf("envelope: %v", pick(logs, "count", "next", "previous"))
	}
	duration := regexp.MustCompile(`duration_ms=\d+`)
	var got []map[string]any
	for _, entry := range logs["results"].([]any) {
		e := entry.(map[string]any)
		e["message"] = duration.ReplaceAllString(e["message"].(string), "duration_ms=N")
		got = append(got, pick(e, "log_source_id", "instance_id", "level", "message", "status", "version", "cache", "rows", "error_code"))
	}
	id := made["id"]
	want := []map[string]any{
		{
			"log_source_id": id, "instance_id": "", "level": "WARN", "message": "Endpoint execution failed · path=inline duration_ms=N error=invalid_input",
			"status": 400.0, "version": nil, "cache": nil, "rows": nil, "error_code": "invalid_input",
		},
		{
			"log_source_id": id, "instance_id": run["execution_id"], "level": "INFO",
			"message": "Endpoint executed · path=inline cache=hit duration_ms=N rows=5 version=1", "status": 200.0, "version": 1.0, "cache": "hit", "rows": 5.0, "error_code": nil,
		},
		{
			"log_source_id": id, "instance_id": run["execution_id"], "level": "INFO",
			"message": "Endpoint executed · path=inline cache=miss duration_ms=N rows=3 version=1", "status": 200.0, "version": 1.0, "cache": "miss", "rows": 3.0, "error_code": nil,
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("logs (-want +got):\n%s", diff)
	}
	answer := c.Do(t, http.MethodGet, "endpoints/e/logs/", nil)
	if strings.Contains(string(answer.Raw), "secret") {
		t.Errorf("the logs hold a value or a row: %s", answer.Raw)
	}
	for query, count := range map[string]float64{
		"level=info": 2, "level=warn,error": 1, "search=cache%3DHIT": 1, "instance_id=x": 0, "limit=1": 3,
		"after=2020-01-01T00:00:00Z": 3, "before=2020-01-01T00:00:00Z": 0, "after=2020-01-01T00:00:00": 3, "before=2020-01-01%2012:00": 0,
	} {
		if got := must(t, c, http.StatusOK, http.MethodGet, "endpoints/e/logs/?"+query, nil)["count"]; got != count {
			t.Errorf("?%s counts %v, want %v", query, got, count)
		}
	}
	must(t, c, http.StatusBadRequest, http.MethodGet, "endpoints/e/logs/?after=yesterday", nil)
	secret := server.Client(c.Project, server.Key(t, c.Project, "endpoint:read", "secret"))
	must(t, secret, http.StatusForbidden, http.MethodGet, "endpoints/e/logs/", nil)

	times := must(t, c, http.StatusOK, http.MethodPost, "endpoints/last_execution_times/", map[string]any{"names": []string{}})
	if diff := cmp.Diff(map[string]any{"id": "", "team_id": float64(c.Project), "complete": true, "results": nil, "error": false},
		pick(times["query_status"].(map[string]any), "id", "team_id", "complete", "results", "error")); diff != "" {
		t.Errorf("last_execution_times of nothing (-want +got):\n%s", diff)
	}
	if got := must(t, c, http.StatusBadRequest, http.MethodPost, "endpoints/last_execution_times/", map[string]any{"names": []string{"a b"}}); got["attr"] != "names" {
		t.Errorf("a bad name: %v", got)
	}
	harness.Eventually(t, time.Minute, func() error {
		answer := c.Do(t, http.MethodPost, "endpoints/last_execution_times/", map[string]any{"names": []string{"e", "x"}})
		status, _ := answer.Body["query_status"].(map[string]any)
		list, _ := status["results"].([]any)
		if len(list) != 1 || list[0].([]any)[0] != "e" || !strings.HasSuffix(list[0].([]any)[1].(string), "+00:00") {
			return fmt.Errorf("last_execution_times answers %s", answer.Raw)
		}
		return nil
	})
}
