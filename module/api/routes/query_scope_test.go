package routes_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/module/api/endpoints"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// powers lists every route that can run a query or hand out a credential, with the scope that alone suffices, and no other route. The addresses are
// those of the table of routes; the body is one that would do it.
var powers = map[string]struct{ scope, target, body string }{
	"POST query":                                           {"query:read", "query/", `{"query": {"kind": "HogQLQuery", "query": "select 1"}}`},
	"POST query/:name":                                     {"query:read", "query/HogQLQuery/", `{"query": {"kind": "HogQLQuery", "query": "select 1"}}`},
	"GET query/:name":                                      {"query:read", "query/x/", ``},
	"GET query/:name/log":                                  {"query:read", "query/x/log/", ``},
	"POST mcp_tools/execute_sql":                           {"query:read", "mcp_tools/execute_sql/", `{"args": {"query": "select 1"}}`},
	"POST mcp_tools/read_taxonomy":                         {"query:read", "mcp_tools/read_taxonomy/", `{"args": {"query": {"kind": "events"}}}`},
	"GET cohorts":                                          {"cohort:read", "cohorts/", ``},
	"GET cohorts/:name":                                    {"cohort:read", "cohorts/1/", ``},
	"POST cohorts":                                         {"cohort:write", "cohorts/", `{"name": "more", "is_static": true}`},
	"PUT cohorts/:name":                                    {"cohort:write", "cohorts/1/", `{"name": "other"}`},
	"PATCH cohorts/:name":                                  {"cohort:write", "cohorts/1/", `{"name": "other"}`},
	"GET cohorts/:name/persons":                            {"cohort:read person:read", "cohorts/1/persons/", ``},
	"GET cohorts/:name/duplicate_as_static_cohort":         {"cohort:write", "cohorts/1/duplicate_as_static_cohort/", ``},
	"PATCH cohorts/:name/add_persons_to_static_cohort":     {"cohort:write", "cohorts/1/add_persons_to_static_cohort/", `{"person_ids": ["00000000-0000-4000-8000-000000000000"]}`},
	"PATCH cohorts/:name/remove_person_from_static_cohort": {"cohort:write", "cohorts/1/remove_person_from_static_cohort/", `{"person_id": "00000000-0000-4000-8000-000000000000"}`},
	"GET events":                                           {"query:read", "events/", ``},
	"GET events/:name":                                     {"query:read", "events/00000000-0000-4000-8000-000000000000/", ``},
	"GET events/values":                                    {"query:read", "events/values/?key=plan", ``},
	"GET persons":                                          {"person:read", "persons/", ``},
	"GET persons/:name":                                    {"person:read", "persons/00000000-0000-4000-8000-000000000000/", ``},
	"GET persons/values":                                   {"person:read", "persons/values/?key=plan", ``},
	"GET persons/cohorts":                                  {"person:read cohort:read", "persons/cohorts/?person_id=00000000-0000-4000-8000-000000000000", ``},
	"GET event_definitions":                                {"event_definition:read", "event_definitions/", ``},
	"GET event_definitions/by_name":                        {"event_definition:read", "event_definitions/by_name/?name=x", ``},
	"GET event_definitions/typescript":                     {"event_definition:read", "event_definitions/typescript/", ``},
	"GET event_definitions/golang":                         {"event_definition:read", "event_definitions/golang/", ``},
	"GET event_definitions/python":                         {"event_definition:read", "event_definitions/python/", ``},
	"GET event_definitions/:name":                          {"event_definition:read", "event_definitions/00000000-0000-4000-8000-000000000000/", ``},
	"POST event_definitions":                               {"event_definition:write", "event_definitions/", `{"name": "x"}`},
	"PATCH event_definitions/:name":                        {"event_definition:write", "event_definitions/00000000-0000-4000-8000-000000000000/", `{"hidden": true}`},
	"GET property_definitions":                             {"property_definition:read", "property_definitions/", ``},
	"GET insights":                                         {"insight:read", "insights/?refresh=blocking", ``},
	"GET insights/:name":                                   {"insight:read", "insights/1/?refresh=blocking", ``},
	"POST insights":                                        {"insight:write query:read", "insights/?refresh=blocking", `{"query": {"kind": "HogQLQuery", "query": "select 2"}}`},
	"PATCH insights/:name":                                 {"insight:write query:read", "insights/1/?refresh=blocking", `{"query": {"kind": "HogQLQuery", "query": "select 2"}}`},
	"PUT insights/:name":                                   {"insight:write query:read", "insights/1/?refresh=blocking", `{"query": {"kind": "HogQLQuery", "query": "select 2"}}`},
	"GET dashboards/:name":                                 {"dashboard:read", "dashboards/1/?refresh=blocking", ``},
	"GET dashboards/:name/run_insights":                    {"dashboard:read", "dashboards/1/run_insights/?refresh=blocking", ``},
	"POST dashboards":                                      {"dashboard:write query:read", "dashboards/", `{"filters": {"properties": [{"type": "hogql", "key": "1 = 1"}]}}`},
	"PATCH dashboards/:name":                               {"dashboard:write query:read", "dashboards/1/", `{"tiles": [{"id": 1, "filters_overrides": {"properties": [{"type": "hogql", "key": "1 = 1"}]}}]}`},
	"POST dashboards/:name/copy_tile":                      {"dashboard:write", "dashboards/1/copy_tile/?refresh=blocking", `{"fromDashboardId": 2, "tileId": 2}`},
	"POST dashboards/:name/move_tile":                      {"dashboard:write", "dashboards/1/move_tile/?refresh=blocking", `{"to_dashboard": 2, "tile": {"id": 1}}`},
	"PATCH dashboards/:name/move_tile":                     {"dashboard:write", "dashboards/1/move_tile/?refresh=blocking", `{"to_dashboard": 2, "tile": {"id": 1}}`},
	"PUT dashboards/:name":                                 {"dashboard:write query:read", "dashboards/1/", `{"filters": {"properties": [{"type": "hogql", "key": "1 = 1"}]}}`},
	"POST alerts":                                          {"alert:write insight:read", "alerts/", `{"insight": 2, "subscribed_users": [], "threshold": {"configuration": {"type": "absolute", "bounds": {"upper": 1}}}, "condition": {"type": "absolute_value"}, "config": {"type": "TrendsAlertConfig", "series_index": 0}}`},
	"PATCH alerts/:name":                                   {"alert:write insight:read", "alerts/ALERT/", `{"webhook_url": "https://example.com/"}`},
	"PUT alerts/:name":                                     {"alert:write insight:read", "alerts/ALERT/", `{"insight": 2, "subscribed_users": [], "threshold": {"configuration": {"type": "absolute", "bounds": {"upper": 1}}}}`},

	// Contract api.md, section 6.4: these scopes publish and run queries by themselves.
	"POST endpoints":                               {"endpoint:write", "endpoints/", `{"name": "more", "query": {"kind": "HogQLQuery", "query": "select 1"}}`},
	"PATCH endpoints/:name":                        {"endpoint:write", "endpoints/mine/", `{"query": {"kind": "HogQLQuery", "query": "select 3"}}`},
	"PUT endpoints/:name":                          {"endpoint:write", "endpoints/mine/", `{"query": {"kind": "HogQLQuery", "query": "select 3"}}`},
	"POST endpoints/:name/materialization_preview": {"endpoint:read", "endpoints/mine/materialization_preview/", `{}`},
	"GET endpoints/:name/run":                      {"endpoint:read", "endpoints/mine/run", ``},
	"POST endpoints/:name/run":                     {"endpoint:read", "endpoints/mine/run", `{}`},
	"POST endpoint_tokens":                         {"endpoint:read", "endpoint_tokens/", `{"endpoints": ["mine"]}`},
	"POST project_secret_api_keys":                 {"project:write endpoint:read", "project_secret_api_keys/", `{"label": "new", "scopes": ["endpoint:read"]}`},
	"PATCH project_secret_api_keys/:name":          {"project:write endpoint:read", "project_secret_api_keys/KEY/", `{"scopes": ["query:read", "endpoint:read"]}`},
	"PUT project_secret_api_keys/:name":            {"project:write endpoint:read", "project_secret_api_keys/KEY/", `{"scopes": ["query:read", "endpoint:read"]}`},
	"POST project_secret_api_keys/:name/roll":      {"project:write query:read", "project_secret_api_keys/KEY/roll/", ``},
	"POST personal_api_keys":                       {"project:write query:read", "personal_api_keys/", `{"label": "new", "scopes": ["query:read"]}`},
	"PATCH personal_api_keys/:name":                {"project:write query:read", "personal_api_keys/@current/", `{"scopes": ["project:write", "query:read"]}`},
	"PUT personal_api_keys/:name":                  {"project:write query:read", "personal_api_keys/@current/", `{"scopes": ["project:write", "query:read"]}`},
	"POST personal_api_keys/:name/roll":            {"project:write query:read endpoint:write insight_variable:write insight:write dashboard:write", "personal_api_keys/PEER/roll/", ``},
}

