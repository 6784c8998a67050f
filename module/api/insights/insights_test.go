package insights_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestInsightBody compares a whole insight with its result.
func TestInsightBody(t *testing.T) {
	w, i := apitest.NewWithInsight(t)
	w.RememberInsight(t, i, time.Now(), `[1,"x"]`)
	answer := w.Send(t, http.MethodGet, "/api/projects/1/insights/1/", "")
	var got map[string]any
	if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || answer.Code != http.StatusOK {
		t.Fatalf("%d %s: %v", answer.Code, answer.Body, err)
	}
	for _, name := range []string{"last_refresh", "next_allowed_client_refresh", "cache_target_age", "filters_hash"} {
		if text, ok := got[name].(string); !ok || text == "" {
			t.Errorf("%s is %v", name, got[name])
		}
		delete(got, name)
	}
	key := map[string]any{
		"id": float64(w.Key.User), "uuid": api.DerivedID("user", w.Key.ID), "distinct_id": w.Key.ID, "first_name": w.Key.Mask, "last_name": "",
		"email": fmt.Sprintf("user-%d@analytics.invalid", w.Key.User), "is_email_verified": nil, "hedgehog_config": nil, "role_at_organization": nil,
	}
	const at = "2026-01-10T12:00:00Z"
	want := map[string]any{
		"id": 1.0, "short_id": i.ShortID, "name": "a<b", "derived_name": nil, "description": nil, "filters": map[string]any{},
		"query": map[string]any{"kind": "DataVisualizationNode", "source": map[string]any{"kind": "HogQLQuery", "query": "select 1"}},
		"order": nil, "deleted": false, "favorited": false, "saved": true, "tags": []any{"t"}, "dashboards": []any{}, "dashboard_tiles": []any{},
		"created_at": at, "updated_at": at, "last_modified_at": at, "last_viewed_at": nil, "created_by": key, "last_modified_by": key, "is_sample": false,
		"effective_restriction_level": 21.0, "effective_privilege_level": 37.0, "user_access_level": "editor", "alerts": []any{}, "search_match_type": nil,
		"result": []any{[]any{1.0, "x"}}, "columns": []any{"n", "a<b"}, "types": []any{[]any{"n", "UInt64"}, []any{"a<b", "String"}}, "hasMore": false,
		"hogql": "SELECT n FROM events LIMIT 101", "resolved_date_range": nil, "is_cached": true, "timezone": "Europe/Berlin", "query_status": nil,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the insight (-want +got):\n%s", diff)
	}
	if strings.Contains(answer.Body.String(), `\u003c`) {
		t.Errorf("the body escapes for HTML: %s", answer.Body)
	}

	_, w.Secret = w.NewKey(t, w.Project.ID, registry.Personal, "insight:read")
	reader := w.Send(t, http.MethodGet, "/api/projects/1/insights/"+i.ShortID, "")
	if level := apitest.FieldOf(t, reader, "user_access_level"); level != "viewer" || apitest.FieldOf(t, reader, "effective_privilege_level") != 21.0 {
		t.Errorf("a key that may only read has the level %v", level)
	}
}

// TestInsightParams: a query string that can't be read is refused, rather than taken without the parameters in it; ids are measured in characters.
func TestInsightParams(t *testing.T) {
	w, _ := apitest.NewWithInsight(t)
	for params, want := range map[string]int{
		"":                             http.StatusOK,
		"filters_override=null":        http.StatusOK,
		`filters_override={"x":"a;b"}`: http.StatusBadRequest,
		"refresh=%zz":                  http.StatusBadRequest,
		"client_query_id=" + strings.Repeat("%C3%A9", result.MaxQueryID):   http.StatusOK,
		"client_query_id=" + strings.Repeat("%C3%A9", result.MaxQueryID+1): http.StatusBadRequest,
		"client_query_id=a%2Fb": http.StatusBadRequest,
	} {
		for _, path := range []string{"insights/1/", "insights/"} {
			r := httptest.NewRequest(http.MethodGet, "/api/projects/1/"+path, nil)
			r.URL.RawQuery = params
			r.Header.Set("Authorization", "Bearer "+w.Secret)
			answer := httptest.NewRecorder()
			w.API.ServeHTTP(answer, r)
			if answer.Code != want {
				t.Errorf("%s?%s: %d %s, want %d", path, params, answer.Code, answer.Body, want)
			}
		}
	}
}

