package e2e_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// sixEvents is a project with two pageviews of ann on each of three days, for the library's two series.
func sixEvents(t *testing.T) *harness.Client {
	t.Helper()
	c := newProject(t)
	var lines strings.Builder
	for day := 1; day <= 3; day++ {
		for _, path := range []string{"/a", "/b"} {
			fmt.Fprintf(&lines, `{"event":"$pageview","distinct_id":"ann","timestamp":"2024-03-0%dT10:00:00Z","properties":{"path":%q}}`+"\n", day, path)
		}
	}
	importLines(t, c, lines.String())
	return c
}

func trendsOf(event string) map[string]any {
	return map[string]any{
		"kind": "TrendsQuery", "dateRange": map[string]any{"date_from": "2024-03-01", "date_to": "2024-03-03"},
		"series": []any{map[string]any{"kind": "EventsNode", "event": event}},
	}
}

func wrapped(source map[string]any) map[string]any {
	kind := "InsightVizNode"
	if source["kind"] == "HogQLQuery" {
		kind = "DataVisualizationNode"
	}
	return map[string]any{"kind": kind, "source": source}
}

func hogQL(text string) map[string]any { return map[string]any{"kind": "HogQLQuery", "query": text} }

// mustDo sends a request and requires a status.
func mustDo(t *testing.T, c *harness.Client, status int, method, path string, body any) map[string]any {
	t.Helper()
	answer := c.Do(t, method, path, body)
	if answer.Status != status {
		t.Fatalf("%s %s answers %d, want %d: %s", method, path, answer.Status, status, answer.Raw)
	}
	return answer.Body
}

// saveInsight saves a query, and returns the path of the insight.
func saveInsight(t *testing.T, c *harness.Client, fields map[string]any) (path string, id float64) {
	t.Helper()
	made := mustDo(t, c, http.StatusCreated, http.MethodPost, "insights/", fields)
	id, _ = made["id"].(float64)
	return fmt.Sprintf("insights/%v/", id), id
}

// points returns the data of the first series in an insight's result.
func points(insight map[string]any) any {
	items, _ := insight["result"].([]any)
	if len(items) == 0 {
		return nil
	}
	item, _ := items[0].(map[string]any)
	return item["data"]
}

func TestInsightRefreshModes(t *testing.T) {
	c := sixEvents(t)
	path, id := saveInsight(t, c, map[string]any{"name": "Views", "query": wrapped(trendsOf("$pageview"))})
	ask := func(refresh string) map[string]any {
		t.Helper()
		answer := c.Do(t, http.MethodGet, path+"?refresh="+refresh, nil)
		if answer.Status != http.StatusOK && answer.Status != http.StatusAccepted {
			t.Fatalf("%s answers %d: %s", refresh, answer.Status, answer.Raw)
		}
		return answer.Body
	}
	for _, mode := range []string{"force_cache", "false", "False", "0"} {
		if got := ask(mode); got["result"] != nil || got["last_refresh"] != nil || got["is_cached"] != false || got["query_status"] != nil || got["filters_hash"] == nil {
			t.Errorf("refresh=%s computes: %v", mode, got)
		}
	}
	// A background run: the status names the insight, and its results are those of the query route.
	started := ask("async&client_query_id=mine")
	status, _ := started["query_status"].(map[string]any)
	if started["result"] != nil || status["id"] != "mine" || status["insight_id"] != id || status["complete"] != false {
		t.Errorf("refresh=async: %v", started)
	}
	harness.Eventually(t, time.Minute, func() error {
		answer := c.Do(t, http.MethodGet, "query/mine/", nil)
		ended, _ := answer.Body["query_status"].(map[string]any)
		results, _ := ended["results"].(map[string]any)
		if answer.Status != http.StatusOK || results["results"] == nil {
			return fmt.Errorf("%d %s", answer.Status, answer.Raw)
		}
		return nil
	})
	want := []any{2.0, 2.0, 2.0}
	for _, tt := range []struct {
		mode   string
		cached bool
	}{
		{"force_cache", true},
		{"blocking", true},
		{"async", true},
		{"lazy_async", true},
		{"async_except_on_cache_miss", true},
		{"force_blocking", false},
		{"true", false},
		{"", false},
	} {
		got := ask(tt.mode)
		if diff := cmp.Diff(want, points(got)); diff != "" || got["is_cached"] != tt.cached || got["hasMore"] != false {
			t.Errorf("refresh=%s is cached: %v, result (-want +got):\n%s", tt.mode, got["is_cached"], diff)
		}
		if got["timezone"] != "UTC" || got["hogql"] == nil || got["last_refresh"] == nil || got["cache_target_age"] == nil {
			t.Errorf("refresh=%s: %v", tt.mode, got)
		}
	}
	if got := ask("force_async"); got["result"] != nil {
		t.Errorf("refresh=force_async shows a result: %v", got["result"])
	}
	if answer := c.Do(t, http.MethodGet, path+"?refresh=often", nil); answer.Status != http.StatusBadRequest || answer.Body["attr"] != "refresh" {
		t.Errorf("refresh=often answers %d: %s", answer.Status, answer.Raw)
	}
	list := mustDo(t, c, http.StatusOK, http.MethodGet, "insights/", nil)
	rows, _ := list["results"].([]any)
	row, _ := rows[0].(map[string]any)
	if diff := cmp.Diff(want, points(row)); diff != "" {
		t.Errorf("the list's result (-want +got):\n%s", diff)
	}
}

