package execution

import (
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
)

// noon is a time for tests with a clock of their own.
var noon = time.Date(2026, 1, 10, 12, 0, 0, 0, time.UTC)

// testPlaces are the limits of places for a project's concurrency.
func testPlaces(concurrency int) admission.Limits {
	return admission.Limits{Places: 4 * concurrency, Project: concurrency, Queue: QueueFactor * concurrency}
}

// newExecutor returns an executor without ClickHouse: only the cache can answer.
func newExecutor(tb testing.TB) *Executor {
	tb.Helper()
	results, err := cache.New(cache.Config{MaxBytes: 16 << 20, Stale: time.Hour})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(results.Close)
	return &Executor{
		Cache: results, Runs: NewRuns(), Metrics: NewMetrics(), Compiler: new(Compiler), Names: new(Sightings),
		Limits: NewLimiter(plenty), Places: admission.New(testPlaces(10)), Settings: Settings{QueryFresh: 5 * time.Minute},
		Retain: func() (func(), bool) { return func() {}, true }, Reports: Reports{Run: func(cache.Key, error) {}},
	}
}