// TestInsightFreshness: a stored response says until when its result is fresh, also after that was changed.
func TestInsightFreshness(t *testing.T) {
	w, i := apitest.NewWithInsight(t)
	at := time.Now().Truncate(time.Second)
	w.RememberInsight(t, i, at, `[1,"x"]`)
	for _, fresh := range []time.Duration{5 * time.Minute, 5 * time.Minute, time.Hour} {
		w.QueryFresh, w.Plans = fresh, result.NewPlans() // as after a reload
		w.API = w.NewAPI()
		answer := w.Send(t, http.MethodGet, "/api/projects/1/insights/1/", "")
		text, _ := apitest.FieldOf(t, answer, "cache_target_age").(string)
		if got, err := time.Parse(time.RFC3339, text); err != nil || !got.Equal(at.Add(fresh)) {
			t.Errorf("fresh for %v since %v: %s", fresh, at, text)
		}
	}
}

// TestInsightsSideBySide: the insights of a list are loaded concurrently, and each may add to the answer's headers.
func TestInsightsSideBySide(t *testing.T) {
	w, first := apitest.NewWithInsight(t)
	w.LoseClickHouse(t)
	for range 16 { // some of them at the same time
		fields := registry.InsightFields{Query: registry.To(first.Query)}
		if _, err := w.Registry.CreateInsight(t.Context(), w.Project.ID, fields, w.Key.ID, apitest.Began); err != nil {
			t.Fatal(err)
		}
	}
	w.Limits = execution.NewLimiter(registry.Rate{Queries: 1, Per: time.Hour})
	if err := w.Spend(time.Now()); err != nil {
		t.Fatal(err)
	}
	answer := w.Send(t, http.MethodGet, "/api/projects/1/insights/?refresh=force_blocking", "")
	if left := answer.Header().Get("RateLimit"); answer.Code != http.StatusTooManyRequests || !strings.HasPrefix(left, `"key";r=0;t=`) {
		t.Errorf("without an allowance: %d, RateLimit %q", answer.Code, left)
	}
}

// TestInsightWithoutClickHouse: an insight is shown whatever happens to its query, unless the query itself is wrong or the key's rate is spent
// (contract api.md, section 4.4).
func TestInsightWithoutClickHouse(t *testing.T) {
	w, i := apitest.NewWithInsight(t)
	w.LoseClickHouse(t)
	ask := func(refresh string) *httptest.ResponseRecorder {
		return w.Send(t, http.MethodGet, "/api/projects/1/insights/1/?client_query_id=mine&refresh="+refresh, "")
	}
	failure := func(answer *httptest.ResponseRecorder) map[string]any {
		status, _ := apitest.FieldOf(t, answer, "query_status").(map[string]any)
		return map[string]any{
			"code": answer.Code, "name": apitest.FieldOf(t, answer, "name"), "result": apitest.FieldOf(t, answer, "result"), "id": status["id"],
			"error": status["error"], "message": status["error_message"], "insight": status["insight_id"],
		}
	}
	want := map[string]any{
		"code": 200, "name": "a<b", "result": nil, "id": "mine", "error": true, "insight": 1.0,
		"message": "The analytics database is not available right now. Please try again later.",
	}
	for _, mode := range []string{"blocking", "force_blocking", "true", "TRUE", "Yes", "1", "", "async_except_on_cache_miss"} {
		if diff := cmp.Diff(want, failure(ask(mode))); diff != "" {
			t.Errorf("refresh=%s (-want +got):\n%s", mode, diff)
		}
	}
	for _, mode := range []string{"force_cache", "false", "False", "0", "no"} {
		if answer := ask(mode); answer.Code != http.StatusOK || apitest.FieldOf(t, answer, "query_status") != nil {
			t.Errorf("refresh=%s: %d %s", mode, answer.Code, answer.Body)
		}
	}
	w.FillPlaces(t, 10)
	want["message"] = "concurrency_limit_exceeded"
	if diff := cmp.Diff(want, failure(ask("blocking"))); diff != "" {
		t.Errorf("with a full queue (-want +got):\n%s", diff)
	}
	w.Limits = execution.NewLimiter(registry.Rate{Queries: 1, Per: time.Hour})
	if err := w.Spend(time.Now()); err != nil {
		t.Fatal(err)
	}
	if answer := ask("blocking"); answer.Code != http.StatusTooManyRequests || answer.Header().Get("Retry-After") == "" {
		t.Errorf("without an allowance: %d %s", answer.Code, answer.Body)
	}

	w.Limits, w.Places = execution.NewLimiter(registry.Rate{Queries: 240, Per: time.Minute}), admission.New(apitest.PlacesFor(10))
	if answer := ask("async"); answer.Code != http.StatusAccepted || apitest.FieldOf(t, answer, "query_status") == nil || apitest.FieldOf(t, answer, "result") != nil {
		t.Errorf("refresh=async: %d %s", answer.Code, answer.Body)
	}

	w.RememberInsight(t, i, time.Now().Add(-2*time.Hour), `[7,"old"]`)
	stale := ask("force_cache")
	if got := fmt.Sprint(apitest.FieldOf(t, stale, "result")); got != "[[7 old]]" || apitest.FieldOf(t, stale, "is_cached") != true {
		t.Errorf("a stale result: %d %s", stale.Code, stale.Body)
	}
	if status := stale.Header().Get("Cache-Status"); status != "caddy-analytics; hit; ttl=0" {
		t.Errorf("of a stale result that nothing refreshes: Cache-Status: %s", status)
	}
}