// powerless are the routes that read and write records, and neither run a query nor hand out a credential.
var powerless = strings.Fields(`
	DELETE_query/:name GET_endpoints GET_endpoints/:name DELETE_endpoints/:name GET_endpoints/:name/openapi.json GET_endpoints/openapi.json
	GET_endpoints/:name/versions POST_endpoints/:name/promote POST_endpoints/:name/rollback GET_endpoints/:name/logs GET_endpoints/:name/usage GET_endpoint_usage
	GET_endpoints/:name/materialization_status POST_endpoints/:name/materialization_suggestion DELETE_insights/:name GET_insights/:name/activity GET_insights/activity POST_insights/viewed
	GET_insights/my_last_viewed GET_insights/trending POST_insights/cancel GET_dashboards DELETE_dashboards/:name POST_dashboards/:name/reorder_tiles
	GET_dashboards/widget_catalog POST_dashboards/:name/create_text_tile POST_dashboards/:name/update_text_tile POST_dashboards/:name/delete_tile
	GET_insight_variables POST_insight_variables GET_insight_variables/:name PUT_insight_variables/:name PATCH_insight_variables/:name
	DELETE_insight_variables/:name GET_project_secret_api_keys GET_project_secret_api_keys/:name DELETE_project_secret_api_keys/:name GET_groups_types
	GET_annotations POST_annotations GET_annotations/:name PUT_annotations/:name PATCH_annotations/:name
	GET_property_definitions/:name PATCH_property_definitions/:name
	PATCH_/project PATCH_/organizations/:name/project GET_/organizations/:name/members GET_/organizations/:name/member
	GET_status GET_alerts GET_alerts/:name DELETE_alerts/:name POST_persons
	DELETE_persons/:name POST_persons/:name/delete_events POST_persons/bulk_delete GET_persons/deletion_status
	PATCH_persons/:name PUT_persons/:name POST_persons/:name/update_property POST_persons/:name/delete_property
	GET_personal_api_keys GET_personal_api_keys/:name DELETE_personal_api_keys/:name
	GET_imports POST_imports GET_imports/:name DELETE_imports/:name
	GET_actions POST_actions GET_actions/:name GET_actions/:name/references PUT_actions/:name PATCH_actions/:name
	GET_/projects GET_/project GET_/users/:name GET_/personal_api_keys/:name DELETE_/personal_api_keys/:name GET_/organizations GET_/organizations/:name
	GET_/organizations/:name/projects GET_/organizations/:name/project GET_/feature_flag/local_evaluation`)

