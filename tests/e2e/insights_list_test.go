package e2e_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// namesIn returns the names of the insights or dashboards in a list.
func namesIn(t *testing.T, c *harness.Client, path string, params ...string) []string {
	t.Helper()
	query := url.Values{}
	for i := 0; i < len(params); i += 2 {
		query.Set(params[i], params[i+1])
	}
	list := mustDo(t, c, http.StatusOK, http.MethodGet, path+"?"+query.Encode(), nil)
	results, _ := list["results"].([]any)
	names := []string{}
	for _, item := range results {
		record, _ := item.(map[string]any)
		names = append(names, fmt.Sprint(record["name"]))
	}
	return names
}

func TestInsightLists(t *testing.T) {
	c := newProject(t)
	second := server.Client(c.Project, server.Key(t, c.Project, harness.AllScopes, "personal"))
	save := func(c *harness.Client, name string, query map[string]any, more ...any) float64 {
		fields := map[string]any{"name": name, "query": query}
		for i := 0; i < len(more); i += 2 {
			fields[more[i].(string)] = more[i+1]
		}
		_, id := saveInsight(t, c, fields)
		return id
	}
	signups := trendsOf("signup")
	signups["breakdownFilter"] = map[string]any{"breakdown": "$feature/beta", "breakdown_type": "event"}
	a := save(c, "a trend", wrapped(trendsOf("$pageview")), "favorited", true, "order", 3)
	save(c, "b bare", trendsOf("$pageview"), "tags", []string{"web", "x"}, "order", 1)
	save(c, "c sql", wrapped(hogQL("select 1")), "description", "What the visitors see", "order", 2)
	d := save(second, "d bare sql", hogQL("select 1"), "saved", false)
	save(second, "e lifecycle", wrapped(map[string]any{"kind": "LifecycleQuery", "series": []any{map[string]any{"kind": "EventsNode", "event": "signup"}}}), "tags", []string{"web"})
	save(second, "f signups", wrapped(signups))
	save(second, "g empty", nil)
	gone := save(c, "gone", wrapped(trendsOf("$pageview")))
	mustDo(t, c, http.StatusNoContent, http.MethodDelete, fmt.Sprintf("insights/%v/", gone), nil)
	board := mustDo(t, c, http.StatusCreated, http.MethodPost, "dashboards/", map[string]any{"name": "x", "tiles": []any{map[string]any{"insight": a}, map[string]any{"insight": d}}})
	other := mustDo(t, c, http.StatusCreated, http.MethodPost, "dashboards/", map[string]any{"name": "y"})
	mustDo(t, c, http.StatusOK, http.MethodPatch, fmt.Sprintf("insights/%v/", a), map[string]any{"dashboards": []any{board["id"], other["id"]}})
	author, _ := mustDo(t, second, http.StatusOK, http.MethodGet, "/api/users/@me/", nil)["id"].(float64)

	all := []string{"a trend", "b bare", "c sql", "d bare sql", "e lifecycle", "f signups", "g empty"}
	tests := []struct {
		params []string
		want   []string
	}{
		{nil, []string{"b bare", "c sql", "a trend", "d bare sql", "e lifecycle", "f signups", "g empty"}},
		{[]string{"order", "-order"}, []string{"d bare sql", "e lifecycle", "f signups", "g empty", "a trend", "c sql", "b bare"}},
		{[]string{"order", "name"}, all},
		{[]string{"order", "-name", "limit", "2"}, []string{"g empty", "f signups"}},
		{[]string{"order", "id", "offset", "5"}, []string{"f signups", "g empty"}},
		{[]string{"order", "-created_at", "limit", "1"}, []string{"g empty"}},
		{[]string{"order", "created_by", "limit", "1"}, []string{"a trend"}},
		{[]string{"order", "name", "basic", "true", "limit", "1"}, []string{"a trend"}},
		{[]string{"order", "name", "insight", "TRENDS"}, []string{"a trend", "f signups"}},
		{[]string{"order", "name", "insight", "LIFECYCLE"}, []string{"e lifecycle"}},
		{[]string{"order", "name", "insight", "SQL"}, []string{"c sql"}},
		{[]string{"order", "name", "insight", "JSON"}, []string{"b bare", "d bare sql"}},
		{[]string{"insight", "FUNNELS"}, []string{}},
		{[]string{"insight", "other"}, []string{}},
		{[]string{"order", "name", "favorited", ""}, []string{"a trend"}},
		{[]string{"order", "name", "user", "true"}, all[:3]},
		{[]string{"order", "name", "created_by", fmt.Sprintf("[%v]", author)}, all[3:]},
		{[]string{"created_by", "[999999]"}, []string{}},
		{[]string{"order", "name", "tags", `["web"]`}, []string{"b bare", "e lifecycle"}},
		{[]string{"order", "name", "tags", `["x","y"]`}, []string{"b bare"}},
		{[]string{"order", "name", "dashboards", fmt.Sprintf("[%v]", board["id"])}, []string{"a trend"}},
		{[]string{"order", "name", "dashboards", fmt.Sprintf("[%v,%v]", board["id"], other["id"])}, []string{"a trend"}},
		{[]string{"order", "name", "saved", "false"}, []string{"d bare sql"}},
		{[]string{"order", "name", "saved", "true"}, slices.Concat(all[:3], all[4:])},
		{[]string{"order", "name", "events", `["signup"]`}, []string{"e lifecycle", "f signups"}},
		{[]string{"order", "name", "events", `["$pageview"]`}, []string{"a trend", "b bare"}},
		{[]string{"events", `["$pageview","signup"]`}, []string{}},
		{[]string{"feature_flag", "beta"}, []string{"f signups"}},
		{[]string{"order", "name", "created_date_from", "-1d"}, all},
		{[]string{"created_date_to", "-1d"}, []string{}},
		{[]string{"date_from", "2100-01-01"}, []string{}},
		{[]string{"order", "name", "last_viewed_date_from", "-1h"}, all},
		{[]string{"search", "LIFECYCLE"}, []string{"e lifecycle"}},
		{[]string{"search", "visitors"}, []string{"c sql"}},
		{[]string{"search", "lifecicle"}, []string{"e lifecycle"}},
		{[]string{"order", "name", "search", "web"}, []string{"b bare", "e lifecycle"}},
		{[]string{"search", "mnbvcx"}, []string{}},
	}
	// Once taken off, d is on no dashboard; until then, the dashboard makes it count as saved.
	if got := namesIn(t, c, "insights/", "saved", "true", "short_id", "none"); len(got) != 0 {
		t.Errorf("short_id=none gives %v", got)
	}
	mustDo(t, c, http.StatusOK, http.MethodPatch, fmt.Sprintf("dashboards/%v/", board["id"]), map[string]any{
		"tiles": []any{map[string]any{"insight": d, "deleted": true}},
	})
	for _, tt := range tests {
		t.Run(strings.Join(tt.params, " "), func(t *testing.T) {
			if diff := cmp.Diff(tt.want, namesIn(t, c, "insights/", tt.params...)); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
	for _, wrong := range [][2]string{
		{"order", "colour"},
		{"created_by", "1,2"},
		{"created_by", `["x"]`},
		{"tags", "web"},
		{"dashboards", `{"a":1}`},
		{"events", "["},
		{"date_from", "someday"},
		{"search", strings.Repeat("x", 201)},
		{"refresh", "sometimes"},
	} {
		answer := c.Do(t, http.MethodGet, "insights/?"+url.Values{wrong[0]: {wrong[1]}}.Encode(), nil)
		if answer.Status != http.StatusBadRequest || answer.Body["attr"] != wrong[0] {
			t.Errorf("%s=%s answers %d: %s", wrong[0], wrong[1], answer.Status, answer.Raw)
		}
	}

	page := mustDo(t, c, http.StatusOK, http.MethodGet, "insights/?order=name&limit=2&offset=2", nil)
	base := fmt.Sprintf("%s/api/projects/%d/insights/", server.URL, c.Project)
	if page["count"] != 7.0 || page["next"] != base+"?limit=2&offset=4&order=name" || page["previous"] != base+"?limit=2&order=name" {
		t.Errorf("page: %v, next %v, previous %v", page["count"], page["next"], page["previous"])
	}
	row := func(params string) map[string]any {
		results, _ := mustDo(t, c, http.StatusOK, http.MethodGet, "insights/?order=name&limit=1&"+params, nil)["results"].([]any)
		one, _ := results[0].(map[string]any)
		return one
	}
	basic, full := row("basic=true"), row("basic=false")
	for _, name := range []string{"result", "is_cached", "order", "deleted"} {
		if _, ok := basic[name]; ok {
			t.Errorf("the basic form has %s", name)
		}
		if _, ok := full[name]; !ok {
			t.Errorf("the full form lacks %s", name)
		}
	}
	if basic["last_viewed_at"] == nil || full["search_match_type"] != nil || row("search=trend")["search_match_type"] != "exact" {
		t.Errorf("basic: %v", basic)
	}
}

func TestInsightViewsAndActivity(t *testing.T) {
	c := newProject(t)
	reader := server.Client(c.Project, server.Key(t, c.Project, "insight:read", "personal"))
	var ids []float64
	for _, name := range []string{"one", "two", "three"} {
		_, id := saveInsight(t, c, map[string]any{"name": name, "query": hogQL("select 1")})
		ids = append(ids, id)
	}
	if got := mustDo(t, reader, http.StatusCreated, http.MethodPost, "insights/viewed/", map[string]any{"insight_ids": []any{ids[1], 999999, ids[1]}}); got != nil {
		t.Errorf("viewed answers %v", got)
	}
	for body, code := range map[string]string{
		`{}`: "required", `{"insight_ids":[]}`: "empty", `{"insight_ids":1}`: "not_a_list", `{"insight_ids":["x"]}`: "invalid_input",
		`{"insight_ids":[1` + strings.Repeat(",1", 2500) + `]}`: "max_length",
	} {
		if answer := reader.Do(t, http.MethodPost, "insights/viewed/", body); answer.Status != http.StatusBadRequest || answer.Body["code"] != code {
			t.Errorf("%.40s answers %d, want %s: %s", body, answer.Status, code, answer.Raw)
		}
	}
	seen := reader.Do(t, http.MethodGet, "insights/my_last_viewed/", nil)
	if seen.Status != http.StatusOK || strings.Count(string(seen.Raw), `"short_id"`) != 1 || !strings.Contains(string(seen.Raw), `"name":"two"`) {
		t.Errorf("my_last_viewed answers %d: %s", seen.Status, seen.Raw)
	}
	trending := mustDo(t, c, http.StatusOK, http.MethodGet, "insights/trending/?days=1&limit=2", nil)
	results, _ := trending["results"].([]any)
	top, _ := results[0].(map[string]any)
	viewers, _ := top["viewers"].([]any)
	if top["name"] != "two" || top["view_count"] != 2.0 || len(viewers) != 2 || trending["count"] != 2.0 {
		t.Errorf("trending: %v", trending)
	}
	if answer := c.Do(t, http.MethodGet, "insights/trending/?days=x", nil); answer.Status != http.StatusBadRequest {
		t.Errorf("trending of x days answers %d: %s", answer.Status, answer.Raw)
	}

	path := fmt.Sprintf("insights/%v/", ids[0])
	mustDo(t, c, http.StatusOK, http.MethodPatch, path, map[string]any{"name": "uno", "tags": []any{"t"}})
	mustDo(t, c, http.StatusNoContent, http.MethodDelete, path, nil)
	mustDo(t, c, http.StatusOK, http.MethodPatch, path, map[string]any{"deleted": false})
	log := mustDo(t, c, http.StatusOK, http.MethodGet, path+"activity/?limit=2&page=2", nil)
	entries, _ := log["results"].([]any)
	newest, _ := entries[0].(map[string]any)
	detail, _ := newest["detail"].(map[string]any)
	changes, _ := detail["changes"].([]any)
	if len(entries) != 2 || log["total_count"] != 4.0 || log["next"] != nil || log["previous"] == nil || newest["activity"] != "updated" {
		t.Errorf("the log: %v", log)
	}
	want := []any{
		map[string]any{"type": "Insight", "action": "changed", "field": "name", "before": "one", "after": "uno"},
		map[string]any{"type": "Insight", "action": "changed", "field": "tags", "before": []any{}, "after": []any{"t"}},
	}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	all := mustDo(t, c, http.StatusOK, http.MethodGet, "insights/activity/", nil)
	if all["total_count"] != 6.0 {
		t.Errorf("the project's log: %v", all)
	}
}

func TestDashboards(t *testing.T) {
	c := newProject(t)
	_, id := saveInsight(t, c, map[string]any{"name": "one", "query": hogQL("select 1")})
	board := mustDo(t, c, http.StatusCreated, http.MethodPost, "dashboards/", map[string]any{"name": "Zeta", "description": "d", "tags": []any{"a"}})
	path := fmt.Sprintf("dashboards/%v/", board["id"])
	mustDo(t, c, http.StatusCreated, http.MethodPost, "dashboards/", map[string]any{"name": "Alpha"})
	mustDo(t, c, http.StatusCreated, http.MethodPost, "dashboards/", map[string]any{"name": "Pinned", "pinned": true})
	if diff := cmp.Diff([]string{"Pinned", "Alpha", "Zeta"}, namesIn(t, c, "dashboards/")); diff != "" {
		t.Errorf("dashboards (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Zeta"}, namesIn(t, c, "dashboards/", "search", "zetta")); diff != "" {
		t.Errorf("search (-want +got):\n%s", diff)
	}
	insight := mustDo(t, c, http.StatusOK, http.MethodPatch, fmt.Sprintf("insights/%v/", id), map[string]any{"dashboards": []any{board["id"]}})
	if diff := cmp.Diff([]any{board["id"]}, insight["dashboards"]); diff != "" {
		t.Errorf("dashboards of the insight (-want +got):\n%s", diff)
	}
	tiles, _ := mustDo(t, c, http.StatusOK, http.MethodGet, path, nil)["tiles"].([]any)
	tile, _ := tiles[0].(map[string]any)
	shown, _ := tile["insight"].(map[string]any)
	if len(tiles) != 1 || shown["name"] != "one" {
		t.Errorf("tiles: %v", tiles)
	}
	changed := mustDo(t, c, http.StatusOK, http.MethodPatch, path, map[string]any{
		"description": "", "tiles": []any{map[string]any{"id": tile["id"], "layouts": map[string]any{"sm": map[string]any{"w": 6}}, "color": nil}},
	})
	if changed["name"] != "Zeta" || changed["description"] != "" {
		t.Errorf("changed: %v", changed)
	}
	mustDo(t, c, http.StatusOK, http.MethodPatch, path, map[string]any{"deleted": true})
	for method, body := range map[string]any{http.MethodGet: nil, http.MethodPatch: map[string]any{"name": "x"}, http.MethodDelete: nil} {
		if answer := c.Do(t, method, path, body); answer.Status != http.StatusNotFound {
			t.Errorf("%s of a deleted dashboard answers %d: %s", method, answer.Status, answer.Raw)
		}
	}
	if got := mustDo(t, c, http.StatusOK, http.MethodGet, fmt.Sprintf("insights/%v/", id), nil); len(got["dashboards"].([]any)) != 0 {
		t.Errorf("the insight is on a deleted dashboard: %v", got["dashboards"])
	}
	back := mustDo(t, c, http.StatusOK, http.MethodPatch, path, map[string]any{"deleted": false})
	if tiles, _ := back["tiles"].([]any); len(tiles) != 1 {
		t.Errorf("restored: %v", back)
	}
	readable := server.Client(c.Project, server.Key(t, c.Project, "dashboard:read", "personal"))
	if raw := string(readable.Do(t, http.MethodGet, path, nil).Raw); strings.Contains(raw, "HogQLQuery") {
		t.Errorf("a key that must not read insights sees one: %s", raw)
	}
	for body, attr := range map[string]string{
		`{"name":[5]}`: "name", `{"filters":[]}`: "filters", `{"filters":{"dates":1}}`: "filters", `{"tiles":[{"text":{"body":[5]}}]}`: "tiles.0.text.body",
		`{"tiles":[{"insight":999999}]}`: "tiles.0.insight", `{"use_template":"x"}`: "use_template", `{"restriction_level":37}`: "restriction_level",
		`{"tags":"a"}`: "tags", `{"pinned":null}`: "pinned",
	} {
		if answer := c.Do(t, http.MethodPost, "dashboards/", body); answer.Status != http.StatusBadRequest || answer.Body["attr"] != attr {
			t.Errorf("%s answers %d, want a mistake in %s: %s", body, answer.Status, attr, answer.Raw)
		}
	}
}

// TestConcurrentInsights: a hundred clients that save at the same time get different numbers, and concurrent changes of different fields of one insight are
// all kept.
func TestConcurrentInsights(t *testing.T) {
	const clients = 100
	c := newProject(t)
	path, _ := saveInsight(t, c, map[string]any{"name": "shared", "query": hogQL("select 1")})
	var all sync.WaitGroup
	ids := make([]any, clients)
	for i := range clients {
		all.Go(func() {
			made, err := c.Send(http.MethodPost, "insights/", map[string]any{"name": fmt.Sprint(i), "query": hogQL("select 1")})
			if err != nil || made.Status != http.StatusCreated || made.Body["name"] != fmt.Sprint(i) {
				t.Errorf("client %d: %v: %d %s", i, err, made.Status, made.Raw)
			}
			ids[i] = made.Body["id"]
		})
	}
	for _, change := range []map[string]any{{"name": "new"}, {"description": "d"}, {"favorited": true}, {"tags": []any{"t"}}, {"order": 7}} {
		all.Go(func() {
			if changed, err := c.Send(http.MethodPatch, path, change); err != nil || changed.Status != http.StatusOK {
				t.Errorf("%v: %v: %d %s", change, err, changed.Status, changed.Raw)
			}
		})
	}
	all.Wait()
	distinct := map[any]bool{}
	for _, id := range ids {
		distinct[id] = true
	}
	if len(distinct) != clients {
		t.Errorf("%d clients got %d numbers", clients, len(distinct))
	}
	got := mustDo(t, c, http.StatusOK, http.MethodGet, path, nil)
	want := map[string]any{"name": "new", "description": "d", "favorited": true, "tags": []any{"t"}, "order": 7.0}
	for name, value := range want {
		if diff := cmp.Diff(value, got[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
