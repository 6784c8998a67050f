package result_test

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestMemoKeysDiffer: whatever a client sends, its request is not mistaken for one of another project, endpoint or query string. The first rows are
// those that an encoding without fixed widths gets wrong: a query string may end in any byte, which could be read as part of the number after it.
func TestMemoKeysDiffer(t *testing.T) {
	type sent struct {
		project               int64
		query, endpoint, body string
	}
	tests := []struct {
		name string
		a, b sent
	}{
		{"a byte of the query string and a project", sent{1, "\x80", "", "{}"}, sent{128, "", "", "{}"}},
		{"two bytes of it", sent{1, "\x80\x80", "", "{}"}, sent{1 << 14, "", "", "{}"}},
		{"the project", sent{1, "", "", "{}"}, sent{2, "", "", "{}"}},
		{"the endpoint", sent{1, "", "a", "{}"}, sent{1, "", "b", "{}"}},
		{"query string or body", sent{1, "", "", "{}limit=1"}, sent{1, "limit=1", "", "{}"}},
		{"query string or endpoint", sent{1, "x", "", ""}, sent{1, "", "x", ""}},
	}
	w := apitest.New(t)
	key := func(s sent) string {
		rq := w.Asks(http.MethodPost, "/")
		rq.In.URL.RawQuery = s.query
		rq.Project = &registry.Project{ID: s.project}
		return string(rq.MemoKey(s.endpoint, []byte(s.body)))
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if key(tt.a) == key(tt.b) {
				t.Errorf("%+v and %+v have one key", tt.a, tt.b)
			}
		})
	}
}

// TestRecallBelievesNoOtherRegistry: another registry, or a restored one, may reach the same revisions again.
func TestRecallBelievesNoOtherRegistry(t *testing.T) {
	a, b := apitest.New(t).Asks(http.MethodPost, "/"), apitest.New(t).Asks(http.MethodPost, "/")
	if a.Snapshot.Revision != b.Snapshot.Revision || a.Project.ID != b.Project.ID {
		t.Fatalf("revisions %d and %d of projects %d and %d, want the same", a.Snapshot.Revision, b.Snapshot.Revision, a.Project.ID, b.Project.ID)
	}
	p, err := a.PlanQuery([]byte(`{"query": {"kind": "HogQLQuery", "query": "select 1"}}`))
	if err != nil {
		t.Fatal(err)
	}
	memo := []byte("memo")
	b.Services.Plans.Put(memo, p)
	if _, ok := b.Recall(memo, nil); ok {
		t.Error("a plan of another registry is used")
	}
}

// TestKeysAndProperties: the type of a property gives a new key to the results of the queries that may read it, and of no others.
func TestKeysAndProperties(t *testing.T) {
	w := apitest.New(t)
	reads := func(name string) string {
		return fmt.Sprintf(`{"kind": "HogQLQuery", "query": "select count() from events where properties.%s = 1"}`, name)
	}
	trend := func(fields string) string {
		return `{"query": {"kind": "TrendsQuery", "series": [{"event": "a"}]` + fields + `}}`
	}
	filter := `{"filters_override": {"properties": [{"type": "person", "key": "wanted", "value": 1, "operator": "exact"}]}, ` + trend("")[1:]
	queries := map[string]struct {
		body  string
		reads bool
	}{
		"HogQL":              {`{"query": ` + reads("wanted") + `}`, true},
		"HogQL of another":   {`{"query": ` + reads("other") + `}`, false},
		"insight":            {trend(""), false},
		"breakdown":          {trend(`, "breakdownFilter": {"breakdown": "wanted", "breakdown_type": "event"}`), true},
		"filter of a person": {trend(`, "properties": [{"type": "person", "key": "wanted", "value": 1, "operator": "exact"}]`), true},
		"override":           {filter, true},
	}
	keys := func() map[string]cache.Key {
		out := map[string]cache.Key{}
		for name, q := range queries {
			p, err := w.Asks(http.MethodPost, "/").PlanQuery([]byte(q.body))
			if err != nil {
				t.Fatal(name, err)
			}
			out[name] = p.Key
		}
		for name, endpoint := range map[string]string{"run": "wanted", "run of another": "other"} {
			p, err := w.Asks(http.MethodPost, "/").PlanRun(w.Registry.Snapshot().Endpoint(w.Project.ID, endpoint), nil)
			if err != nil {
				t.Fatal(name, err)
			}
			out[name] = p.Key
		}
		return out
	}
	for _, name := range []string{"wanted", "other"} {
		w.NewEndpoint(t, name, "select count() from events where properties."+name+" = 1")
	}
	before := keys()
	define := func(typ registry.PropertyType) {
		t.Helper()
		if err := w.Registry.SetProperty(t.Context(), w.Project.ID, registry.PropertyDefinition{Scope: registry.EventProperty, Name: "wanted", Type: typ}); err != nil {
			t.Fatal(err)
		}
	}
	define(registry.PropertyString)
	if !maps.Equal(before, keys()) {
		t.Error("a text gives new keys")
	}
	define(registry.PropertyNumeric)
	for name, key := range keys() {
		if changed := key != before[name]; changed != (queries[name].reads || name == "run") {
			t.Errorf("%s has a new key: %t", name, changed)
		}
	}
}