// target returns the address of a row of the table of powers.
func target(w *apitest.World, text string, secret *registry.Key) string {
	alert := w.Registry.Snapshot().Alerts(w.Project.ID)[0]
	return "/api/projects/@current/" + strings.NewReplacer("KEY", secret.ID, "PEER", w.Key.ID, "ALERT", alert.ID).Replace(text)
}

// TestPowersOfScopes: every route that can run a query or hand out a credential needs the scopes of the table. Each is tried with each single scope.
// A new route must be added to one of the two lists.
func TestPowersOfScopes(t *testing.T) {
	scopes := map[string]bool{}
	for _, r := range apitest.New(t).API.Routes() {
		at, method := r.Address(), r.Method
		name := method + " " + strings.TrimRight(at.Resource+"/"+at.Name+"/"+at.Action, "/")
		if at.Action != "openapi.json" {
			name, _, _ = strings.Cut(name, ".") // the formats of a run are like the run
		}
		if _, powerful := powers[name]; !powerful && at.Name != "" && at.Name != ":name" {
			name = method + " " + at.Resource + "/" + at.Name
		}
		_, powerful := powers[name]
		if powerful == slices.Contains(powerless, strings.Replace(name, " ", "_", 1)) && !fixedEndpointNames[at.Name] {
			t.Errorf("%s stands in no list, or in both", name)
		}
		scopes[r.Scope] = true
	}
	delete(scopes, api.AnyScope)
	w, secret := apitest.NewWithAll(t)
	for name, power := range powers {
		method, _, _ := strings.Cut(name, " ")
		target := target(w, power.target, secret)
		for scope := range scopes {
			key, text := w.NewKey(t, w.Project.ID, registry.Personal, scope)
			if key.Allows(power.scope) && name != "POST endpoint_tokens" {
				continue
			}
			if answer := w.SendAs(t, text, method, target, power.body); answer.Code != http.StatusForbidden {
				t.Errorf("%s with %s alone: %d %s", name, scope, answer.Code, answer.Body)
			}
			if answer := w.SendAs(t, text, method, target, asForm(t, power.body), formHeader...); answer.Code != http.StatusForbidden && answer.Code != http.StatusUnsupportedMediaType {
				t.Errorf("%s with %s alone, as a form: %d %s", name, scope, answer.Code, answer.Body)
			}
		}
	}
	snap := w.Registry.Snapshot()
	if len(snap.Insights(w.Project.ID)) != 2 || len(snap.Alerts(w.Project.ID)) != 1 || snap.Alerts(w.Project.ID)[0].Changes > 0 || len(snap.Dashboards(w.Project.ID)) != 1 || snap.KeyByID(w.Project.ID, secret.ID).Hash != secret.Hash {
		t.Error("refused requests changed something")
	}
	for name, power := range powers {
		t.Run(name, func(t *testing.T) {
			w, secret := apitest.NewWithAll(t)
			method, _, _ := strings.Cut(name, " ")
			kind := registry.Personal
			if name == "POST endpoint_tokens" {
				kind = registry.Secret
			}
			_, text, err := w.Registry.CreateKey(t.Context(), registry.NewKey{ // of a session: other keys can only roll themselves
				Project: w.Project.ID, Kind: kind, Scopes: strings.Fields(power.scope), Session: kind == registry.Personal, ExpiresAt: time.Now().Add(time.Hour),
			}, apitest.Began)
			if err != nil {
				t.Fatal(err)
			}
			answer := w.SendAs(t, text, method, target(w, power.target, secret), power.body)
			if answer.Code == http.StatusForbidden || answer.Code == http.StatusUnauthorized {
				t.Errorf("with %s: %d %s", power.scope, answer.Code, answer.Body)
			}
		})
	}
}