// TestInsightPages: a cached result is served with a tag, and changing the insight changes the tag.
func TestInsightPages(t *testing.T) {
	c := sixEvents(t)
	path, _ := saveInsight(t, c, map[string]any{"name": "Old", "query": hogQL("select count() as n from events")})
	mustDo(t, c, http.StatusOK, http.MethodGet, path+"?refresh=blocking", nil)
	one := c.Do(t, http.MethodGet, path, nil)
	if got := one.Header.Get("Cache-Control"); got != "private, no-cache" {
		t.Errorf("Cache-Control: %s", got)
	}
	if diff := cmp.Diff([]any{row(6.0)}, one.Body["result"]); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	c.Header = http.Header{"If-None-Match": {one.Header.Get("Etag")}}
	if again := c.Do(t, http.MethodGet, path, nil); again.Status != http.StatusNotModified {
		t.Errorf("asked again: %d %s", again.Status, again.Raw)
	}
	mustDo(t, c, http.StatusOK, http.MethodPatch, path, map[string]any{"name": "New"})
	if changed := c.Do(t, http.MethodGet, path, nil); changed.Status != http.StatusOK || changed.Body["name"] != "New" || changed.Body["result"] == nil {
		t.Errorf("asked after a change: %d %s", changed.Status, changed.Raw)
	}
}

