package apitest

import (
	"encoding/json"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// NewWithAll returns a world without ClickHouse that has the insight of NewWithInsight, a dashboard with its tile, another insight with an alert, the endpoint
// mine, and a secret key.
func NewWithAll(tb testing.TB) (w *World, secret *registry.Key) {
	tb.Helper()
	w, i := NewWithInsight(tb)
	w.LoseClickHouse(tb)
	w.NewEndpoint(tb, "mine", "select 1")
	tile := registry.TileFields{Insight: i.ID}
	if _, err := w.Registry.CreateDashboard(tb.Context(), w.Project.ID, registry.DashboardFields{Tiles: []registry.TileFields{tile}}, w.Key.ID, Began); err != nil {
		tb.Fatal(err)
	}
	trend, err := w.Registry.CreateInsight(tb.Context(), w.Project.ID, registry.InsightFields{
		Query: registry.To(json.RawMessage(`{"kind": "TrendsQuery", "series": [{"kind": "EventsNode", "event": "$pageview"}]}`)),
	}, w.Key.ID, Began)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := w.Registry.CreateAlert(tb.Context(), w.Project.ID, registry.AlertFields{
		Insight: registry.To(trend.ID), Condition: registry.To(json.RawMessage(`{"type": "absolute_value"}`)),
		Config:    registry.To(json.RawMessage(`{"type": "TrendsAlertConfig", "series_index": 0}`)),
		Threshold: registry.To(json.RawMessage(`{"type": "absolute", "bounds": {"upper": 1}}`)),
	}, w.Key.ID, Began); err != nil {
		tb.Fatal(err)
	}
	secret, _ = w.NewKey(tb, w.Project.ID, registry.Secret, "query:read")
	return w, secret
}