// fixedEndpointNames are addresses below endpoints/ that, besides a method of their own, serve what an endpoint of that name would.
var fixedEndpointNames = map[string]bool{"last_execution_times": true, "bulk_update_tags": true, "materialization_conditions": true, endpoints.EveryEndpoint: true}

var formHeader = []string{"Content-Type", "application/x-www-form-urlencoded"}

// asForm returns a JSON object as a form.
func asForm(t *testing.T, body string) string {
	t.Helper()
	var fields map[string]json.RawMessage
	if body != "" {
		if err := json.Unmarshal([]byte(body), &fields); err != nil {
			t.Fatal(err)
		}
	}
	form := url.Values{}
	for name, raw := range fields {
		text := string(raw)
		_ = json.Unmarshal(raw, &text) // what is not a string stays JSON
		form.Set(name, text)
	}
	return form.Encode()
}

func TestKeyGivesOutNoMoreThanItHas(t *testing.T) {
	const path = "/api/projects/@current/project_secret_api_keys/"
	w, secret := apitest.NewWithAll(t)
	_, text := w.NewKey(t, w.Project.ID, registry.Personal, "project:write", "endpoint:write")
	for _, tt := range []struct{ name, method, path, body, want string }{
		{
			"a key with one scope more", "POST", "", `{"label": "a", "scopes": ["endpoint:read", "query:read"]}`,
			"403 API key missing required scope 'query:read': a key can only give out scopes that it has",
		},
		{
			"a key with two more", "POST", "", `{"label": "a", "scopes": ["query:read", "account:read"]}`,
			"403 API key missing required scopes 'account:read', 'query:read': a key can only give out scopes that it has",
		},
		{
			"more scopes", "PATCH", secret.ID, `{"scopes": ["query:read", "account:read"]}`,
			"403 API key missing required scope 'account:read': a key can only give out scopes that it has",
		},
		{
			"rolling a key with more", "POST", secret.ID + "/roll", ``,
			"403 API key missing required scope 'query:read': a key can only give out scopes that it has",
		},
		{"an unknown scope", "POST", "", `{"label": "a", "scopes": ["nonsense"]}`, "400 Invalid scope: nonsense"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, apitest.OutcomeOf(t, w.SendAs(t, text, tt.method, path+tt.path, tt.body))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for _, tt := range []struct {
		name, method, path, body string
		want                     int
	}{
		{"the scopes that a key has already, and a new label", "PATCH", secret.ID, `{"label": "b", "scopes": ["query:read"]}`, 200},
		{"scopes that both have", "PATCH", secret.ID, `{"scopes": ["query:read", "endpoint:read"]}`, 200},
		{"fewer scopes", "PATCH", secret.ID, `{"scopes": ["endpoint:read"]}`, 200},
		{"rolling a key with what both have", "POST", secret.ID + "/roll", ``, 200},
		{"a key with what both have", "POST", "", `{"label": "c", "scopes": ["endpoint:read"]}`, 201},
	} {
		if answer := w.SendAs(t, text, tt.method, path+tt.path, tt.body); answer.Code != tt.want {
			t.Errorf("%s: %d %s", tt.name, answer.Code, answer.Body)
		}
	}
}

// TestInsightOfAKeyWithoutQueries: a key that only has insight:write saves an insight (contract api.md, section 6.4) and gets no rows of it in any
// way; callers that may query run it, and saving it again with such a key makes it an ordinary insight.
func TestInsightOfAKeyWithoutQueries(t *testing.T) {
	w, _ := apitest.NewWithAll(t)
	author, authorText := w.NewKey(t, w.Project.ID, registry.Personal, "insight:write", "dashboard:write")
	_, analyst := w.NewKey(t, w.Project.ID, registry.Personal, "insight:write", "query:read")
	_, reader := w.NewKey(t, w.Project.ID, registry.Personal, "insight:read")
	const query = `{"kind":"HogQLQuery","query":"select 42"}`
	made := w.SendAs(t, authorText, http.MethodPost, "/api/projects/1/insights/", `{"name": "own", "query": `+query+`}`)
	if made.Code != http.StatusCreated || apitest.FieldOf(t, made, "result") != nil {
		t.Fatalf("saving: %d %s", made.Code, made.Body)
	}
	number, _ := apitest.FieldOf(t, made, "id").(float64)
	saved := w.Registry.Snapshot().Insight(w.Project.ID, int64(number))
	if saved == nil || saved.CreatedBy != author.ID || !saved.NeedsQueryScope {
		t.Fatalf("saved: %+v", saved)
	}
	w.RememberInsight(t, saved, apitest.Began, `[42,"marker"]`)
	path := fmt.Sprintf("/api/projects/1/insights/%d/", saved.ID)
	if answer := w.SendAs(t, analyst, http.MethodGet, path, ""); !strings.Contains(answer.Body.String(), "marker") {
		t.Errorf("who may query sees no result: %d %s", answer.Code, answer.Body)
	}
	for who, text := range map[string]string{"its author": authorText, "a reader": reader} {
		if answer := w.SendAs(t, text, http.MethodGet, path, ""); answer.Code != http.StatusOK || apitest.FieldOf(t, answer, "result") != nil {
			t.Errorf("%s: %d %s", who, answer.Code, answer.Body)
		}
		for _, mode := range slices.Sorted(maps.Keys(map[string]bool{"true": true, "blocking": true, "async": true, "force_async": true, "lazy_async": true})) {
			if answer := w.SendAs(t, text, http.MethodGet, path+"?refresh="+mode, ""); answer.Code != http.StatusForbidden {
				t.Errorf("%s, refresh=%s: %d %s", who, mode, answer.Code, answer.Body)
			}
		}
		list := w.SendAs(t, text, http.MethodGet, "/api/projects/1/insights/?search=own&refresh=blocking", "")
		if list.Code != http.StatusOK || strings.Contains(list.Body.String(), "marker") || !strings.Contains(list.Body.String(), "missing required scope 'query:read'") {
			t.Errorf("%s, a list: %d %s", who, list.Code, list.Body)
		}
	}
	if answer := w.SendAs(t, analyst, http.MethodPatch, path, `{"query": `+query+`}`); answer.Code != http.StatusOK {
		t.Fatalf("saving again: %d %s", answer.Code, answer.Body)
	}
	for _, change := range []string{`{"name": "other"}`, `{"query": { "kind": "HogQLQuery", "query": "select 42"} }`} { // nothing that runs
		if answer := w.SendAs(t, authorText, http.MethodPatch, path+"?refresh=blocking", change); answer.Code == http.StatusForbidden {
			t.Errorf("%s: %d %s", change, answer.Code, answer.Body)
		}
	}
	if answer := w.SendAs(t, reader, http.MethodGet, path, ""); !strings.Contains(answer.Body.String(), "marker") {
		t.Errorf("a reader of what an analyst saved: %d %s", answer.Code, answer.Body)
	}
}

// TestOverridesWithExpressions: an expression in filters that override a saved insight is a query of its own, whoever asks first.
func TestOverridesWithExpressions(t *testing.T) {
	w, i := apitest.NewWithInsight(t)
	w.LoseClickHouse(t)
	_, reader := w.NewKey(t, w.Project.ID, registry.Personal, "insight:read", "endpoint:read")
	_, analyst := w.NewKey(t, w.Project.ID, registry.Personal, "insight:read", "endpoint:read", "query:read")
	if _, err := w.Registry.CreateEndpoint(t.Context(), registry.NewEndpoint{
		Project: w.Project.ID, Name: "trend", Query: []byte(`{"kind": "TrendsQuery", "series": [{"kind": "EventsNode", "event": "x"}]}`),
	}, apitest.Began); err != nil {
		t.Fatal(err)
	}
	for _, over := range []string{
		`{"properties": [{"type": "hogql", "key": "1 = 1"}]}`,
		`{"properties": {"type": "AND", "values": [{"type": "OR", "values": [{"type": "hogql", "key": "1 = 1"}]}]}}`,
		`{"breakdown_filter": {"breakdown_type": "hogql", "breakdown": "event"}}`,
	} {
		target := fmt.Sprintf("/api/projects/1/insights/%d/?refresh=blocking&filters_override=%s", i.ID, strings.NewReplacer(" ", "%20", `"`, "%22").Replace(over))
		body := `{"filters_override": ` + over + `}`
		for range 2 { // the second time from what is remembered of requests
			if answer := w.SendAs(t, analyst, http.MethodGet, target, ""); answer.Code == http.StatusForbidden {
				t.Errorf("%s: %d %s", over, answer.Code, answer.Body)
			}
			if answer := w.SendAs(t, analyst, http.MethodPost, "/api/projects/1/endpoints/trend/run", body); answer.Code == http.StatusForbidden {
				t.Errorf("a run with %s: %d %s", over, answer.Code, answer.Body)
			}
			if answer := w.SendAs(t, reader, http.MethodGet, target, ""); answer.Code != http.StatusForbidden {
				t.Errorf("a reader with %s: %d %s", over, answer.Code, answer.Body)
			}
			if answer := w.SendAs(t, reader, http.MethodPost, "/api/projects/1/endpoints/trend/run", body); answer.Code != http.StatusForbidden {
				t.Errorf("a reader's run with %s: %d %s", over, answer.Code, answer.Body)
			}
		}
	}
	plain := `{"filters_override": {"date_from": "-7d", "properties": [{"type": "event", "key": "a", "value": "b"}]}}`
	if answer := w.SendAs(t, reader, http.MethodPost, "/api/projects/1/endpoints/trend/run", plain); answer.Code == http.StatusForbidden {
		t.Errorf("plain filters: %d %s", answer.Code, answer.Body)
	}
}

// TestFormsPassNoFence: what a key may not send as JSON, it may not send as a form either, and nothing changes.
func TestFormsPassNoFence(t *testing.T) {
	const hogql = `{"properties": [{"type": "hogql", "key": "1 = 1"}]}`
	w, secret := apitest.NewWithAll(t)
	if _, err := w.Registry.AddText(t.Context(), w.Project.ID, 1, registry.TileFields{Text: registry.To(new("text"))}, w.Key.ID, apitest.Began); err != nil {
		t.Fatal(err)
	}
	_, text := w.NewKey(t, w.Project.ID, registry.Personal, "dashboard:write", "insight:read", "project:write", "endpoint:write")
	for _, tt := range []struct{ name, method, path, body, want string }{
		{"HogQL over a dashboard", "PATCH", "dashboards/1/", "filters=" + hogql, "403"},
		{"HogQL over a tile", "PATCH", "dashboards/1/", `tiles=[{"id": 1, "filters_overrides": ` + hogql + `}]`, "403"},
		{"insights that go with a dashboard", "PATCH", "dashboards/1/", "deleted=on&delete_insights=1", "403"},
		{"copies of insights", "POST", "dashboards/", "use_dashboard=1&duplicate_tiles=yes", "403"},
		{"copies of tiles", "PATCH", "dashboards/1/", `duplicate_tiles=[{"id": 1}]`, "403"},
		{"more scopes for a key", "PATCH", "project_secret_api_keys/" + secret.ID + "/", "scopes=query:read&scopes=account:read", "403"},
		{"an insight", "POST", "insights/", "name=x", "403"},
		{"a name that is too long", "PATCH", "dashboards/1/", "name=" + strings.Repeat("x", 401), "400"},
		{"a text that is too long", "POST", "dashboards/1/create_text_tile/", "body=" + strings.Repeat("x", 4001), "400"},
		{"too many tiles", "PATCH", "dashboards/1/", `tiles=[` + strings.Repeat(`{"text":{"body":"x"}},`, registry.MaxTiles) + `{"text":{"body":"x"}}]`, "400"},
		{"a field that endpoints don't have", "PATCH", "endpoints/mine/", "querry=x", "400"},
		{"a run", "POST", "endpoints/mine/run", "variables={}", "415"},
		{"a query", "POST", "query/", `query={"kind": "HogQLQuery", "query": "select 1"}`, "403"},
	} {
		before := w.Registry.Snapshot().Revision
		for _, header := range [][]string{formHeader, {"Content-Type", "multipart/form-data; boundary=x"}} {
			body := tt.body
			if header[1] != formHeader[1] {
				body = ""
				for pair := range strings.SplitSeq(tt.body, "&") {
					name, value, _ := strings.Cut(pair, "=")
					body += fmt.Sprintf("--x\r\nContent-Disposition: form-data; name=%q\r\n\r\n%s\r\n", name, value)
				}
				body += "--x--\r\n"
			}
			answer := w.SendAs(t, text, tt.method, "/api/projects/@current/"+tt.path, body, header...)
			if fmt.Sprint(answer.Code) != tt.want {
				t.Errorf("%s, %s: %d %.300s, want %s", tt.name, header[1], answer.Code, answer.Body, tt.want)
			}
		}
		if after := w.Registry.Snapshot().Revision; after != before {
			t.Errorf("%s changed something", tt.name)
		}
	}
}
