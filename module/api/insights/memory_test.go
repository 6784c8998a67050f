package insights_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/module/memory"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestLargeDashboard: what the insights of a dashboard take is lent before the response is put together, whether or not they have results.
func TestLargeDashboard(t *testing.T) {
	w := apitest.New(t)
	_, secret := w.NewKey(t, w.Project.ID, registry.Personal, "*")
	var tiles []registry.TileFields
	for n := range 8 {
		i, err := w.Registry.CreateInsight(t.Context(), w.Project.ID, registry.InsightFields{
			Name:  registry.To(new(fmt.Sprint("insight ", n))),
			Query: registry.To(json.RawMessage(`{"kind": "HogQLQuery", "query": "select '` + strings.Repeat("x", 200<<10) + `'"}`)),
		}, w.Key.ID, apitest.Began)
		if err != nil {
			t.Fatal(err)
		}
		tiles = append(tiles, registry.TileFields{Insight: i.ID})
	}
	if _, err := w.Registry.CreateDashboard(t.Context(), w.Project.ID, registry.DashboardFields{Tiles: tiles}, w.Key.ID, apitest.Began); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ pool, want int }{{64 << 20, http.StatusOK}, {4 << 20, http.StatusServiceUnavailable}} {
		w.API.Memory = memory.NewPool(int64(tt.pool))
		if answer := w.SendAs(t, secret, http.MethodGet, "/api/projects/@current/dashboards/1/", ""); answer.Code != tt.want {
			t.Errorf("with %d bytes for all responses: %d %.300s", tt.pool, answer.Code, answer.Body)
		}
	}
}

// TestLongActivityLog: pages of the activity log are read in parts, and none is lost or repeated.
func TestLongActivityLog(t *testing.T) {
	w := apitest.New(t)
	_, secret := w.NewKey(t, w.Project.ID, registry.Personal, "*")
	const made = 45
	for n := range made {
		fields := registry.InsightFields{Name: registry.To(new(fmt.Sprint("insight ", n)))}
		if _, err := w.Registry.CreateInsight(t.Context(), w.Project.ID, fields, w.Key.ID, apitest.Began); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		query       string
		first, last string
		length      int
		next        bool
	}{
		{"", "insight 44", "insight 35", 10, true},
		{"?limit=20", "insight 44", "insight 25", 20, true},
		{"?limit=25&page=2", "insight 19", "insight 0", 20, false},
		{"?limit=1000", "insight 44", "insight 0", made, false},
		{"?limit=45", "insight 44", "insight 0", made, false},
	} {
		answer := w.SendAs(t, secret, http.MethodGet, "/api/projects/@current/insights/activity/"+tt.query, "")
		results, _ := apitest.FieldOf(t, answer, "results").([]any)
		if len(results) != tt.length || apitest.FieldOf(t, answer, "total_count") != float64(made) || (apitest.FieldOf(t, answer, "next") != nil) != tt.next {
			t.Errorf("%q: %d entries of %v, next %v", tt.query, len(results), apitest.FieldOf(t, answer, "total_count"), apitest.FieldOf(t, answer, "next"))
			continue
		}
		for n, want := range map[int]string{0: tt.first, tt.length - 1: tt.last} {
			entry, _ := results[n].(map[string]any)
			detail, _ := entry["detail"].(map[string]any)
			if detail["name"] != want {
				t.Errorf("%q: entry %d is about %v, want %s", tt.query, n, detail["name"], want)
			}
		}
	}
}
