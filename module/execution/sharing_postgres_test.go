package execution

import (
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/internal/postgrestest"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/postgres"
)

// TestRatesOverPostgres: eight nodes on one database admit what the rate allows, also while it is stopped in between.
func TestRatesOverPostgres(t *testing.T) {
	const nodes = 8
	server := postgrestest.New(t)
	dsn := server.Database(t)
	rate := per(40, time.Second)
	f := &fleet{shop: &shop{nodes: nodes}}
	for range nodes {
		store, err := postgres.Open(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		r, err := registry.Open(t.Context(), store, registry.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close() })
		sharer, ok := r.Sharer()
		if !ok {
			t.Fatal("the registry is not shared")
		}
		e := &Executor{Limits: NewLimiter(rate), Places: admission.New(testPlaces(10_000))}
		e.Limits.Sharing = NewSharing(sharer, func() int { return nodes })
		t.Cleanup(func() { _ = e.Limits.Sharing.Close() })
		f.executors, f.quotas = append(f.executors, e), append(f.quotas, queriesOf(e.Limits, "a", registry.Rate{}))
	}
	began := time.Now()
	within := func(what string) {
		t.Helper()
		took, got := time.Since(began), f.admitted.Load()
		want := float64(rate.Queries) * (1 + took.Seconds()/rate.Per.Seconds())
		if float64(got) > 1.1*want+nodes || float64(got) < 0.7*want {
			t.Errorf("%s %d queries were admitted in %s; the rate allows %.0f", what, got, took, want)
		}
		t.Logf("%s %d queries were admitted of %.0f, %d refused", what, got, want, f.refused.Load())
	}
	f.ask(t, 40, 4*time.Second)
	within("before it is stopped,")
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	f.ask(t, 40, 4*time.Second)
	within("while it is stopped,")
	if err := server.Run(); err != nil {
		t.Fatal(err)
	}
	f.ask(t, 40, 4*time.Second)
	within("after that,")
	for n, e := range f.executors {
		if e.Limits.Sharing.away.Load() {
			t.Errorf("node %d does not know that the database is back", n)
		}
	}
}
