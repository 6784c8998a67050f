package module

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// newDashboard creates a dashboard.
func (w *world) newDashboard(tb testing.TB, fields registry.DashboardFields) *registry.Dashboard {
	tb.Helper()
	d, err := w.rt.registry.CreateDashboard(tb.Context(), w.project.ID, fields, w.key.ID, began)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// TestSearchOfDashboards: a search is short, whatever the list, and ends with its request.
func TestSearchOfDashboards(t *testing.T) {
	w, _ := insightWorld(t)
	w.newDashboard(t, registry.DashboardFields{Name: registry.To(new("Sales"))})
	for _, list := range []string{"dashboards", "insights"} {
		target := "/api/projects/1/" + list + "/?search=" + strings.Repeat("é", 200)
		if answer := w.send(t, http.MethodGet, target, ""); answer.Code != http.StatusOK {
			t.Errorf("%s with the longest search: %d %s", list, answer.Code, answer.Body)
		}
		answer := w.send(t, http.MethodGet, target+"x", "")
		if diff := cmp.Diff("Search query must be 200 characters or fewer.", fieldOf(t, answer, "detail")); answer.Code != http.StatusBadRequest || diff != "" {
			t.Errorf("%s with a longer search: %d (-want +got):\n%s", list, answer.Code, diff)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, target, nil)
		r.Header.Set("Authorization", "Bearer "+w.secret)
		gone := httptest.NewRecorder()
		_ = w.ServeHTTP(gone, r, caddyhttp.HandlerFunc(nil))
		if strings.Contains(gone.Body.String(), "results") {
			t.Errorf("%s for a client that is gone: %d %s", list, gone.Code, gone.Body)
		}
	}
}