func FuzzMemoKey(f *testing.F) {
	w := apitest.New(f)
	f.Add(int64(1), "\x80", "{}", int64(128), "", "{}")
	f.Add(int64(1), "a", "b", int64(1), "", "ba")
	f.Fuzz(func(t *testing.T, projectA int64, queryA, bodyA string, projectB int64, queryB, bodyB string) {
		key := func(project int64, query, body string) string {
			rq := w.Asks(http.MethodPost, "/")
			rq.In.URL.RawQuery, rq.Project = query, &registry.Project{ID: project}
			return string(rq.MemoKey("", []byte(body)))
		}
		same := projectA == projectB && queryA == queryB && bodyA == bodyB
		if got := key(projectA, queryA, bodyA) == key(projectB, queryB, bodyB); got != same {
			t.Errorf("one key: %t, one request: %t", got, same)
		}
	})
}

// TestRecallBelievesNoOtherProject stores a plan under a request of another project: it is not used.
func TestRecallBelievesNoOtherProject(t *testing.T) {
	w := apitest.New(t)
	rq := w.Asks(http.MethodPost, "/")
	p, err := rq.PlanQuery([]byte(`{"query": {"kind": "HogQLQuery", "query": "select 1"}}`))
	if err != nil {
		t.Fatal(err)
	}
	memo := []byte("memo")
	w.Plans.Put(memo, p)
	if _, ok := rq.Recall(memo, nil); !ok {
		t.Error("the project's own plan is not found")
	}
	rq.Project = w.NewProject(t)
	if _, ok := rq.Recall(memo, nil); ok {
		t.Error("a plan of another project is used")
	}
}

