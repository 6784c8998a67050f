package queries_test

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
)

func TestReadShown(t *testing.T) {
	tests := []struct {
		name, node string
		want       result.Extras
	}{
		{"nothing", `{"kind": "HogQLQuery", "query": "select 1"}`, result.Extras{}},
		{"null", `{"kind": "HogQLQuery", "modifiers": null, "explain": null}`, result.Extras{}},
		{
			"modifiers", `{"kind": "TrendsQuery", "modifiers": {"personsOnEventsMode": "disabled", "debug": false}}`,
			result.Extras{Modifiers: []byte(`{"personsOnEventsMode":"disabled","debug":false}`)},
		},
		{"timings", `{"kind": "HogQLQuery", "modifiers": {"timings": true}}`, result.Extras{Modifiers: []byte(`{"timings":true}`), Timings: true}},
		{"debug", `{"kind": "HogQLQuery", "modifiers": {"debug": true}}`, result.Extras{Modifiers: []byte(`{"debug":true}`), Debug: true, Explain: true}},
		{"explain", `{"kind": "HogQLQuery", "explain": true}`, result.Extras{Explain: true}},
		{"in a wrapper", `{"kind": "DataTableNode", "source": {"kind": "HogQLQuery", "explain": true}}`, result.Extras{Explain: true}},
		{"of a source that is no wrapper's", `{"kind": "ActorsQuery", "source": {"kind": "HogQLQuery", "explain": true}}`, result.Extras{}},
		{"words for true", `{"kind": "HogQLQuery", "explain": "true", "modifiers": {"debug": 1}}`, result.Extras{Modifiers: []byte(`{"debug":1}`)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, result.ReadShown([]byte(tt.node)), cmp.AllowUnexported(result.Extras{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestModifiersOfCachedAnswers: queries that only differ in what they show share a result, and each shows its own.
func TestModifiersOfCachedAnswers(t *testing.T) {
	w := apitest.New(t)
	remembered := false
	for _, tt := range []struct{ modifiers, want string }{
		{``, `"modifiers":null,"timings":null`},
		{`, "modifiers": {"timings": true}`, `"modifiers":{"timings":true},"timings":[{"k":"./compile","t":`},
		{`, "modifiers": {"timings": false}`, `"modifiers":{"timings":false},"timings":null`},
		{``, `"modifiers":null,"timings":null`},
	} {
		body := `{"query": {"kind": "HogQLQuery", "query": "select n from events"` + tt.modifiers + `}}`
		if !remembered {
			p, err := w.Asks(http.MethodPost, "/").PlanQuery([]byte(body))
			if err != nil {
				t.Fatal(err)
			}
			w.Remember(t, p, time.Now(), `[1, "a"]`)
			remembered = true
		}
		got := w.Send(t, http.MethodPost, "/api/projects/@current/query/", body).Body.String()
		if !strings.Contains(got, tt.want) || !strings.Contains(got, `"is_cached":true`) {
			t.Errorf("%s\nhas no %s", got, tt.want)
		}
	}
}

// TestCancelledWithDebug: debug does not hide that a query was canceled.
func TestCancelledWithDebug(t *testing.T) {
	w := apitest.New(t)
	w.LoseClickHouse(t)
	w.Places = admission.New(admission.Limits{Places: 1, Project: 1, Queue: 1})
	if _, err := w.Places.Enter(t.Context(), admission.Request{Project: w.Project.ID}); err != nil {
		t.Fatal(err)
	}
	answered := make(chan *httptest.ResponseRecorder, 1)
	go func() {
		answered <- w.Send(t, http.MethodPost, "/api/projects/@current/query/",
			`{"query": {"kind": "HogQLQuery", "query": "select 1", "modifiers": {"debug": true}}, "client_query_id": "x"}`)
	}()
	for len(answered) == 0 {
		if got := apitest.FieldOf(t, w.Send(t, http.MethodDelete, "/api/projects/@current/query/x/", ""), "message"); got == "The query was cancelled." {
			break
		}
		runtime.Gosched()
	}
	if got := <-answered; got.Code != http.StatusBadRequest || apitest.FieldOf(t, got, "code") != "query_was_cancelled" {
		t.Errorf("answered %d %s", got.Code, got.Body)
	}
}