// TestInsightsOfMCP: for PostHog's MCP server, bare queries are wrapped in the node that shows them.
func TestInsightsOfMCP(t *testing.T) {
	w, _ := apitest.NewWithInsight(t)
	const trends = `{"kind":"TrendsQuery","series":[{"kind":"EventsNode","event":"a"}]}`
	for name, tt := range map[string]struct{ client, query, want string }{
		"trends":         {"mcp", trends, `{"kind":"InsightVizNode","source":` + trends + `}`},
		"SQL":            {"mcp", `{"kind":"HogQLQuery","query":"select 1"}`, `{"kind":"DataVisualizationNode","source":{"kind":"HogQLQuery","query":"select 1"}}`},
		"wrapped":        {"mcp", `{"kind":"InsightVizNode","source":` + trends + `}`, `{"kind":"InsightVizNode","source":` + trends + `}`},
		"events":         {"mcp", `{"kind":"EventsQuery","select":["*"]}`, `{"kind":"EventsQuery","select":["*"]}`},
		"another client": {"", trends, trends},
	} {
		t.Run(name, func(t *testing.T) {
			answer := w.Send(t, http.MethodPost, "/api/projects/1/insights/", `{"query":`+tt.query+`}`, "X-PostHog-Client", tt.client)
			var body struct {
				Query json.RawMessage `json:"query"`
			}
			if err := json.Unmarshal(answer.Body.Bytes(), &body); err != nil || string(body.Query) != tt.want {
				t.Errorf("saved as %s, want %s: %v", body.Query, tt.want, err)
			}
		})
	}
	answer := w.Send(t, http.MethodPost, "/api/projects/1/insights/", `{"name":"x"}`, "X-PostHog-Client", "mcp")
	if answer.Code != http.StatusBadRequest || apitest.FieldOf(t, answer, "attr") != "query" || apitest.FieldOf(t, answer, "code") != "required" {
		t.Errorf("without a query: %d %s", answer.Code, answer.Body)
	}
}

// TestRestoreInsight: only a PATCH with deleted=false finds a deleted insight, by its id or its short id.
func TestRestoreInsight(t *testing.T) {
	w, i := apitest.NewWithInsight(t)
	const path = "/api/projects/@current/insights/1/"
	if answer := w.Send(t, http.MethodDelete, path, ""); answer.Code != http.StatusNoContent || answer.Body.Len() != 0 {
		t.Errorf("DELETE: %d %s", answer.Code, answer.Body)
	}
	for _, tt := range []struct {
		method, path, body string
		want               int
	}{
		{http.MethodGet, path, "", 404},
		{http.MethodGet, path + "activity/", "", 404},
		{http.MethodDelete, path, "", 404},
		{http.MethodPatch, path, `{"name":"x"}`, 404},
		{http.MethodPatch, path, `{"deleted":true}`, 404},
		{http.MethodPut, path, `{"deleted":false}`, 404},
		{http.MethodPatch, "/api/projects/1/insights/01x/", `{"deleted":false}`, 404},
		{http.MethodPatch, "/api/projects/1/insights/" + i.ShortID, `{"deleted":false,"name":"back"}`, 200},
		{http.MethodGet, path, "", 200},
		{http.MethodPut, path, `{}`, 200},
	} {
		if answer := w.Send(t, tt.method, tt.path, tt.body); answer.Code != tt.want {
			t.Errorf("%s %s %s answers %d, want %d: %s", tt.method, tt.path, tt.body, answer.Code, tt.want, answer.Body)
		}
	}
	if name := apitest.FieldOf(t, w.Send(t, http.MethodGet, path, ""), "name"); name != "back" {
		t.Errorf("the name is %v", name)
	}
}

