package module

import (
	"context"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/endpoints"
	"github.com/caddy-analytics/caddy-analytics/module/api/queries"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// asked is the input of a handler: a caller and their request.
type asked struct {
	api.Caller
	in *api.Input
	rt *runtime
}

// asks returns a request of the world's key, a minute after everything was created.
func (w *world) asks(method, target string) *asked {
	return &asked{
		Caller: api.Caller{Caller: execution.Caller{Start: began.Add(time.Minute), Snapshot: w.rt.registry.Snapshot(), Key: w.key, Project: w.project}},
		in:     &api.Input{Request: httptest.NewRequest(method, target, http.NoBody)}, rt: w.rt,
	}
}

// memoKey is the key of a request in the memo of plans.
func (rq *asked) memoKey(place string, body []byte) []byte {
	return result.MemoKey(&rq.Caller.Caller, place, rq.in.URL.RawQuery, result.AskedFormat(rq.in), body)
}

// recall returns the plan of a request seen before; the endpoint is nil for a query.
func (rq *asked) recall(memo []byte, e *registry.Endpoint) (*result.Plan, bool) {
	return result.Recall(rq.rt.plans, memo, &rq.Caller.Caller, e)
}

// planQuery understands a query request.
func (rq *asked) planQuery(body []byte) (*result.Plan, error) {
	return (&queries.Queries{Executor: rq.rt.Executor}).Plan(&rq.Caller, body, "")
}

// runs run endpoints as the handler does.
func (rt *runtime) runs() *endpoints.Runs {
	return &endpoints.Runs{Executor: rt.Executor, Registry: rt.registry, Plans: rt.plans, Logs: rt.logs, Logger: rt.logger}
}

// planRun understands a run of an endpoint.
func (rq *asked) planRun(e *registry.Endpoint, body []byte) (*result.Plan, error) {
	return rq.rt.runs().Plan(context.Background(), &rq.Caller, rq.in, e, body)
}

// answer gets the result of a run.
func (rq *asked) answer(p *result.Plan) (cache.Answer, error) {
	got, err := rq.rt.runs().Result(rq.in.Context(), &rq.Caller, p)
	return got.Answer, err
}
