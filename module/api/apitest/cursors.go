package apitest

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api/endpoints"
	"github.com/caddy-analytics/caddy-analytics/module/pagecursor"
)

// MinePath is where the endpoint mine of NewWithEndpoints is run.
const MinePath = "/api/projects/@current/endpoints/mine/run"

// NewWithCursor returns a world of NewWithEndpoints with five cached rows of a customer, and the cursor of the second page of two rows.
func NewWithCursor(tb testing.TB) (w *World, next string) {
	tb.Helper()
	const customer = "acme"
	w = NewWithEndpoints(tb)
	w.RememberMine(tb, customer, 1, 5)
	got := w.Send(tb, http.MethodPost, MinePath, fmt.Sprintf(`{"variables": {"customer": %q}, "limit": 2}`, customer))
	next, _ = FieldOf(tb, got, "next_cursor").(string)
	if want := "[[1 row of " + customer + "] [2 row of " + customer + "]]"; OutcomeOf(tb, got) != want || len(next) != pagecursor.Length {
		tb.Fatalf("first page: %s", got.Body)
	}
	return w, next
}

// RememberMine caches rows of a customer, numbered from first to last, as the result of the endpoint mine.
func (w *World) RememberMine(tb testing.TB, customer string, first, last int) {
	tb.Helper()
	p, err := w.PlanAs(w.Key, "mine", fmt.Sprintf(`{"variables": {"customer": %q}, "limit": 2}`, customer))
	if err != nil {
		tb.Fatal(err)
	}
	if !p.Policy(time.Now()).Refs {
		tb.Error("a paged result is forgotten as soon as it may no longer be served")
	}
	var rows []string
	for i := first; i <= last; i++ {
		rows = append(rows, fmt.Sprintf(`[%d,"row of %s"]`, i, customer))
	}
	w.Remember(tb, p, time.Now(), rows...)
}

// WithCursor returns the body of a run that asks for the page of a cursor, with more fields as JSON.
func WithCursor(next, more string) string { return fmt.Sprintf(`{"cursor": %q%s}`, next, more) }

// CursorOwner returns the owner of the cursors of an endpoint for the world's key.
func (w *World) CursorOwner(tb testing.TB, endpoint string) []byte {
	tb.Helper()
	e := w.Registry.Snapshot().Endpoint(w.Project.ID, endpoint)
	return endpoints.CursorOwner(w.Project.ID, e.ID, w.Key.Fixed)
}
