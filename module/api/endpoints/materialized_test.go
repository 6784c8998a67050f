package endpoints_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse/warehousetest"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// newMaterialized returns an endpoint with a table that was filled when the world apitest.Began.
func newMaterialized(tb testing.TB, w *apitest.World, query string, fresh time.Duration) *registry.Endpoint {
	tb.Helper()
	w.Shards = warehouse.Only(warehousetest.Nowhere(tb, schema.NativeLayout()))
	e, err := w.Registry.CreateEndpoint(tb.Context(), registry.NewEndpoint{
		Project: w.Project.ID, Name: "e", Query: []byte(query), FreshnessSeconds: int(fresh.Seconds()), Table: registry.TableUpdate{On: new(true)},
	}, apitest.Began)
	if err != nil {
		tb.Fatal(err)
	}
	node, err := api.StoredQuery(e, e.Current())
	if err != nil {
		tb.Fatal(err)
	}
	of := execution.Subject{Project: w.Project.ID, Endpoint: "e", Version: 1, Node: node}
	plan, err := w.PlanTable(tb.Context(), w.Registry.Snapshot(), execution.Uncounted(w.Project.ID), of, apitest.Began)
	if err != nil {
		tb.Fatal(err)
	}
	table, err := w.Registry.BeginFill(tb.Context(), w.Project.ID, e.ID, 1, apitest.Began)
	if err != nil {
		tb.Fatal(err)
	}
	if swapped, err := w.Registry.SwapFill(tb.Context(), w.Project.ID, e.ID, 1, table.Pending, registry.Table{AsOf: apitest.Began, Of: plan.Mark}); err != nil || !swapped {
		tb.Fatalf("the table is filled: %t, %v", swapped, err)
	}
	return w.Registry.Snapshot().Endpoint(w.Project.ID, "e")
}

const (
	splitTrend  = `{"kind": "TrendsQuery", "series": [{"event": "a"}], "breakdownFilter": {"breakdown": "plan", "breakdown_type": "event"}}`
	splitFunnel = `{"kind": "FunnelsQuery", "series": [{"event": "a"}, {"event": "b"}], "breakdownFilter": {"breakdown": "plan", "breakdown_type": "event"}}`
	splitPeople = `{"kind": "TrendsQuery", "series": [{"event": "a"}], "breakdownFilter": {"breakdown": "plan", "breakdown_type": "person"}}`
)

// TestRunsOfTables checks which runs of a materialized insight read its table, and which are refused for a breakdown that is not given.
func TestRunsOfTables(t *testing.T) {
	const missing = "400 invalid_input: Required variable(s) 'plan' not provided"
	tests := []struct {
		name, query, body string
		reads             bool
		want              string
	}{
		{"a variable", splitTrend, `{"variables": {"plan": "pro"}}`, true, ""},
		{"nothing", splitTrend, `{}`, false, missing},
		{"the breakdown of a funnel", splitFunnel, `{"variables": {"plan": "pro"}}`, false, ""},
		{"a funnel without it", splitFunnel, `{}`, true, ""},
		{"an override", splitTrend, `{"filters_override": {"properties": [{"key": "plan", "value": "pro"}]}}`, true, ""},
		{"an override with its type", splitTrend, `{"filters_override": {"properties": [{"type": "event", "key": "plan", "value": ["pro"], "operator": "exact"}]}}`, true, ""},
		{"one of several values", splitTrend, `{"filters_override": {"properties": [{"key": "plan", "value": ["pro", "free"]}]}}`, false, ""},
		{"an override of something else", splitTrend, `{"filters_override": {"properties": [{"key": "path", "value": "pro"}]}}`, false, missing},
		{"an override of a person's", splitTrend, `{"filters_override": {"properties": [{"type": "person", "key": "plan", "value": "pro"}]}}`, false, missing},
		{"an untyped override, of events, where people are split", splitPeople, `{"filters_override": {"properties": [{"key": "plan", "value": "pro"}]}}`, false, missing},
		{"an override of people", splitPeople, `{"filters_override": {"properties": [{"type": "person", "key": "plan", "value": "pro"}]}}`, true, ""},
		{"another operator", splitTrend, `{"filters_override": {"properties": [{"key": "plan", "value": "pro", "operator": "is_not"}]}}`, false, missing},
		{"a date", splitTrend, `{"filters_override": {"date_from": "-3d"}}`, false, missing},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := apitest.New(t)
			e := newMaterialized(t, w, tt.query, time.Hour)
			p, err := w.Asks(http.MethodPost, "/").PlanRun(e, []byte(tt.body))
			got := ""
			if err != nil {
				got = api.ErrorOf(err).Error()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("mistake (-want +got):\n%s", diff)
			}
			if err == nil && (p.Stored != nil) != tt.reads {
				t.Errorf("reads the table: %t, want %t", p.Stored != nil, tt.reads)
			}
		})
	}
}

// TestAgeOfTables: a result from a table is not fresh for longer than the table.
func TestAgeOfTables(t *testing.T) {
	w := apitest.New(t)
	e := newMaterialized(t, w, splitTrend, 5*time.Minute)
	rq := w.Asks(http.MethodPost, "/")
	p, err := rq.PlanRun(e, []byte(`{"variables": {"plan": "pro"}}`))
	if err != nil {
		t.Fatal(err)
	}
	following := &result.Plan{Query: &execution.Query{Endpoint: e, Version: e.Current()}, Freshness: p.Freshness} // a cursor, without knowing the table
	until := apitest.Began.Add(5 * time.Minute)
	if !p.Stored.Until.Equal(until) {
		t.Errorf("the table is read until %s", p.Stored.Until)
	}
	entry := cache.NewEntry(nil, apitest.Began.Add(time.Minute), &execution.Details{Materialized: apitest.Began}, 1)
	shown := result.Writer{Project: w.Project}
	for name, p := range map[string]*result.Plan{"run": p, "cursor": following} {
		body := string(shown.AppendFreshness(nil, p, cache.Answer{Entry: entry}))
		if want := `,"cache_target_age":"2026-01-10T12:05:00Z"`; !strings.Contains(body, want) {
			t.Errorf("%s: %s lacks %s", name, body, want)
		}
		got := p.Bounded(cache.Answer{Entry: entry, FreshFor: 5 * time.Minute}, apitest.Began.Add(time.Minute))
		if got.FreshFor != 4*time.Minute {
			t.Errorf("%s: the answer stays fresh for %s", name, got.FreshFor)
		}
		if late := p.Bounded(cache.Answer{Entry: entry, FreshFor: 5 * time.Minute}, until.Add(time.Second)); late.FreshFor != 0 {
			t.Errorf("%s: an answer from a table that is too old stays fresh for %s", name, late.FreshFor)
		}
	}
}

// TestZoneOfRows: an answer names the time zone that its rows were computed in, which may no longer be the project's.
func TestZoneOfRows(t *testing.T) {
	w := apitest.New(t)
	shown := result.Writer{Project: w.Project}
	entry := cache.NewEntry(nil, apitest.Began, &execution.Details{Zone: "Asia/Tokyo"}, 1)
	if body := string(shown.AppendFreshness(nil, new(result.Plan), cache.Answer{Entry: entry})); !strings.HasSuffix(body, `"timezone":"Asia/Tokyo"`) {
		t.Errorf("the answer ends with %s", body)
	}
}
