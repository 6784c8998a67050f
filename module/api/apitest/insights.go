package apitest

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// NewWithInsight returns a world whose key may write insights and dashboards, with an insight that has a query, a name and a tag.
func NewWithInsight(tb testing.TB) (*World, *registry.Insight) {
	tb.Helper()
	w := New(tb)
	w.Key, w.Secret = w.NewKey(tb, w.Project.ID, registry.Personal, "insight:write", "dashboard:write")
	i, err := w.Registry.CreateInsight(tb.Context(), w.Project.ID, registry.InsightFields{
		Name: registry.To(new("a<b")), Query: registry.To(json.RawMessage(`{"kind":"DataVisualizationNode","source":{"kind":"HogQLQuery","query":"select 1"}}`)),
		Tags: registry.To([]string{"t"}),
	}, w.Key.ID, Began)
	if err != nil {
		tb.Fatal(err)
	}
	return w, i
}

// RememberInsight caches a result of an insight, computed at a given time.
func (w *World) RememberInsight(tb testing.TB, i *registry.Insight, at time.Time, rows ...string) {
	tb.Helper()
	node, err := compiler.Parse(i.Query)
	if err != nil {
		tb.Fatal(err)
	}
	p, err := result.PlanNode(w.Executor, &w.Asks(http.MethodGet, "/").Caller.Caller, node, result.Overrides{}, execution.RefreshBlocking)
	if err != nil {
		tb.Fatal(err)
	}
	w.Remember(tb, p, at, rows...)
}
