package status_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestStatusIsOfOneProject: whatever another project does, a key sees only the numbers of its own project, and no host, path or reason.
func TestStatusIsOfOneProject(t *testing.T) {
	w := apitest.New(t)
	e := w.NewEndpoint(t, "orders", "select 2")
	p, err := w.Asks(http.MethodPost, "/").PlanRun(e, []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	w.Remember(t, p, time.Now(), `[1,"a"]`)
	for range 3 {
		w.Send(t, http.MethodPost, "/api/projects/@current/endpoints/orders/run", "{}")
	}
	if _, err := w.Places.Enter(t.Context(), admission.Request{Project: w.Project.ID}); err != nil {
		t.Fatal(err)
	}
	i, err := w.Registry.CreateInsight(t.Context(), w.Project.ID, registry.InsightFields{}, w.Key.ID, apitest.Began)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Registry.CreateAlert(t.Context(), w.Project.ID, registry.AlertFields{
		Insight: registry.To(i.ID), Condition: registry.To(json.RawMessage(`{"type": "absolute_value"}`)), Config: registry.To(json.RawMessage(`{"type": "TrendsAlertConfig", "series_index": 0}`)),
		Threshold: registry.To(json.RawMessage(`{"type": "absolute", "bounds": {"upper": 1}}`)),
	}, w.Key.ID, apitest.Began); err != nil {
		t.Fatal(err)
	}
	on := true
	if _, err := w.Registry.UpdateEndpoint(t.Context(), w.Project.ID, "orders", registry.EndpointUpdate{Table: registry.TableUpdate{On: &on}}, apitest.Began); err != nil {
		t.Fatal(err)
	}
	_, own := w.NewKey(t, w.Project.ID, registry.Personal, "project:read")
	_, stranger := w.NewKey(t, w.NewProject(t).ID, registry.Personal, "*")
	status := func(key string) map[string]any {
		t.Helper()
		answer := w.SendAs(t, key, http.MethodGet, "/api/projects/@current/status/", "")
		var out map[string]any
		if err := json.Unmarshal(answer.Body.Bytes(), &out); err != nil || answer.Code != http.StatusOK {
			t.Fatalf("%d %s", answer.Code, answer.Body)
		}
		for _, secret := range []string{"127.0.0.1", "refused", "sqlite", "/", "orders"} {
			if strings.Contains(strings.ReplaceAll(answer.Body.String(), "https://", ""), secret) {
				t.Errorf("the status tells of %q: %s", secret, answer.Body)
			}
		}
		return out
	}
	limits := w.Places.Limits()
	queries := func(running float64) map[string]any {
		return map[string]any{"running": running, "waiting": 0.0, "max_running": float64(limits.Most()), "max_waiting": float64(limits.Queue)}
	}
	want := map[string]any{
		"cache": map[string]any{"hits": 3.0, "misses": 0.0, "hit_ratio": 1.0}, "queries": queries(1), "registry": map[string]any{"reachable": true}, "capture": nil,
		"materialized": map[string]any{"tables": 1.0, "ready": 0.0, "failing": 0.0, "oldest_filled_at": nil},
		"alerts":       map[string]any{"total": 1.0, "enabled": 1.0, "firing": 0.0, "errored": 0.0, "snoozed": 0.0, "waiting_deliveries": 0.0},
		"events":       map[string]any{"retention_days": nil, "from": nil},
	}
	got := status(own)
	for name, value := range want {
		if diff := cmp.Diff(value, got[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	database, _ := got["clickhouse"].(map[string]any)
	if database["kind"] != "server" || database["reachable"] != false || database["ping_ms"] != nil || database["version"] != nil || got["version"] == "" {
		t.Errorf("status: %v", got)
	}
	theirs := status(stranger)
	want["cache"], want["queries"] = map[string]any{"hits": 0.0, "misses": 0.0, "hit_ratio": nil}, queries(0)
	want["materialized"] = map[string]any{"tables": 0.0, "ready": 0.0, "failing": 0.0, "oldest_filled_at": nil}
	want["alerts"] = map[string]any{"total": 0.0, "enabled": 0.0, "firing": 0.0, "errored": 0.0, "snoozed": 0.0, "waiting_deliveries": 0.0}
	for name, value := range want {
		if diff := cmp.Diff(value, theirs[name]); diff != "" {
			t.Errorf("another project's %s (-want +got):\n%s", name, diff)
		}
	}
	if answer := w.SendAs(t, w.Secret, http.MethodGet, "/api/projects/@current/status/", ""); answer.Code != http.StatusForbidden {
		t.Errorf("without project:read: %d %s", answer.Code, answer.Body)
	}
}

// TestStatusOfKeptEvents: the time moves at midnight in the project's zone, which is Kiritimati's, so that it never is that of UTC.
func TestStatusOfKeptEvents(t *testing.T) {
	w := apitest.New(t)
	if _, err := w.Registry.UpdateProject(t.Context(), w.Project.ID, registry.ProjectChange{
		Retention: new(30), Timezone: new("Pacific/Kiritimati"),
	}); err != nil {
		t.Fatal(err)
	}
	_, key := w.NewKey(t, w.Project.ID, registry.Personal, "project:read")
	of := w.Registry.Snapshot().Schema(w.Project.ID)
	before := of.EventsFrom(time.Now())
	answer := w.SendAs(t, key, http.MethodGet, "/api/projects/@current/status/", "")
	var got struct {
		Events struct {
			Days int       `json:"retention_days"`
			From time.Time `json:"from"`
		} `json:"events"`
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil {
		t.Fatalf("%d %s", answer.Code, answer.Body)
	}
	// Midnight may pass while the test runs.
	if from := got.Events.From; got.Events.Days != 30 || !from.Equal(before) && !from.Equal(of.EventsFrom(time.Now())) || from.UTC().Hour() != 10 {
		t.Errorf("events: %s", answer.Body)
	}
}
