package apitest

import (
	"context"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// PlacesFor returns the limits of places for a project's concurrency.
func PlacesFor(concurrency int) admission.Limits {
	return admission.Limits{Places: 4 * concurrency, Project: concurrency, Queue: execution.QueueFactor * concurrency}
}

// FillPlaces takes all places of the world's project and all of its queue.
func (w *World) FillPlaces(tb testing.TB, concurrency int) {
	tb.Helper()
	limits := PlacesFor(concurrency)
	limits.Queue = 0
	w.Places = admission.New(limits)
	for range concurrency {
		if _, err := w.Places.Enter(tb.Context(), admission.Request{Project: w.Project.ID}); err != nil {
			tb.Fatal(err)
		}
	}
}

// Spend takes one query from the rate of the world's key.
func (w *World) Spend(now time.Time) error {
	return w.Count(w.Key, new(execution.Query), now)
}

// Count counts a query of a key on its quotas.
func (w *World) Count(key *registry.Key, q *execution.Query, now time.Time) error {
	free := *w.Executor
	free.Places = admission.New(PlacesFor(1)) // whatever else runs
	place, err := free.NewComputation(&execution.Caller{Key: key, Project: w.Project}, q).Admit(context.Background(), admission.Awaited, now)
	if err == nil {
		place.Leave()
	}
	return err
}