// TestUsersHaveNoSecrets: nothing that represents a user reveals anything about its key.
func TestUsersHaveNoSecrets(t *testing.T) {
	w, _ := apitest.NewWithInsight(t)
	_, w.Secret = w.NewKey(t, w.Project.ID, registry.Personal, "*")
	for _, path := range []string{"/api/users/@me/", "/api/personal_api_keys/@current/", "/api/organizations/@current/", "/api/projects/", "/api/projects/1/insights/"} {
		answer := w.Send(t, http.MethodGet, path, "")
		if answer.Code != http.StatusOK || strings.Contains(answer.Body.String(), w.Secret) {
			t.Errorf("%s answers %d: %s", path, answer.Code, answer.Body)
		}
	}
	rq := w.Asks(http.MethodGet, "/")
	secret, _ := w.NewKey(t, w.Project.ID, registry.Secret, "endpoint:read")
	rq.Snapshot = w.Registry.Snapshot()
	if rq.User(secret.ID) != nil || rq.User("") != nil || rq.User("unknown") != nil {
		t.Error("a secret key, an operator or an unknown key is a user")
	}
}

// TestQueryThatCannotBePlanned: the mode that computes nothing shows an insight without a result, whatever is wrong with its query.
func TestQueryThatCannotBePlanned(t *testing.T) {
	w, _ := apitest.NewWithInsight(t)
	_, w.Secret = w.NewKey(t, w.Project.ID, registry.Personal, "insight:read", "query:read")
	for _, query := range []string{`{"kind":"GoneQuery"}`, `{"kind":"ActorsQuery","select":["id"]}`} {
		fields := registry.InsightFields{Query: registry.To(json.RawMessage(query))}
		if _, err := w.Registry.CreateInsight(t.Context(), w.Project.ID, fields, w.Key.ID, apitest.Began); err != nil {
			t.Fatal(err)
		}
	}
	const filters = `filters_override={%22date_from%22:%22-7d%22}`
	for _, tt := range []struct {
		target string
		want   int
		failed []bool
	}{
		{"insights/?", 200, []bool{false, true, false}},
		{"insights/?" + filters, 200, []bool{false, true, true}},
		{"insights/2/?", 200, []bool{true}},
		{"insights/3/?" + filters, 200, []bool{true}},
		{"insights/2/?refresh=blocking", 400, nil},
		{"insights/3/?refresh=blocking&" + filters, 400, nil},
	} {
		answer := w.Send(t, http.MethodGet, "/api/projects/1/"+tt.target, "")
		type insight struct {
			Result any
			Status *struct {
				Error   bool
				Message string `json:"error_message"`
			} `json:"query_status"`
		}
		var got struct {
			insight
			Results []insight
		}
		if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || answer.Code != tt.want {
			t.Errorf("%s: %d %s", tt.target, answer.Code, answer.Body)
			continue
		}
		all := got.Results
		if all == nil {
			all = []insight{got.insight}
		}
		for i, wanted := range tt.failed {
			if i >= len(all) || all[i].Result != nil || wanted != (all[i].Status != nil && all[i].Status.Error && all[i].Status.Message != "") {
				t.Errorf("%s: insight %d of %s", tt.target, i, answer.Body)
			}
		}
	}
}

// TestNullOverrides: overrides of null count as not given.
func TestNullOverrides(t *testing.T) {
	w, i := apitest.NewWithInsight(t)
	w.RememberInsight(t, i, time.Now(), `[1,"x"]`)
	newDashboard(t, w, registry.DashboardFields{Filters: registry.To(json.RawMessage(`{"date_from":"-7d"}`)), Tiles: []registry.TileFields{{Insight: i.ID}}})
	for _, target := range []string{"insights/1/", "dashboards/1/"} {
		plain := w.Send(t, http.MethodGet, "/api/projects/1/"+target, "").Body.String()
		for _, params := range []string{"filters_override=null", "variables_override=null"} {
			answer := w.Send(t, http.MethodGet, "/api/projects/1/"+target+"?"+params, "")
			if diff := cmp.Diff(plain, answer.Body.String()); diff != "" || answer.Code != http.StatusOK {
				t.Errorf("%s?%s: %d (-want +got):\n%s", target, params, answer.Code, diff)
			}
		}
	}
}

// TestEmptyFilters: a filter without a value selects all insights.
func TestEmptyFilters(t *testing.T) {
	w, i := apitest.NewWithInsight(t)
	for query, want := range map[string]float64{
		"short_id=&created_by=&tags=&dashboards=&events=": 1, "short_id=" + i.ShortID: 1, "short_id=none": 0,
	} {
		answer := w.Send(t, http.MethodGet, "/api/projects/1/insights/?basic=true&"+query, "")
		if got := apitest.FieldOf(t, answer, "count"); got != want {
			t.Errorf("%s: %v, want %v: %d %s", query, got, want, answer.Code, answer.Body)
		}
	}
}
