package routes_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestFenceHoldsForEveryRequest tries to bypass a key's fixed variables.
func TestFenceHoldsForEveryRequest(t *testing.T) {
	w := apitest.NewWithEndpoints(t)
	acme, _ := w.BoundKey(t, registry.Secret, map[string]any{"customer": "acme"})
	five, _ := w.BoundKey(t, registry.Personal, map[string]any{"seats": 5})
	several, _ := w.BoundKey(t, registry.Secret, map[string]any{"plans": []any{"pro", "team"}})
	listed, _ := w.BoundKey(t, registry.Secret, nil, "trend")
	const (
		denied = "403 permission_denied: You do not have access to this endpoint."
		other  = "403 permission_denied: Variable customer: this key fixes its value. (variables)"

		overridden = "403 permission_denied: This key is limited to endpoints as they are, so filters_override cannot be used with it. (filters_override)"
	)
	tests := []struct {
		name           string
		key            *registry.Key
		endpoint, body string
		want           string // the variables that the run has, or the refusal
	}{
		{"nothing given", acme, "mine", ``, `{"customer":"acme"}`},
		{"its own value", acme, "mine", `{"variables": {"customer": "acme"}}`, `{"customer":"acme"}`},
		{"its own value, written otherwise", acme, "mine", `{"variables": {"\u0063ustomer": "\u0061cme"}}`, `{"customer":"acme"}`},
		{"no variables", acme, "mine", `{"variables": null}`, `{"customer":"acme"}`},
		{"another value", acme, "mine", `{"variables": {"customer": "globex"}}`, other},
		{"another case", acme, "mine", `{"variables": {"customer": "ACME"}}`, other},
		{"null", acme, "mine", `{"variables": {"customer": null}}`, other},
		{"nothing in it", acme, "mine", `{"variables": {"customer": ""}}`, other},
		{"a list with it", acme, "mine", `{"variables": {"customer": ["acme"]}}`, other},
		{"a list with another", acme, "mine", `{"variables": {"customer": ["acme", "globex"]}}`, other},
		{"an object", acme, "mine", `{"variables": {"customer": {"value": "globex"}}}`, other},
		{"a space behind it", acme, "mine", `{"variables": {"customer": "acme "}}`, other},
		{"a name in other case", acme, "mine", `{"variables": {"Customer": "globex"}}`, "400 invalid_input: Unknown variable(s): Customer (variables)"},
		{"a field in other case", acme, "mine", `{"Variables": {"customer": "globex"}}`, "400 invalid_input: Extra inputs are not permitted (Variables)"},
		{"the name twice, its own last", acme, "mine", `{"variables": {"customer": "globex", "customer": "acme"}}`, `{"customer":"acme"}`},
		{"the name twice, its own first", acme, "mine", `{"variables": {"customer": "acme", "customer": "globex"}}`, other},
		{"the field twice", acme, "mine", `{"variables": {"customer": "globex"}, "variables": {}}`, `{"customer":"acme"}`},
		{"the field twice, another value last", acme, "mine", `{"variables": {}, "variables": {"customer": "globex"}}`, other},
		{"an endpoint without it", acme, "open", ``, denied},
		{"an endpoint that declares it alone", acme, "declared", ``, denied},
		{"an endpoint with another", acme, "seats", ``, denied},
		{"an insight", acme, "trend", ``, `"acme"`},
		{"an insight, another value", acme, "trend", `{"variables": {"customer": "globex"}}`, other},
		{"an insight, those without one", acme, "trend", `{"variables": {"customer": ""}}`, other},
		{"an insight and its dates", acme, "trend", `{"variables": {"date_from": "-7d"}}`, `"acme"`},
		{"overrides", acme, "trend", `{"filters_override": {"properties": []}}`, overridden},
		{"another breakdown of a listed endpoint", listed, "trend", `{"filters_override": {"breakdown_filter": {"breakdown": "email", "breakdown_type": "person"}}}`, overridden},
		{"no overrides", acme, "trend", `{"filters_override": null}`, `"acme"`},
		{"a number", five, "seats", ``, `{"seats":5}`},
		{"a number as text", five, "seats", `{"variables": {"seats": "5"}}`, `{"seats":5}`},
		{"another number", five, "seats", `{"variables": {"seats": 6}}`, "403 permission_denied: Variable seats: this key fixes its value. (variables)"},
		{"a list", several, "plans", `{"variables": {"plans": ["pro", "team"]}}`, `{"plans":["pro","team"]}`},
		{"a longer list", several, "plans", `{"variables": {"plans": ["pro", "team", "free"]}}`, "403 permission_denied: Variable plans: this key fixes its value. (variables)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := w.PlanAs(tt.key, tt.endpoint, tt.body)
			var got string
			if err != nil {
				refused := api.ErrorOf(err)
				if got = refused.Error(); refused.Attr != nil {
					got += fmt.Sprintf(" (%s)", refused.Attr)
				}
			} else {
				got = boundTo(w, p)
				if p.Fixed != tt.key.Fixed {
					t.Errorf("the plan is of a key that fixes %q", p.Fixed)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// boundTo returns what a plan's variables were bound to: for an insight, the values of its filters.
func boundTo(w *apitest.World, p *result.Plan) string {
	if n, ok := p.Node.(query.Insight); ok {
		return strings.Join(regexp.MustCompile(`"acme"|"globex"`).FindAllString(string(n.Canonical()), -1), " ")
	}
	return result.VariableMarks(&w.Asks(http.MethodPost, "/").Caller.Caller, p.Node)
}

// TestFenceOfSharedPlansAndPages sends the same bytes with keys that differ only in their fixed variables, in every order and at the same time: they
// never share plans, results or rendered pages.
func TestFenceOfSharedPlansAndPages(t *testing.T) {
	w := apitest.NewWithEndpoints(t)
	secrets := make([]string, 3)
	tags := map[string]bool{}
	const body, path = `{"limit": 10}`, "/api/projects/@current/endpoints/mine/run"
	for i, customer := range []string{"acme", "globex", "acme\x00"} {
		var key *registry.Key
		key, secrets[i] = w.BoundKey(t, registry.Secret, map[string]any{"customer": customer})
		p, err := w.PlanAs(key, "mine", body)
		if err != nil {
			t.Fatal(err)
		}
		w.Remember(t, p, time.Now(), fmt.Sprintf("[%d,\"row\"]", i))
	}
	ask := func(t *testing.T, i int) string {
		t.Helper()
		r := *w
		r.Secret = secrets[i]
		answer := r.Send(t, http.MethodPost, path, body)
		if want := fmt.Sprintf(`{"results":[[%d,"row"]],`, i); answer.Code != 200 || !strings.HasPrefix(answer.Body.String(), want) {
			t.Errorf("key %d: %d %s", i, answer.Code, answer.Body)
		}
		return answer.Header().Get("Etag")
	}
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 1, 0, 0, 2, 2}, {0, 2, 1, 0}} {
		for _, i := range order {
			tags[ask(t, i)] = true
		}
	}
	if len(tags) != len(secrets) {
		t.Errorf("%d tags of %d pages", len(tags), len(secrets))
	}
	var all sync.WaitGroup
	for n := range 60 {
		all.Go(func() { ask(t, n%len(secrets)) })
	}
	all.Wait()
}

// TestRecallBelievesNoOtherFence stores a plan under a request of a key with other fixed variables: it is not used.
func TestRecallBelievesNoOtherFence(t *testing.T) {
	w := apitest.NewWithEndpoints(t)
	acme, _ := w.BoundKey(t, registry.Secret, map[string]any{"customer": "acme"})
	globex, _ := w.BoundKey(t, registry.Secret, map[string]any{"customer": "globex"})
	p, err := w.PlanAs(acme, "mine", "")
	if err != nil {
		t.Fatal(err)
	}
	memo := []byte("memo")
	w.Plans.Put(memo, p)
	for key, want := range map[*registry.Key]bool{acme: true, globex: false, w.Key: false} {
		rq := w.Asks(http.MethodPost, "/")
		rq.Key = key
		if _, ok := rq.Recall(memo, p.Endpoint); ok != want {
			t.Errorf("a plan of acme with a key that fixes %q: used %t", key.Fixed, ok)
		}
	}
}

// TestMemoKeysOfBoundKeys: what a key is bound to distinguishes its requests, whatever their bytes.
func TestMemoKeysOfBoundKeys(t *testing.T) {
	w := apitest.New(t)
	keys := []*registry.Key{{}, {Endpoints: []string{"e"}}, {Fixed: `{"a":"b"}`}, {Fixed: `{"a":"c"}`}, {Fixed: `{"a":"b"}`, Endpoints: []string{"e"}}}
	seen := map[string]int{}
	for i, key := range keys {
		for _, sent := range [][2]string{{"e", ""}, {"e", `{"a":"b"}`}, {`e{"a":"b"}`, ""}} {
			rq := w.Asks(http.MethodPost, "/")
			rq.Key = key
			memo := string(rq.MemoKey(sent[0], []byte(sent[1])))
			if before, ok := seen[memo]; ok && (i != 4 || before != 2) { // the list of endpoints is checked before the plan
				t.Errorf("keys %d and %d have one memo for %q", before, i, sent)
			}
			if _, ok := seen[memo]; !ok {
				seen[memo] = i
			}
		}
	}
}

// runsEndpoint reports whether an address runs an endpoint.
func runsEndpoint(at api.Address) bool {
	action, _, _ := strings.Cut(at.Action, ".")
	return at.Resource == "endpoints" && action == "run"
}

// TestBoundKeysRunEndpointsAlone requests everything else with keys that hold all scopes.
func TestBoundKeysRunEndpointsAlone(t *testing.T) {
	w := apitest.NewWithEndpoints(t)
	bound := *w
	bound.Key, bound.Secret = w.BoundKey(t, registry.Personal, map[string]any{"customer": "acme"})
	named := *w
	named.Key, named.Secret = w.BoundKey(t, registry.Personal, nil, "open")
	for _, rt := range w.API.Routes() {
		for _, key := range []registry.Key{*bound.Key, *named.Key} {
			key.Scopes = []string{"*"}
			at := rt.Address()
			if at.Name == ":name" {
				at.Name = "open"
			}
			_, err := api.Authorize(w.Registry.Snapshot(), &key, "@current", &at, &rt)
			if allowed := err == nil; allowed != (runsEndpoint(at) || at.Resource == "endpoint_tokens") {
				t.Errorf("%s %v with a bound key: %v", rt.Method, at, err)
			}
		}
	}
	const denied = "You do not have access to this endpoint."
	for _, tt := range []struct {
		as           apitest.World
		path, detail string
	}{
		{bound, "endpoints/open/run", denied},
		{bound, "endpoints/none/run", "Not found."},
		{named, "endpoints/mine/run", denied},
		{named, "endpoints/none/run", denied},
		{named, "endpoints/mine/run.csv", denied},
		{named, "endpoints/OPEN/run", denied},
	} {
		if answer := tt.as.Send(t, http.MethodPost, "/api/environments/@current/"+tt.path, ""); apitest.FieldOf(t, answer, "detail") != tt.detail {
			t.Errorf("%s: %d %s", tt.path, answer.Code, answer.Body)
		}
	}
}

// TestDebugShowsABoundKeyNothing: an endpoint's SQL is only for its author.
func TestDebugShowsABoundKeyNothing(t *testing.T) {
	w := apitest.NewWithEndpoints(t)
	named, secret := w.BoundKey(t, registry.Secret, nil, "open")
	p, err := w.PlanAs(w.Key, "open", `{"debug": true}`)
	if err != nil {
		t.Fatal(err)
	}
	w.Remember(t, p, time.Now(), `[1,"x"]`)
	if q, err := w.PlanAs(named, "open", `{"debug": true}`); err != nil || q.Key != p.Key {
		t.Fatalf("a key that fixes nothing has a result of its own: %v", err)
	}
	const path = "/api/projects/@current/endpoints/open/run"
	for range 2 { // parsed, then remembered
		if answer := w.Send(t, http.MethodPost, path, `{"debug": true}`); apitest.FieldOf(t, answer, "clickhouse") != "SELECT 1 < 2" {
			t.Errorf("the author is shown %d %s", answer.Code, answer.Body)
		}
		bound := *w
		bound.Secret = secret
		answer := bound.Send(t, http.MethodPost, path, `{"debug": true}`)
		if answer.Code != 200 || strings.Contains(answer.Body.String(), "SELECT") {
			t.Errorf("a bound key is shown %d %s", answer.Code, answer.Body)
		}
	}
}

// TestMistakesBehindAFence: customers learn nothing about the text of a query from a mistake in it.
func TestMistakesBehindAFence(t *testing.T) {
	w := apitest.NewWithEndpoints(t)
	w.LoseTables(t, schema.NativeLayout())
	w.PublishWith(t, "plan", "select matchesAction('secret plan') from events where properties.customer = {variables.customer}", "customer")
	_, secret := w.BoundKey(t, registry.Secret, map[string]any{"customer": "acme"})
	author := w.Send(t, http.MethodPost, "/api/projects/@current/endpoints/plan/run", `{"variables": {"customer": "acme"}}`)
	if author.Code != http.StatusBadRequest || !strings.Contains(author.Body.String(), "secret plan") {
		t.Errorf("the author sees %d %s", author.Code, author.Body)
	}
	for _, path := range []string{"run", "run.csv"} {
		got := w.SendAs(t, secret, http.MethodPost, "/api/projects/@current/endpoints/plan/"+path, "{}")
		if got.Code != http.StatusBadRequest || strings.Contains(got.Body.String(), "secret") ||
			apitest.FieldOf(t, got, "detail") != "The query of this endpoint failed for these values." || apitest.FieldOf(t, got, "attr") != nil {
			t.Errorf("%s: a customer sees %d %s", path, got.Code, got.Body)
		}
	}
}