func TestInsightOverrides(t *testing.T) {
	c := sixEvents(t)
	variable := mustDo(t, c, http.StatusCreated, http.MethodPost, "insight_variables/", map[string]any{"name": "path", "type": "String", "default_value": "/a"})
	variableID := fmt.Sprint(variable["id"])
	trend, trendID := saveInsight(t, c, map[string]any{"name": "trend", "query": wrapped(trendsOf("$pageview"))})
	sql := hogQL("select count() from events where properties.path = {variables.path} and {filters}")
	sql["variables"] = map[string]any{variableID: map[string]any{"variableId": variableID, "code_name": "path"}}
	count, countID := saveInsight(t, c, map[string]any{"name": "count", "query": wrapped(sql)})

	get := func(path string, params map[string]string) map[string]any {
		t.Helper()
		query := url.Values{"refresh": {"blocking"}}
		for name, value := range params {
			query.Set(name, value)
		}
		return mustDo(t, c, http.StatusOK, http.MethodGet, path+"?"+query.Encode(), nil)
	}
	onlyA := `{"properties":[{"key":"path","value":"/a","operator":"exact","type":"event"}]}`
	secondDay := `{"date_from":"2024-03-02","date_to":"2024-03-03"}` // SQL ends before date_to
	pathB := fmt.Sprintf(`{%q:{"variableId":%q,"code_name":"path","value":"/b"}}`, variableID, variableID)
	noPath := fmt.Sprintf(`{%q:{"variableId":%q,"code_name":"path","value":"/none"}}`, variableID, variableID)
	if diff := cmp.Diff([]any{1.0, 1.0, 1.0}, points(get(trend, map[string]string{"filters_override": onlyA}))); diff != "" {
		t.Errorf("filters_override (-want +got):\n%s", diff)
	}
	for want, params := range map[float64]map[string]string{
		3: {}, 1: {"filters_override": secondDay}, 0: {"variables_override": noPath},
	} {
		if diff := cmp.Diff([]any{row(want)}, get(count, params)["result"]); diff != "" {
			t.Errorf("SQL with %v (-want +got):\n%s", params, diff)
		}
	}

	// A dashboard's filters and variables apply on top of both, and the request's on top of those; a tile's own replace them.
	board := mustDo(t, c, http.StatusCreated, http.MethodPost, "dashboards/", map[string]any{
		"name": "Board", "filters": map[string]any{"date_from": "2024-03-02", "date_to": "2024-03-03"},
		"variables": map[string]any{variableID: map[string]any{"variableId": variableID, "code_name": "path", "value": "/none"}},
		"tiles": []any{
			map[string]any{"insight": trendID, "color": "blue", "layouts": map[string]any{"sm": map[string]any{"x": 0, "y": 5}}},
			map[string]any{"insight": countID, "layouts": map[string]any{"sm": map[string]any{"x": 0, "y": 1}}},
		},
	})
	boardID := fmt.Sprint(board["id"])
	from := get(trend, map[string]string{"from_dashboard": boardID})
	if diff := cmp.Diff([]any{2.0, 2.0}, points(from)); diff != "" || from["color"] != "blue" || from["layouts"] == nil {
		t.Errorf("from_dashboard: color %v, layouts %v, data (-want +got):\n%s", from["color"], from["layouts"], diff)
	}
	if diff := cmp.Diff([]any{row(0.0)}, get(count, map[string]string{"from_dashboard": boardID})["result"]); diff != "" {
		t.Errorf("a dashboard's variables (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{row(1.0)}, get(count, map[string]string{"from_dashboard": boardID, "variables_override": pathB})["result"]); diff != "" {
		t.Errorf("variables over a dashboard's (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{2.0, 2.0, 2.0}, points(get(trend, map[string]string{"from_dashboard": "999"}))); diff != "" {
		t.Errorf("from a dashboard that the insight is not on (-want +got):\n%s", diff)
	}
	tiles := mustDo(t, c, http.StatusOK, http.MethodGet, "dashboards/"+boardID+"/?refresh=blocking", nil)["tiles"].([]any)
	second, _ := tiles[1].(map[string]any)
	shown, _ := second["insight"].(map[string]any)
	if diff := cmp.Diff([]any{2.0, 2.0}, points(shown)); diff != "" || len(tiles) != 2 || second["order"] != 1.0 || second["is_cached"] != true {
		t.Errorf("the second of %d tiles: %v (-want +got):\n%s", len(tiles), second, diff)
	}
	mustDo(t, c, http.StatusOK, http.MethodPatch, "dashboards/"+boardID+"/", map[string]any{
		"tiles": []any{map[string]any{"id": second["id"], "filters_overrides": map[string]any{"date_from": "2024-03-03", "date_to": "2024-03-03"}}},
	})
	if diff := cmp.Diff([]any{2.0}, points(get(trend, map[string]string{"from_dashboard": boardID}))); diff != "" {
		t.Errorf("a tile's own filters (-want +got):\n%s", diff)
	}
	for name, value := range map[string]string{"filters_override": `{"dates":1}`, "variables_override": `[1]`} {
		answer := c.Do(t, http.MethodGet, trend+"?"+url.Values{name: {value}}.Encode(), nil)
		if answer.Status != http.StatusBadRequest || !strings.Contains(fmt.Sprint(answer.Body["detail"]), name) {
			t.Errorf("%s=%s answers %d: %s", name, value, answer.Status, answer.Raw)
		}
	}
}

// TestInsightErrors: mistakes in a stored query are reported as on the query route.
func TestInsightErrors(t *testing.T) {
	c := sixEvents(t)
	path, _ := saveInsight(t, c, map[string]any{"name": "broken", "query": hogQL("select evnt from events")})
	answer := c.Do(t, http.MethodGet, path+"?refresh=blocking", nil)
	if answer.Status != http.StatusBadRequest || answer.Body["code"] != "hogql_query_error" || answer.Body["detail"] != "Unable to resolve field: evnt" {
		t.Errorf("a broken query answers %d: %s", answer.Status, answer.Raw)
	}
	if got := mustDo(t, c, http.StatusOK, http.MethodGet, path, nil); got["result"] != nil {
		t.Errorf("the broken insight as such: %v", got)
	}
	for body, want := range map[string]string{
		`{"query":{"kind":"TrendsQuery"}}`: "query.TrendsQuery.series\n  Field required",
		`{"query":{"kind":"InsightVizNode","source":{"kind":"TrendsQuery","series":[],"intervall":"day"}}}`:      "query.InsightVizNode.source.TrendsQuery.intervall\n  Extra inputs are not permitted",
		`{"query":{"kind":"InsightVizNode","source":{"kind":"TrendsQuery","series":[],"interval":"fortnight"}}}`: "query.InsightVizNode.source.TrendsQuery.interval\n  Input should be",
		`{"query":{"kind":"Tomato Soup"}}`: "Input tag 'Tomato Soup' found using 'kind' does not match any of the expected tags",
	} {
		answer := c.Do(t, http.MethodPost, "insights/", body)
		if answer.Status != http.StatusBadRequest || answer.Body["code"] != "parse_error" || !strings.Contains(fmt.Sprint(answer.Body["detail"]), want) {
			t.Errorf("%s answers %d, want a parse error about %q: %s", body, answer.Status, want, answer.Raw)
		}
	}
}

// TestDiscovery sends the requests with which clients start, with only a key.
func TestDiscovery(t *testing.T) {
	c := newProject(t)
	all := &harness.Client{Server: c.Server, Key: c.Server.Key(t, c.Project, "*", "personal")}
	key := mustDo(t, all, http.StatusOK, http.MethodGet, "/api/personal_api_keys/@current", nil)
	me := mustDo(t, all, http.StatusOK, http.MethodGet, "/api/users/@me/", nil)
	project := mustDo(t, all, http.StatusOK, http.MethodGet, fmt.Sprintf("/api/projects/%d/", c.Project), nil)
	organization, _ := me["organization"].(map[string]any)
	scoped := map[string]any{"scoped_teams": key["scoped_teams"], "scoped_organizations": key["scoped_organizations"]}
	if diff := cmp.Diff(map[string]any{"scoped_teams": []any{}, "scoped_organizations": []any{organization["id"]}}, scoped); diff != "" {
		t.Errorf("what the key is for (-want +got):\n%s", diff)
	}
	if me["id"] != key["user_id"] || organization["id"] != project["organization"] || project["name"] != t.Name() || project["timezone"] != "UTC" {
		t.Errorf("me %v\nproject %v", me, project)
	}
	id := fmt.Sprint(organization["id"])
	for path, want := range map[string]any{
		"/api/projects/@current/": project["name"], "/api/environments/@current": project["name"], "/api/organizations/@current/": project["name"],
		"/api/organizations/" + id + "/": project["name"], fmt.Sprintf("/api/organizations/%s/projects/%d/", id, c.Project): project["name"],
	} {
		if got := mustDo(t, all, http.StatusOK, http.MethodGet, path, nil)["name"]; got != want {
			t.Errorf("%s has the name %v, want %v", path, got, want)
		}
	}
	for _, path := range []string{"/api/projects/", "/api/environments/", "/api/organizations", "/api/organizations/@current/projects/"} {
		list := mustDo(t, all, http.StatusOK, http.MethodGet, path, nil)
		results, _ := list["results"].([]any)
		if one, _ := results[0].(map[string]any); list["count"] != 1.0 || one["name"] != project["name"] {
			t.Errorf("%s lists %v", path, list)
		}
	}
	stranger, strangerKey := c.Server.Project(t, "stranger")
	their := c.Server.Client(stranger, strangerKey)
	their.Key = c.Server.Key(t, stranger, "*", "personal")
	for path, status := range map[string]int{
		fmt.Sprintf("/api/projects/%d/", c.Project): 403, "/api/projects/999999/": 404, "/api/organizations/" + id + "/": 403,
		"/api/organizations/00000000-0000-0000-0000-000000000000/projects/": 404, "/api/users/1/": 404, "/api/personal_api_keys/1/": 403,
	} {
		if answer := their.Do(t, http.MethodGet, path, nil); answer.Status != status {
			t.Errorf("a stranger at %s gets %d, want %d: %s", path, answer.Status, status, answer.Raw)
		}
	}
	bare := &harness.Client{Server: c.Server, Key: c.Server.Key(t, c.Project, "query:read", "personal")}
	for path, status := range map[string]int{"/api/personal_api_keys/@current/": 200, "/api/users/@me/": 403, "/api/projects/": 403, "/api/organizations/": 403} {
		if answer := bare.Do(t, http.MethodGet, path, nil); answer.Status != status {
			t.Errorf("a key for queries at %s gets %d, want %d: %s", path, answer.Status, status, answer.Raw)
		}
	}
	secret := &harness.Client{Server: c.Server, Key: c.Server.Key(t, c.Project, "endpoint:read", "secret")}
	if answer := secret.Do(t, http.MethodGet, "/api/personal_api_keys/@current/", nil); answer.Status != http.StatusUnauthorized {
		t.Errorf("a secret key gets %d: %s", answer.Status, answer.Raw)
	}
}
