package module

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse/warehousetest"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestAuthorizeOrder checks which refusal takes precedence: contract api.md, section 6.4.
func TestAuthorizeOrder(t *testing.T) {
	w := newWorld(t)
	other := w.NewProject(t)
	secret, _ := w.NewKey(t, w.Project.ID, registry.Secret, "endpoint:read")
	reader, _ := w.NewKey(t, w.Project.ID, registry.Personal, "insight:read")
	own, foreign := strconv.FormatInt(w.Project.ID, 10), strconv.FormatInt(other.ID, 10)
	query, list, run := api.Address{Resource: "query"}, api.Address{Resource: "endpoints"}, api.Address{Resource: "endpoints", Name: "e", Action: "run"}
	const invalid = "401 authentication_failed: Personal API key found in request Authorization header is invalid."
	const secretQueries = "403 permission_denied: This is a project secret API key, which runs endpoints and does nothing else. Use a personal API key with the scope query:read."
	tests := []struct {
		name    string
		key     *registry.Key
		project string
		at      api.Address
		method  string
		want    string
	}{
		{"all is well", w.Key, own, query, http.MethodPost, ""},
		{"the current project", w.Key, "@current", query, http.MethodPost, ""},
		{"a secret key that runs", secret, own, run, http.MethodGet, ""},
		{"a secret key's kind before its project", secret, "999", query, http.MethodPost, secretQueries},
		{"a secret key where only personal ones are known", secret, own, api.Address{Resource: "insights"}, http.MethodGet, invalid},
		{"a secret key's kind before another project", secret, foreign, list, http.MethodGet, "403 permission_denied: This action does not support project secret API key access"},
		{"a secret key in another project", secret, foreign, run, http.MethodPost, fmt.Sprintf("403 permission_denied: API key does not have access to the requested project: ID %s.", foreign)},
		{"the project before the scope", reader, "999", query, http.MethodPost, "404 not_found: Project not found."},
		{"another project before the scope", reader, foreign, query, http.MethodPost, fmt.Sprintf("403 permission_denied: API key does not have access to the requested project: ID %s.", foreign)},
		{"the scope", reader, own, query, http.MethodPost, "403 permission_denied: API key missing required scope 'query:read'"},
		{"the scope to write", reader, own, list, http.MethodPost, "403 permission_denied: API key missing required scope 'endpoint:write'"},
		{"the scope of OPTIONS", reader, own, list, http.MethodOptions, "403 permission_denied: API key missing required scope 'endpoint:read'"},
		{"a project that is not a number", w.Key, "1e0", query, http.MethodPost, "404 not_found: Project not found."},
		{"a project with a sign", w.Key, "+" + own, query, http.MethodPost, "404 not_found: Project not found."},
		{"a project beyond 64 bits", w.Key, "99999999999999999999", query, http.MethodPost, "404 not_found: Project not found."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rt, ok := w.API.Methods(&tt.at).Of(tt.method)
			if !ok {
				t.Fatal("no such route")
			}
			_, err := api.Authorize(w.Registry.Snapshot(), tt.key, tt.project, &tt.at, rt)
			got := ""
			if err != nil {
				got = api.ErrorOf(err).Error()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("refusal (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMethods checks how each address answers unsupported methods.
func TestMethods(t *testing.T) {
	w := newWorld(t)
	w.NewEndpoint(t, "e", "select 1")
	tests := []struct {
		method, path string
		status       int
		allow        string
	}{
		{http.MethodHead, "endpoints/", 200, ""},
		{http.MethodHead, "endpoints/e", 200, ""},
		{http.MethodHead, "query/", 405, "OPTIONS, POST"},
		{http.MethodOptions, "query/", 200, "OPTIONS, POST"},
		{http.MethodOptions, "endpoints/e/run/", 200, "GET, HEAD, OPTIONS, POST"},
		{http.MethodOptions, "nothing/", 404, ""},
		{http.MethodDelete, "endpoints/", 405, "GET, HEAD, OPTIONS, POST"},
		{http.MethodPost, "endpoints/e", 405, "DELETE, GET, HEAD, OPTIONS, PATCH, PUT"},
		{"get", "endpoints/", 405, "GET, HEAD, OPTIONS, POST"},
		{http.MethodTrace, "insight_variables/", 405, "GET, HEAD, OPTIONS, POST"},
	}
	for _, prefix := range []string{"projects", "environments"} {
		for _, tt := range tests {
			answer := w.send(t, tt.method, "/api/"+prefix+"/@current/"+tt.path, "")
			if answer.Code != tt.status || answer.Header().Get("Allow") != tt.allow {
				t.Errorf("%s %s/%s answers %d, Allow: %q", tt.method, prefix, tt.path, answer.Code, answer.Header().Get("Allow"))
			}
		}
	}
}

// TestEveryAnswer checks what design section 7 requires of every answer.
func TestEveryAnswer(t *testing.T) {
	w := newWorld(t)
	w.NewEndpoint(t, "e", "select 1")
	for _, tt := range []struct {
		method, path, body string
		status             int
	}{
		{http.MethodGet, "endpoints/", "", 200},
		{http.MethodPatch, "endpoints/e/", `{"description": "d"}`, 200},
		{http.MethodPost, "insight_variables/", `{"name": "v", "type": "String"}`, 201},
		{http.MethodDelete, "endpoints/e/", "", 204},
		{http.MethodDelete, "endpoints/e/", "", 404},
		{http.MethodPost, "query/", "{", 400},
	} {
		answer := w.send(t, tt.method, "/api/projects/@current/"+tt.path, tt.body)
		h := answer.Header()
		if answer.Code != tt.status {
			t.Errorf("%s %s answers %d: %s", tt.method, tt.path, answer.Code, answer.Body)
		}
		if !regexp.MustCompile(`^total;dur=\d+\.\d{3}$`).MatchString(h.Get("Server-Timing")) {
			t.Errorf("%s %s: Server-Timing %q", tt.method, tt.path, h.Get("Server-Timing"))
		}
		if !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(h.Get("X-Request-Id")) || h.Get("Cache-Control") != "no-store" {
			t.Errorf("%s %s: X-Request-Id %q, Cache-Control %q", tt.method, tt.path, h.Get("X-Request-Id"), h.Get("Cache-Control"))
		}
		if length := h.Get("Content-Length"); tt.status != 204 && length != strconv.Itoa(answer.Body.Len()) {
			t.Errorf("%s %s: Content-Length %q of %d bytes", tt.method, tt.path, length, answer.Body.Len())
		}
	}
}

func TestRequestID(t *testing.T) {
	tests := []struct {
		name, given string
		kept        bool
	}{
		{"the caller's own", "abc-123_~!", true},
		{"none", "", false},
		{"a long one", strings.Repeat("x", 128), true},
		{"too long", strings.Repeat("x", 129), false},
		{"with a space", "a b", false},
		{"with a line feed", "a\nX-Evil: 1", false},
		{"not ASCII", "é", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
			r.Header["X-Request-Id"] = []string{tt.given}
			got := api.RequestID(r)
			if (got == tt.given) != tt.kept || !tt.kept && len(got) != 32 {
				t.Errorf("requestID is %q", got)
			}
			if !tt.kept && got == api.RequestID(r) {
				t.Error("two requests have one id")
			}
		})
	}
}

// TestOtherPaths: paths outside the API go to the next handler.
func TestOtherPaths(t *testing.T) {
	w := newWorld(t)
	for path, want := range map[string]int{"/": 418, "/api": 418, "/apis/x": 418, "/api/": 404, "/api/users/": 404, "/api/teams/1/": 404} {
		if answer := w.send(t, http.MethodGet, path, ""); answer.Code != want {
			t.Errorf("%s answers %d, want %d", path, answer.Code, want)
		}
	}
}

// TestNotStartedYet: a listener may be open before the app has started. Callers that leave in the meantime are released.
func TestNotStartedYet(t *testing.T) {
	w := newWorld(t)
	synctest.Test(t, func(t *testing.T) {
		app := &App{started: make(chan struct{})}
		early := &world{Handler: &Handler{app: app, logger: w.logger}, World: w.World}
		const path = "/api/projects/@current/endpoints/"
		answered := make(chan int, 1)
		go func() { answered <- early.send(t, http.MethodGet, path, "").Code }()
		gone, leave := context.WithCancel(t.Context())
		left := make(chan int, 1)
		go func() {
			answer := httptest.NewRecorder()
			r := httptest.NewRequestWithContext(gone, http.MethodGet, path, http.NoBody)
			if err := early.ServeHTTP(answer, r, nil); err != nil {
				t.Error(err)
			}
			left <- answer.Code
		}()
		synctest.Wait()
		if len(answered) != 0 || len(left) != 0 {
			t.Error("answered before the start")
		}
		leave()
		if code := <-left; code != api.StatusClientGone {
			t.Errorf("a caller that left is answered %d", code)
		}
		app.runtime.Store(w.rt)
		close(app.started)
		if code := <-answered; code != http.StatusOK {
			t.Errorf("answered %d after the start", code)
		}
	})
}

// TestEndpointWrites checks which fields of a write are refused, and that a record can be written back as it was read.
func TestEndpointWrites(t *testing.T) {
	w := newWorld(t)
	e := w.NewEndpoint(t, "e", "select 1")
	const path = "/api/projects/@current/endpoints/e/"
	tests := []struct {
		name, body string
		attr       any
		detail     string
	}{
		{"a typo", `{"data_freshness": 900}`, "data_freshness", "Extra inputs are not permitted"},
		{"breakdowns", `{"optional_breakdown_properties": ["a"]}`, "optional_breakdown_properties", "Query kind 'HogQLQuery' does not support optional breakdowns. Supported: RetentionQuery, TrendsQuery."},
		{"buckets", `{"bucket_overrides": {"a": "b"}}`, "bucket_overrides", "Invalid bucket override values: {'a': 'b'}. Valid options: ['minute', 'fifteen_minutes', 'hour', 'day', 'week', 'month']"},
		{"buckets of no table", `{"bucket_overrides": {"a": "day"}}`, "bucket_overrides", "bucket_overrides are for versions that are materialized: set is_materialized too."},
		{"version 0", `{"version": 0}`, "version", "Version 0 not found"},
		{"no such version", `{"version": 9, "description": "d"}`, "version", "Version 9 not found"},
		{"a query for a version", `{"version": 1, "query": {"kind": "HogQLQuery", "query": "select 2"}}`, "query", "Cannot change query when targeting a specific version. Query changes create a new version."},
		{"freshness of none", `{"data_freshness_seconds": 0}`, "data_freshness_seconds", "Ensure this value is greater than or equal to 1."},
		{"freshness of too long", `{"data_freshness_seconds": 604801}`, "data_freshness_seconds", "Ensure this value is less than or equal to 604800."},
		{"freshness as a word", `{"data_freshness_seconds": "day"}`, "data_freshness_seconds", "A valid integer is required."},
		{"materialization, inactive", `{"is_materialized": true, "is_active": false}`, "is_materialized", "Cannot enable materialization on inactive endpoint."},
		{"materialization of a version, inactive", `{"version": 1, "is_materialized": true, "is_active": false}`, "is_materialized", "Cannot enable materialization on inactive endpoint."},
		{"a draft without a query", `{"draft": true}`, "draft", "A draft needs a query."},
		{"an invalid time", `{"deprecated_at": "soon"}`, "deprecated_at", "Datetime has wrong format. Use a time such as 2026-06-30T00:00:00Z."},
		{"an end before the deprecation", `{"deprecated_at": "2026-06-30T00:00:00Z", "sunset_at": "2026-06-29T00:00:00Z"}`, "sunset_at", "A version cannot end before it is deprecated."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			answer := w.send(t, http.MethodPatch, path, tt.body)
			if answer.Code != 400 || apitest.FieldOf(t, answer, "attr") != tt.attr || apitest.FieldOf(t, answer, "detail") != tt.detail {
				t.Errorf("answered %d %s", answer.Code, answer.Body)
			}
		})
	}
	if now := w.Registry.Snapshot().Endpoint(w.Project.ID, "e"); !now.UpdatedAt.Equal(e.UpdatedAt) {
		t.Error("a refused write changed the endpoint")
	}
	for _, ok := range []string{
		`{"data_freshness_seconds": 1}`, `{"data_freshness_seconds": 604800}`, `{"data_freshness_seconds": null, "optional_breakdown_properties": [], "bucket_overrides": null}`,
		`{"deprecated_at": "2026-06-30 12:00", "sunset_at": "2026-12-31"}`, `{"deprecated_at": null, "sunset_at": null}`,
	} {
		if answer := w.send(t, http.MethodPatch, path, ok); answer.Code != 200 {
			t.Errorf("%s: %d %s", ok, answer.Code, answer.Body)
		}
	}
	if got := w.Registry.Snapshot().Endpoint(w.Project.ID, "e").Current().FreshnessSeconds; got != registry.DefaultFreshness {
		t.Errorf("null sets the freshness to %d", got)
	}
	version := w.send(t, http.MethodGet, path+"?version=1", "").Body.String()
	if answer := w.send(t, http.MethodPut, path, strings.Replace(version, `"query":{"kind":"HogQLQuery","query":"select 1"},`, "", 1)); answer.Code != 200 {
		t.Errorf("a record that was read can't be sent back: %d %s", answer.Code, answer.Body)
	}
}

// TestUpdateOfMaterializedEndpoint: a new version inherits the table unless its query can't be materialized, which the answer says. A limit refuses the
// update.
func TestUpdateOfMaterializedEndpoint(t *testing.T) {
	const reason = "Cannot materialize endpoint. Reason: Variables not supported: Variable not used in WHERE clause"
	tests := []struct {
		name, query string
		more        string // fields of the update
		left        int    // queries of the key's rate
		status      int
		version     int // afterwards, the current one
		table       bool
		impossible  any
	}{
		{"while ClickHouse is away", "select 2", "", 9, 200, 2, true, nil},
		{"an impossible table", "select {variables.x} from events", "", 9, 200, 2, false, reason},
		{"an impossible table of a draft, which inherits none", "select {variables.x} from events", `, "draft": true`, 9, 200, 1, true, nil},
		{"the rate is used up before the table is planned", "select 2", "", 1, 429, 1, true, nil},
		{"the rate is used up by one description", "select event from events where event = {variables.x}", `, "is_materialized": false`, 1, 429, 1, true, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.Shards = warehouse.Only(warehousetest.Nowhere(t, schema.NativeLayout()))
			w.Limits = execution.NewLimiter(Rate{Queries: tt.left, Per: time.Hour})
			if _, err := w.Registry.CreateVariable(t.Context(), registry.NewVariable{Project: w.Project.ID, Name: "x", Type: registry.VariableString}, apitest.Began); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Registry.CreateEndpoint(t.Context(), registry.NewEndpoint{
				Project: w.Project.ID, Name: "e", Query: []byte(`{"kind": "HogQLQuery", "query": "select 1"}`), Table: registry.TableUpdate{On: new(true)},
			}, apitest.Began); err != nil {
				t.Fatal(err)
			}
			body := fmt.Sprintf(`{"query": {"kind": "HogQLQuery", "query": %q}%s}`, tt.query, tt.more)
			answer := w.send(t, http.MethodPatch, "/api/projects/@current/endpoints/e/", body)
			if answer.Code != tt.status || apitest.FieldOf(t, answer, "materialization_error") != tt.impossible {
				t.Errorf("answered %d %s", answer.Code, answer.Body)
			}
			now := w.Registry.Snapshot().Endpoint(w.Project.ID, "e").Current()
			if now.Number != tt.version || (now.Table != nil) != tt.table {
				t.Errorf("the current version is %d, with the table %v", now.Number, now.Table)
			}
		})
	}
}

// TestNoOptionalBreakdowns: null stands for an empty list.
func TestNoOptionalBreakdowns(t *testing.T) {
	w := newWorld(t)
	if _, err := w.Registry.CreateEndpoint(t.Context(), registry.NewEndpoint{
		Project: w.Project.ID, Name: "e", Query: []byte(`{"kind": "TrendsQuery", "series": [{"event": "a"}], "breakdownFilter": {"breakdown": "plan"}}`), OptionalBreakdowns: []string{"plan"},
	}, apitest.Began); err != nil {
		t.Fatal(err)
	}
	answer := w.send(t, http.MethodPatch, "/api/projects/@current/endpoints/e/", `{"optional_breakdown_properties": null}`)
	if left := w.Registry.Snapshot().Endpoint(w.Project.ID, "e").Current().OptionalBreakdowns; answer.Code != 200 || len(left) != 0 {
		t.Errorf("%v are left: %d %s", left, answer.Code, answer.Body)
	}
}

// TestVariableDefaults checks defaults against the type of their variable, also when only the type changes.
func TestVariableDefaults(t *testing.T) {
	w := newWorld(t)
	const path = "/api/projects/@current/insight_variables/"
	tests := []struct{ name, body, want string }{
		{"number", `"type": "Number", "default_value": "X"`, `"X" is not a number`},
		{"number that is too large", `"type": "Number", "default_value": 1e400`, `1e400 is not a number`},
		{"integer that is too large", `"type": "Number", "default_value": 123456789012345678901`, `123456789012345678901 is not a number`},
		{"string", `"type": "String", "default_value": 5`, `5 is not a string`},
		{"boolean", `"type": "Boolean", "default_value": "maybe"`, `"maybe" is not a boolean`},
		{"date", `"type": "Date", "default_value": "2026-02-30"`, `"2026-02-30" is not a valid date (want, for example, 2026-01-31 or 2026-01-31T10:00:00Z)`},
		{"list", `"type": "List", "values": ["a"], "default_value": "b"`, `"b" is not one of its values`},
		{"list of several", `"type": "List", "values": ["a", "b"], "default_value": ["a", "b"]`, `["a","b"] is a list; the variable takes one value`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			answer := w.send(t, http.MethodPost, path, `{"name": "`+tt.name+`", `+tt.body+`}`)
			want := "The default value does not fit the variable: " + tt.want
			if answer.Code != 400 || apitest.FieldOf(t, answer, "attr") != "default_value" || apitest.FieldOf(t, answer, "detail") != want {
				t.Errorf("answered %d %s", answer.Code, answer.Body)
			}
		})
	}
	made := w.send(t, http.MethodPost, path, `{"name": "v", "type": "List", "is_multi": true, "values": ["a", "b"], "default_value": ["a"]}`)
	if made.Code != 201 {
		t.Fatalf("creating: %d %s", made.Code, made.Body)
	}
	id, _ := apitest.FieldOf(t, made, "id").(string)
	for body, want := range map[string]int{
		`{"type": "Number"}`: 400, `{"is_multi": false}`: 200, `{"values": ["b"]}`: 400, `{"values_query": "select 1"}`: 400,
		`{"type": "Number", "default_value": 3, "values": null}`: 200, `{"default_value": null}`: 200,
	} {
		if answer := w.send(t, http.MethodPatch, path+id+"/", body); answer.Code != want {
			t.Errorf("%s: %d %s", body, answer.Code, answer.Body)
		}
		if want == 200 { // unchanged
			w.send(t, http.MethodPatch, path+id+"/", `{"type": "List", "is_multi": true, "values": ["a", "b"], "default_value": ["a"]}`)
		}
		now := w.Registry.Snapshot().VariableByID(w.Project.ID, id)
		if diff := cmp.Diff([]any{registry.VariableList, true, []any{"a", "b"}, []any{"a"}}, []any{now.Type, now.IsMulti, now.Values, now.Default}); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", body, diff)
		}
	}
}
