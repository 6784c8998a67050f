package apitest

import (
	"context"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/api/routes"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Asked is the input of a handler: a caller and their request.
type Asked struct {
	api.Caller

	In       *api.Input
	Services *routes.Services
}

// Asks returns a request of the world's key, a minute after everything was created.
func (w *World) Asks(method, target string) *Asked {
	return &Asked{
		Caller: api.Caller{Caller: execution.Caller{Start: Began.Add(time.Minute), Snapshot: w.Registry.Snapshot(), Key: w.Key, Project: w.Project}},
		In:     &api.Input{Request: httptest.NewRequest(method, target, http.NoBody)}, Services: w.Services,
	}
}

// MemoKey returns the key of a request in the memo of plans.
func (rq *Asked) MemoKey(place string, body []byte) []byte {
	return result.MemoKey(&rq.Caller.Caller, place, rq.In.URL.RawQuery, result.AskedFormat(rq.In), false, body)
}

// Recall returns the plan of a request seen before; the endpoint is nil for a query.
func (rq *Asked) Recall(memo []byte, e *registry.Endpoint) (*result.Plan, bool) {
	return result.Recall(rq.Services.Plans, memo, &rq.Caller.Caller, e)
}

// PlanQuery understands a query request.
func (rq *Asked) PlanQuery(body []byte) (*result.Plan, error) {
	return rq.Services.Queries().Plan(&rq.Caller, body, "")
}

// PlanRun understands a run of an endpoint.
func (rq *Asked) PlanRun(e *registry.Endpoint, body []byte) (*result.Plan, error) {
	return rq.Services.EndpointRuns().Plan(context.Background(), &rq.Caller, rq.In, e, body)
}

// Answer gets the result of a run.
func (rq *Asked) Answer(p *result.Plan) (cache.Answer, error) {
	got, err := rq.Services.EndpointRuns().Result(rq.In.Context(), &rq.Caller, p)
	return got.Answer, err
}

// Remember caches a result as if the plan had been run.
func (w *World) Remember(tb testing.TB, p *result.Plan, at time.Time, rows ...string) {
	tb.Helper()
	b := cache.NewBuilder(cache.Limits{})
	if err := b.Columns([]cache.Column{{Name: "n", Type: "UInt64"}, {Name: "label", Type: "String"}}); err != nil {
		tb.Fatal(err)
	}
	for _, row := range rows {
		if err := b.Row([]byte(row)); err != nil {
			tb.Fatal(err)
		}
	}
	result := b.Result()
	done := &execution.Details{
		ExecutionID: uuid.MustParse("6b1d3f0e-5d0a-4a53-9a58-0a1f0c2c7d11"), HogQL: "SELECT n FROM events LIMIT 101", SQL: "SELECT 1 < 2", Limit: 100, Columns: []string{"n", "a<b"},
		Head: execution.AppendColumns(nil, []string{"n", "a<b"}, result.Columns()), Marks: p.Marks,
		Zone: w.Project.Timezone,
	}
	if p.Version != nil {
		done.Version = p.Version.Number
	}
	policy := p.Policy(time.Now())
	policy.Mode = cache.Recompute
	entry := cache.NewEntry(result, at, done, done.Size())
	if _, err := w.Cache.Do(tb.Context(), p.Key, policy, func(context.Context) (*cache.Entry, error) { return entry, nil }); err != nil {
		tb.Fatal(err)
	}
	// Calls can't use an entry that is no longer fresh until the store has it, shortly after Do returns.
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); runtime.Gosched() {
		if got, ok := w.Cache.Get(p.Key, cache.Policy{Fresh: math.MaxInt64}); ok && got.Entry == entry {
			return
		}
	}
	tb.Fatal("the cache does not keep what it was given")
}