// TestPlanQueryMistakes checks what is wrong around a query.
func TestPlanQueryMistakes(t *testing.T) {
	const one = "400 parse_error: JSON parse error - 1 validation error for QueryRequest\n"
	const query = `"query": {"kind": "HogQLQuery", "query": "select 1"}`
	tests := []struct{ name, body, want string }{
		{"nothing", ``, "400 parse_error: JSON parse error - the body is empty: line 1 column 1 (char 0)"},
		{"no object", `null`, one + "  Input should be a valid dictionary or instance of QueryRequest [type=model_type]"},
		{"no query", `{}`, one + "query\n  Field required [type=missing]"},
		{"a field that is near", `{` + query + `, "refersh": "async"}`, one + "refersh\n  Extra inputs are not permitted [type=extra_forbidden]: did you mean 'refresh'?"},
		{"a node alone", `{"kind": "HogQLQuery", "query": "select 1"}`, one + "kind\n  Extra inputs are not permitted [type=extra_forbidden]"},
		{"a node alone without a text", `{"kind": "TrendsQuery", "series": []}`, one + "kind\n  Extra inputs are not permitted [type=extra_forbidden]: put the query into the field query, as in {\"query\": {\"kind\": …}}"},
		{"another field", `{` + query + `, "personal_api_key": "x"}`, one + "personal_api_key\n  Extra inputs are not permitted [type=extra_forbidden]"},
		{"async that is not a boolean", `{` + query + `, "async": "x"}`, one + "async\n  Input should be a valid boolean [type=bool_type]"},
		{"an unknown refresh mode", `{` + query + `, "refresh": "soon"}`, one + "refresh\n  Input should be 'async', 'async_except_on_cache_miss', " +
			"'blocking', 'force_async', 'force_blocking', 'force_cache' or 'lazy_async' [type=enum]"},
		{"long name", `{` + query + `, "name": "` + strings.Repeat("é", 129) + `"}`, one + "name\n  String should have at most 128 characters [type=string_too_long]"},
		{"bytes that are no UTF-8", `{"a": "` + "é\xff" + `"}`, "400 parse_error: JSON parse error - invalid UTF-8 byte 0xff: line 1 column 9 (char 9)"},
		{"a replacement character is one", "{\"\uFFFD\": \"\xff\"}", "400 parse_error: JSON parse error - invalid UTF-8 byte 0xff: line 1 column 8 (char 9)"},
	}
	w := apitest.New(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := w.Asks(http.MethodPost, "/").PlanQuery([]byte(tt.body))
			if err == nil {
				t.Fatal("accepted")
			}
			if diff := cmp.Diff(tt.want, api.ErrorOf(err).Error()); diff != "" {
				t.Errorf("mistake (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlanQueryModes(t *testing.T) {
	tests := []struct {
		more    string
		refresh execution.RefreshMode
		mode    cache.Mode
	}{
		{``, execution.RefreshBlocking, cache.NoStale},
		{`, "refresh": null, "async": null`, execution.RefreshBlocking, cache.NoStale},
		{`, "async": false`, execution.RefreshBlocking, cache.NoStale},
		{`, "async": true`, execution.RefreshAsync, cache.NoStale},
		{`, "async": true, "refresh": "force_blocking"`, execution.RefreshAsync, cache.NoStale},
		{`, "refresh": "async_except_on_cache_miss"`, execution.RefreshAsyncExceptOnMiss, cache.NoStale},
		{`, "refresh": "force_cache"`, execution.RefreshBlocking, cache.NoStale},
		{`, "refresh": "lazy_async"`, execution.RefreshLazyAsync, cache.NoStale},
		{`, "refresh": "force_async"`, execution.RefreshForceAsync, cache.Recompute},
		{`, "refresh": "force_blocking"`, execution.RefreshForceBlocking, cache.Recompute},
	}
	w := apitest.New(t)
	for _, tt := range tests {
		p, err := w.Asks(http.MethodPost, "/").PlanQuery([]byte(`{"query": {"kind": "HogQLQuery", "query": "select 1"}` + tt.more + `}`))
		if err != nil || p.Refresh != tt.refresh || p.Mode != tt.mode {
			t.Errorf("%s: %v, %v", tt.more, p, err)
		}
	}
}

// TestPlanKeys reports which requests share a result.
func TestPlanKeys(t *testing.T) {
	w := apitest.New(t)
	key := func(rq *apitest.Asked, more string) cache.Key {
		t.Helper()
		p, err := rq.PlanQuery([]byte(`{"query": {"kind": "HogQLQuery", "query": "select 1"` + more + `}`))
		if err != nil {
			t.Fatal(err)
		}
		return p.Key
	}
	plain := key(w.Asks(http.MethodPost, "/"), `}`)
	if got := key(w.Asks(http.MethodPost, "/"), `, "tags": {"scene": "x"}}, "name": "labeled", "refresh": "async"`); got != plain {
		t.Error("labels and refresh modes make another key")
	}
	if got := key(w.Asks(http.MethodPost, "/"), `, "values": {"a": 1}}`); got == plain {
		t.Error("values make no other key")
	}
	other := w.Asks(http.MethodPost, "/")
	other.Project = w.NewProject(t)
	other.Snapshot = w.Registry.Snapshot()
	if key(other, `}`) == plain {
		t.Error("two projects share a key")
	}
}

// TestDeletedVariableMakesAnotherKey: an answer from before the deletion must not be served after it.
func TestDeletedVariableMakesAnotherKey(t *testing.T) {
	w := apitest.New(t)
	v, err := w.Registry.CreateVariable(t.Context(), registry.NewVariable{Project: w.Project.ID, Name: "x", Type: registry.VariableNumber}, apitest.Began)
	if err != nil {
		t.Fatal(err)
	}
	e, err := w.Registry.CreateEndpoint(t.Context(), registry.NewEndpoint{Project: w.Project.ID, Name: "e", Query: []byte(
		`{"kind": "HogQLQuery", "query": "select {variables.x}", "variables": {"` + v.ID + `": {"variableId": "` + v.ID + `", "code_name": "x"}}}`)}, apitest.Began)
	if err != nil {
		t.Fatal(err)
	}
	key := func(body string) cache.Key {
		t.Helper()
		p, err := w.Asks(http.MethodPost, "/").PlanRun(e, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return p.Key
	}
	omitted, null := key(`{}`), key(`{"variables": {"x": null}}`)
	if omitted != null {
		t.Error("a default of null and a given null have two keys")
	}
	if err := w.Registry.DeleteVariable(t.Context(), w.Project.ID, v.ID); err != nil {
		t.Fatal(err)
	}
	if key(`{}`) == omitted {
		t.Error("the key is the same when the variable is gone")
	}
}

func TestPlanRunMistakes(t *testing.T) {
	tests := []struct{ name, target, body, want string }{
		{"a list", "/", `[]`, "400 invalid_input: Invalid data. Expected a dictionary."},
		{"another field", "/", `{"x": 1}`, "400 invalid_input: Extra inputs are not permitted"},
		{"query_override", "/", `{"query_override": null}`, "400 invalid_input: Not allowed. Use variables instead."},
		{"filters_override", "/", `{"filters_override": {}}`, "400 invalid_input: Not allowed for HogQL endpoints. Use variables instead."},
		{"direct", "/", `{"refresh": "direct"}`, "400 invalid_input: 'direct' refresh mode is only valid for materialized endpoints. Use 'cache' or 'force' instead, or enable materialization on this endpoint."},
		{"limit of none", "/", `{"limit": 0}`, "400 invalid_input: Invalid limit parameter: 0"},
		{"limit that is too large for a number", "/", `{"limit": 1e400}`, "400 invalid_input: A valid integer is required."},
		{"limit as text", "/?limit=abc", ``, "400 invalid_input: Invalid limit parameter: abc"},
		{"limit and offset in one", "/?limit=1;offset=1", ``, "400 invalid_input: The query string cannot be read: invalid semicolon separator in query."},
		{"offset alone", "/?offset=1", ``, "400 invalid_input: offset requires limit to be set"},
		{"no such version", "/?version=2", ``, "404 not_found: Version 2 not found for endpoint 'e'"},
		{"version 0", "/", `{"version": 0}`, "404 not_found: Version 0 not found for endpoint 'e'"},
		{"body before query string", "/?version=2", `{"version": 3}`, "404 not_found: Version 3 not found for endpoint 'e'"},
		{"client_query_id", "/", `{"client_query_id": 5}`, "400 invalid_input: Not a valid string."},
		{"unknown variable", "/", `{"variables": {"b": 1, "a": 2}}`, "400 invalid_input: Unknown variable(s): a, b"},
		{"variables as a list", "/", `{"variables": []}`, "400 invalid_input: Input should be a valid dictionary"},
	}
	w := apitest.New(t)
	e := w.NewEndpoint(t, "e", "select 1")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := w.Asks(http.MethodGet, tt.target).PlanRun(e, []byte(tt.body))
			if err == nil {
				t.Fatal("accepted")
			}
			if diff := cmp.Diff(tt.want, api.ErrorOf(err).Error()); diff != "" {
				t.Errorf("mistake (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDraftsAreHidden: to a secret key a draft does not exist, whatever else is wrong with the run.
func TestDraftsAreHidden(t *testing.T) {
	w := apitest.New(t)
	w.NewEndpoint(t, "e", "select 1")
	e, err := w.Registry.UpdateEndpoint(t.Context(), w.Project.ID, "e", registry.EndpointUpdate{Query: []byte(`{"kind": "HogQLQuery", "query": "select 2"}`), Draft: true}, apitest.Began)
	if err != nil {
		t.Fatal(err)
	}
	secret, _ := w.NewKey(t, w.Project.ID, registry.Secret, "endpoint:read")
	for _, body := range []string{`{"version": 2}`, `{"version": 2, "variables": {"a": 1}}`, `{"version": 2, "refresh": "direct"}`, `{"version": 2, "limit": 0}`} {
		rq := w.Asks(http.MethodPost, "/")
		rq.Key = secret
		_, err := rq.PlanRun(e, []byte(body))
		if err == nil {
			t.Fatalf("%s: accepted", body)
		}
		if diff := cmp.Diff("404 not_found: Version 2 not found for endpoint 'e'", api.ErrorOf(err).Error()); diff != "" {
			t.Errorf("%s: mistake (-want +got):\n%s", body, diff)
		}
	}
}

func FuzzQueryBody(f *testing.F) {
	w := apitest.New(f)
	f.Add([]byte(`{"query": {"kind": "HogQLQuery", "query": "select 1"}, "refresh": "async", "variables_override": {"a": {"value": 1}}}`))
	f.Add([]byte(`{"query": {"kind": "HogQLQuery", "query": "select {variables.a}", "variables": {"a": {"variableId": "a", "code_name": "a", "value": 1e400}}}}`))
	f.Add([]byte("{\"query\": \xff}"))
	f.Add([]byte(`{"query": {"kind": "HogQLQuery", "query": "select 1 from events where {filters}", "filters": {"properties": [{"key": "a", "value": 1}]}},
		"filters_override": {"date_from": "-7d", "properties": [{"type": "OR", "values": [{"key": "b"}]}]}, "client_query_id": "..", "name": "é"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := w.Asks(http.MethodPost, "/").PlanQuery(body)
		checkPlanned(t, w, p, err)
	})
}

func FuzzRunBody(f *testing.F) {
	w := apitest.New(f)
	if _, err := w.Registry.CreateVariable(f.Context(), registry.NewVariable{Project: w.Project.ID, Name: "n", Type: registry.VariableNumber}, apitest.Began); err != nil {
		f.Fatal(err)
	}
	v := w.Registry.Snapshot().VariableByCode(w.Project.ID, "n")
	e, err := w.Registry.CreateEndpoint(f.Context(), registry.NewEndpoint{Project: w.Project.ID, Name: "e", Query: []byte(
		`{"kind": "HogQLQuery", "query": "select {variables.n}", "variables": {"` + v.ID + `": {"variableId": "` + v.ID + `", "code_name": "n"}}}`)}, apitest.Began)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"variables": {"n": 12345678901234567890}, "limit": 9223372036854775807, "offset": 9223372036854775807}`), "")
	f.Add([]byte(`{"refresh": "force", "debug": true, "client_query_id": "x"}`), "version=1&limit=1")
	f.Add([]byte(`{"limit": 1, "limit": -1}`), "%")
	f.Fuzz(func(t *testing.T, body []byte, query string) {
		rq := w.Asks(http.MethodPost, "/")
		rq.In.URL.RawQuery = query
		p, err := rq.PlanRun(e, body)
		checkPlanned(t, w, p, err)
		if err == nil && (p.IsPage() && p.Limit < 1 || p.Offset < 0) {
			t.Errorf("a page of %d rows from %d on", p.Limit, p.Offset)
		}
	})
}

// checkPlanned checks that a request is either understood or refused as the client's mistake.
func checkPlanned(t *testing.T, w *apitest.World, p *result.Plan, err error) {
	t.Helper()
	switch {
	case err != nil:
		if answer := api.ErrorOf(err); answer.Status < 400 || answer.Status >= 500 {
			t.Errorf("answers %d: %v", answer.Status, err)
		}
	case p.Key.Project() != w.Project.ID || p.Fresh <= 0 || p.Fresh > 7*24*time.Hour:
		t.Errorf("a plan of project %d, fresh for %s", p.Key.Project(), p.Fresh)
	}
}
