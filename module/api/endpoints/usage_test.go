package endpoints_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// usedWindow is what tests check in a window of usage.
type usedWindow struct {
	Calls       int64 `json:"calls"`
	Answered    int64
	Cached      int64
	Ratio       *float64 `json:"cache_hit_ratio"`
	P50         *float64 `json:"p50_ms"`
	ClientError int64    `json:"client_errors"`
	ServerError int64    `json:"server_errors"`
	RateLimited int64    `json:"rate_limited"`
	Series      *struct {
		Calls []int64
	}
}

type usedEndpoint struct {
	Name     string
	Since    time.Time
	Last     *time.Time `json:"last_executed_at"`
	Day      usedWindow
	Versions []struct {
		Version int
		Current bool `json:"is_current"`
		Day     usedWindow
	}
}

func usageIn[T any](t *testing.T, w *apitest.World, path string) (out T) {
	t.Helper()
	answer := w.Send(t, http.MethodGet, "/api/projects/@current/"+path, "")
	if err := json.Unmarshal(answer.Body.Bytes(), &out); answer.Code != http.StatusOK || err != nil {
		t.Fatalf("%s: %d %s", path, answer.Code, answer.Body)
	}
	return out
}

// TestEndpointUsage runs an endpoint in all ways and reads the counts.
func TestEndpointUsage(t *testing.T) {
	w := apitest.New(t)
	w.LoseClickHouse(t)
	w.Limits = execution.NewLimiter(registry.Rate{Queries: 1, Per: time.Hour})
	e := w.NewEndpoint(t, "usage", "select 2")
	w.NewEndpoint(t, "orders_never_run", "select 1")
	cached, err := w.Asks(http.MethodPost, "/").PlanRun(e, []byte(`{"limit": 7}`))
	if err != nil {
		t.Fatal(err)
	}
	w.Remember(t, cached, time.Now(), `[1,"a"]`)
	for _, run := range []struct {
		address, body string
		want          int
	}{
		{"run", `{"limit": 7}`, 200},
		{"run", `{"limit": 7}`, 200},
		{"run", `{"nonsense": 7}`, 400},
		{"run", `{"version": 9}`, 404},
		{"run.csv", `{}`, 503},
		{"run.csv", `{}`, 429},
	} {
		if answer := w.Send(t, http.MethodPost, "/api/projects/@current/endpoints/usage/"+run.address, run.body); answer.Code != run.want {
			t.Fatalf("%s: %d %s", run.body, answer.Code, answer.Body)
		}
	}
	got := usageIn[usedEndpoint](t, w, "endpoints/usage/usage/")
	one := 1.0
	if got.Day.P50 == nil || *got.Day.P50 <= 0 || got.Last == nil || !got.Since.Equal(apitest.Began) || len(got.Day.Series.Calls) != 24 || got.Day.Series.Calls[23] != 6 {
		t.Errorf("usage: %+v", got)
	}
	got.Day.P50, got.Day.Series = nil, nil
	if diff := cmp.Diff(usedWindow{Calls: 6, Answered: 2, Cached: 2, Ratio: &one, ClientError: 2, ServerError: 1, RateLimited: 1}, got.Day); diff != "" {
		t.Errorf("the day (-want +got):\n%s", diff)
	}
	if len(got.Versions) != 1 || got.Versions[0].Version != 1 || !got.Versions[0].Current || got.Versions[0].Day.Calls != 4 {
		t.Errorf("by version: %+v", got.Versions)
	}
	if answer := w.Send(t, http.MethodGet, "/api/projects/@current/endpoints/usage/", ""); apitest.FieldOf(t, answer, "name") != "usage" {
		t.Errorf("an endpoint of that name: %d %s", answer.Code, answer.Body)
	}
	if answer := w.Send(t, http.MethodGet, "/api/projects/@current/endpoints/nope/usage/", ""); answer.Code != http.StatusNotFound {
		t.Errorf("an unknown endpoint: %d %s", answer.Code, answer.Body)
	}
	idle := usageIn[usedEndpoint](t, w, "endpoints/orders_never_run/usage/")
	if idle.Day.Calls != 0 || idle.Day.Ratio != nil || idle.Day.P50 != nil || idle.Last != nil || idle.Versions == nil {
		t.Errorf("one that never ran: %+v", idle)
	}
}

// TestUsageList: the list has only the endpoints of the caller's project, in the requested order and of the requested kind.
func TestUsageList(t *testing.T) {
	w := apitest.New(t)
	w.LoseClickHouse(t)
	for _, name := range []string{"a_orders", "b_orders", "c_users"} {
		w.NewEndpoint(t, name, "select 1")
	}
	for range 2 {
		w.Send(t, http.MethodPost, "/api/projects/@current/endpoints/b_orders/run", `{"nonsense": 1}`)
	}
	w.Send(t, http.MethodPost, "/api/projects/@current/endpoints/a_orders/run", `{}`)
	type list struct {
		Count   int
		Results []usedEndpoint
	}
	for query, want := range map[string]string{
		"":                                   "3: c_users b_orders a_orders",
		"?ordering=-calls":                   "3: b_orders a_orders c_users",
		"?ordering=name&limit=2":             "3: a_orders b_orders",
		"?ordering=-errors&search=ORD":       "2: b_orders a_orders",
		"?ordering=last_executed_at":         "3: c_users b_orders a_orders",
		"?ordering=-p95_ms&names=a_orders,x": "1: a_orders",
		"?search=orders%20a_":                "1: a_orders",
	} {
		page := usageIn[list](t, w, "endpoint_usage/"+query)
		got := ""
		for _, e := range page.Results {
			got += " " + e.Name
		}
		if got = string(rune('0'+page.Count)) + ":" + got; got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	for query, want := range map[string]string{
		"?ordering=nonsense":                           `"nonsense" is not a valid choice.`,
		"?names=a_orders" + strings.Repeat(",x", 1000): "Ask about at most 1000 endpoints at once.",
	} {
		answer := w.Send(t, http.MethodGet, "/api/projects/@current/endpoint_usage/"+query, "")
		if answer.Code != http.StatusBadRequest || apitest.FieldOf(t, answer, "detail") != want {
			t.Errorf("%.30s: %d %s", query, answer.Code, answer.Body)
		}
	}

	other := w.NewProject(t)
	_, stranger := w.NewKey(t, other.ID, registry.Personal, "*")
	if answer := w.SendAs(t, stranger, http.MethodGet, "/api/projects/@current/endpoint_usage/", ""); apitest.FieldOf(t, answer, "count") != 0.0 {
		t.Errorf("another project sees %s", answer.Body)
	}
	if answer := w.SendAs(t, stranger, http.MethodGet, "/api/projects/@current/endpoints/a_orders/usage/", ""); answer.Code != http.StatusNotFound {
		t.Errorf("another project's endpoint: %d %s", answer.Code, answer.Body)
	}
	_, secret := w.NewKey(t, w.Project.ID, registry.Secret, "endpoint:read")
	_, bound := w.BoundKey(t, registry.Personal, nil, "a_orders")
	for who, key := range map[string]string{"a secret key": secret, "a bound key": bound} {
		for _, path := range []string{"endpoint_usage/", "endpoints/a_orders/usage/"} {
			if answer := w.SendAs(t, key, http.MethodGet, "/api/projects/@current/"+path, ""); answer.Code != http.StatusForbidden && answer.Code != http.StatusUnauthorized {
				t.Errorf("%s, %s: %d %s", who, path, answer.Code, answer.Body)
			}
		}
	}
}
