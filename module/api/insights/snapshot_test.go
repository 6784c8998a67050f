package insights_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/module/api/insights"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestReadDuringWrite: a request that began before an insight or a dashboard changed shows it as it is now, as what it remembers for others is of now too.
func TestReadDuringWrite(t *testing.T) {
	w, i := apitest.NewWithInsight(t)
	d, err := w.Registry.CreateDashboard(t.Context(), w.Project.ID, registry.DashboardFields{Description: registry.To("old")}, w.Key.ID, apitest.Began)
	if err != nil {
		t.Fatal(err)
	}
	results := &insights.Results{
		Executor: w.Executor, Registry: w.Registry, Plans: w.Plans, Logger: w.Logger, Alerts: func(*api.Caller, *registry.Insight) []any { return nil },
	}
	rq := w.Asks(http.MethodGet, "/?refresh=force_cache")
	query := registry.To(json.RawMessage(`{"kind": "HogQLQuery", "query": "select 'now'"}`))
	if _, err := w.Registry.UpdateInsight(t.Context(), w.Project.ID, i.ID, registry.InsightFields{Query: query}, false, w.Key.ID, apitest.Began); err != nil {
		t.Fatal(err)
	}
	filters := registry.To(json.RawMessage(`{"date_from": "-77d"}`))
	if _, err := w.Registry.UpdateDashboard(t.Context(), w.Project.ID, d.ID, registry.DashboardFields{Filters: filters}, w.Key.ID, apitest.Began); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		routes []api.Route
		id     int64
		want   string
	}{
		{(&insights.Insights{Results: results, Registry: w.Registry}).Routes(), i.ID, "select 'now'"},
		{(&insights.Dashboards{Results: results, Registry: w.Registry}).Routes(), d.ID, "-77d"},
	} {
		for _, route := range tt.routes {
			if route.Method != http.MethodGet || !strings.HasSuffix(route.Pattern, "s/:name") {
				continue
			}
			rq.In.At.Name = strconv.FormatInt(tt.id, 10)
			res, err := route.Handler(t.Context(), &rq.Caller, rq.In)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(res.Body.Bytes), tt.want) {
				t.Errorf("%s answers %s, want %s", route.Pattern, res.Body.Bytes, tt.want)
			}
		}
	}
}
