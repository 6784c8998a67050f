package apitest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// NewWithEndpoints returns a world with the variables customer, seats and plans, the endpoints mine, seats and plans that each use one of them, the endpoint
// declared, which declares customer without using it, the endpoint open without variables, and the endpoint trend, which is broken down by customer.
func NewWithEndpoints(tb testing.TB) *World {
	tb.Helper()
	w := New(tb)
	for name, typ := range map[string]registry.VariableType{"customer": registry.VariableString, "seats": registry.VariableNumber, "plans": registry.VariableList} {
		if _, err := w.Registry.CreateVariable(tb.Context(), registry.NewVariable{Project: w.Project.ID, Name: name, Type: typ, IsMulti: name == "plans"}, Began); err != nil {
			tb.Fatal(err)
		}
	}
	w.NewEndpoint(tb, "open", "select n from events")
	w.PublishWith(tb, "mine", "select n from events where properties.customer = {variables.customer}", "customer")
	w.PublishWith(tb, "seats", "select n from events where properties.seats = {variables.seats}", "seats")
	w.PublishWith(tb, "plans", "select n from events where properties.plan in {variables.plans}", "plans")
	w.PublishWith(tb, "declared", "select n from events", "customer")
	_, err := w.Registry.CreateEndpoint(tb.Context(), registry.NewEndpoint{Project: w.Project.ID, Name: "trend", Query: []byte(
		`{"kind": "TrendsQuery", "series": [{"kind": "EventsNode", "event": "a"}], "breakdownFilter": {"breakdown": "customer", "breakdown_type": "event"}}`)}, Began)
	if err != nil {
		tb.Fatal(err)
	}
	return w
}

// PublishWith publishes an endpoint whose stored query declares a variable.
func (w *World) PublishWith(tb testing.TB, name, hogql, code string) {
	tb.Helper()
	def := w.Registry.Snapshot().VariableByCode(w.Project.ID, code)
	_, err := w.Registry.CreateEndpoint(tb.Context(), registry.NewEndpoint{Project: w.Project.ID, Name: name, Query: jsontext.Append(nil, map[string]any{
		"kind": "HogQLQuery", "query": hogql, "variables": map[string]any{def.ID: map[string]any{"variableId": def.ID, "code_name": code}},
	})}, Began)
	if err != nil {
		tb.Fatal(err)
	}
}

// BoundKey creates a key with fixed variables, which runs only the given endpoints if there are any.
func (w *World) BoundKey(tb testing.TB, kind registry.KeyKind, fixed map[string]any, endpoints ...string) (key *registry.Key, secret string) {
	tb.Helper()
	key, secret, err := w.Registry.CreateKey(tb.Context(), registry.NewKey{
		Project: w.Project.ID, Kind: kind, Scopes: []string{"endpoint:read"}, Fixed: fixed, Endpoints: endpoints,
	}, Began)
	if err != nil {
		tb.Fatal(err)
	}
	return w.Registry.Snapshot().KeyByID(w.Project.ID, key.ID), secret
}

// PlanAs plans a run of an endpoint for a key.
func (w *World) PlanAs(key *registry.Key, endpoint, body string) (*result.Plan, error) {
	rq := w.Asks(http.MethodPost, "/")
	rq.Key, rq.In.At = key, api.Address{Resource: "endpoints", Name: endpoint, Action: "run"}
	return rq.PlanRun(rq.Snapshot.Endpoint(w.Project.ID, endpoint), []byte(body))
}

// RememberRuns caches a row of the endpoint mine for each customer.
func (w *World) RememberRuns(tb testing.TB, customers ...string) {
	tb.Helper()
	for i, customer := range customers {
		p, err := w.PlanAs(&registry.Key{Fixed: `{"customer":"` + customer + `"}`}, "mine", "")
		if err != nil {
			tb.Fatal(err)
		}
		w.Remember(tb, p, time.Now(), fmt.Sprintf("[%d,\"row of %s\"]", i, customer))
	}
}

// RunWith runs an endpoint with a key or a token.
func (w *World) RunWith(tb testing.TB, secret, endpoint, body string, header ...string) *httptest.ResponseRecorder {
	tb.Helper()
	return w.SendAs(tb, secret, http.MethodPost, "/api/projects/@current/endpoints/"+endpoint+"/run", body, header...)
}

// OutcomeOf returns the status and the detail of an answer, or its rows.
func OutcomeOf(tb testing.TB, answer *httptest.ResponseRecorder) string {
	tb.Helper()
	if answer.Code == http.StatusOK {
		return fmt.Sprint(FieldOf(tb, answer, "results"))
	}
	return fmt.Sprintf("%d %s", answer.Code, FieldOf(tb, answer, "detail"))
}

// IssueToken requests a token with a secret key.
func (w *World) IssueToken(tb testing.TB, secret, body string) *httptest.ResponseRecorder {
	tb.Helper()
	return w.SendAs(tb, secret, http.MethodPost, "/api/projects/@current/endpoint_tokens/", body)
}

// NewToken requests a token, which must be issued.
func (w *World) NewToken(tb testing.TB, secret, body string) string {
	tb.Helper()
	answer := w.IssueToken(tb, secret, body)
	text, _ := FieldOf(tb, answer, "token").(string)
	if answer.Code != http.StatusCreated || text == "" {
		tb.Fatalf("%s: %d %s", body, answer.Code, answer.Body)
	}
	return text
}
