package module

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/definitions"
	"github.com/caddy-analytics/caddy-analytics/module/api/insights"
	"github.com/caddy-analytics/caddy-analytics/module/api/mcp"
	"github.com/caddy-analytics/caddy-analytics/module/api/projects"
	"github.com/caddy-analytics/caddy-analytics/module/api/queries"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
)

// request is one request whose topic is not a package of its own yet.
type request struct {
	w  http.ResponseWriter
	r  *http.Request
	rt *runtime
	api.Caller
	at api.Address

	spent api.Spent
}

// address, route and methods are the routes of such topics.
type (
	address struct{ resource, name, action string }
	route   struct {
		scope      string
		secretKeys bool
		serve      func(*request) error
	}
	methods map[string]route
)

// routesOf makes routes of those of topics that write their own answers.
func (rt *runtime) routesOf(topics ...map[address]methods) (all []api.Route) {
	for _, topic := range topics {
		for at, methods := range topic {
			pattern := strings.TrimRight(at.resource+"/"+at.name+"/"+at.action, "/")
			for method, old := range methods {
				all = append(all, api.Route{Method: method, Pattern: pattern, Scope: old.scope, SecretKeys: old.secretKeys, Handler: rt.adapt(old.serve)})
			}
		}
	}
	return all
}

// adapt makes a handler of a method of request.
func (rt *runtime) adapt(serve func(*request) error) api.Handler {
	return func(_ context.Context, c api.Caller, in api.Input) (api.Response, error) {
		return api.Response{Stream: func(w http.ResponseWriter) error {
			return serve(&request{w: w, r: in.Request, rt: rt, Caller: c, at: in.At})
		}}, nil
	}
}

// newAPI makes the API of a runtime.
func (rt *runtime) newAPI() *api.API {
	a := &api.API{Registry: rt.registry, Tokens: rt.tokens, Logger: rt.logger, PublicURL: rt.publicURL}
	a.Serve(rt.routesOf(endpointRoutes())...)
	a.Serve(rt.runRoutes()...)
	a.Serve((&projects.Projects{Registry: rt.registry}).Routes()...)
	a.Serve((&queries.Queries{Executor: rt.Executor, Plans: rt.plans, Logger: rt.logger}).Routes()...)
	a.Serve((&definitions.Definitions{Executor: rt.Executor, Registry: rt.registry}).Routes()...)
	a.Serve(rt.insights()...)
	a.Serve((&mcp.Tools{Executor: rt.Executor}).Routes()...)
	return a
}

// insights are the routes of saved insights and dashboards.
func (rt *runtime) insights() []api.Route {
	results := &insights.Results{Executor: rt.Executor, Registry: rt.registry, Plans: rt.plans, Logger: rt.logger}
	return slices.Concat(
		(&insights.Insights{Results: results, Registry: rt.registry}).Routes(),
		(&insights.Activity{Registry: rt.registry, Runs: rt.Runs}).Routes(),
		(&insights.Dashboards{Results: results, Registry: rt.registry}).Routes(),
	)
}

// write sends an answer.
func (rq *request) write(res api.Response) {
	if res.Spent == (api.Spent{}) {
		res.Spent = rq.spent
	}
	api.Write(rq.w, rq.r, rq.Start, &res)
}

// reply sends v as the JSON body of an answer that no cache keeps.
func (rq *request) reply(status int, v any) { rq.write(api.JSON(status, v)) }

// replyNothing sends an answer without a body.
func (rq *request) replyNothing() { rq.write(api.NoContent()) }

// What of the input they read.

func (rq *request) input() api.Input {
	return api.Input{Request: rq.r, At: rq.at, PublicURL: rq.rt.publicURL}
}

func (rq *request) readFields(allowed ...string) (map[string]json.RawMessage, error) {
	return rq.input().ReadFields(allowed...)
}

func (rq *request) queryInt(name string) (n int, given bool, err error) {
	return rq.input().QueryInt(name)
}

func (rq *request) origin() string { return rq.input().Origin() }

func writePage[T any](rq *request, all []T) error {
	res, err := api.PageOf(rq.input(), all)
	if err != nil {
		return err
	}
	rq.write(res)
	return nil
}

func (rq *request) mayOverride(filters json.RawMessage) error {
	return result.MayOverride(rq.Key, filters)
}

func (rq *request) results() *result.Writer {
	return &result.Writer{Project: rq.Project, Runs: rq.rt.Runs}
}

// memoKey is the key of the request in the memo of plans.
func (rq *request) memoKey(place string, body []byte) []byte {
	form, _ := rq.askedFormat()
	return result.MemoKey(&rq.Caller.Caller, place, rq.r.URL.RawQuery, form, body)
}

// showQuotas tells in the answer's headers what is left to its caller.
func (rq *request) showQuotas(qs execution.Quotas) {
	if qs == nil {
		return
	}
	policy, left := qs.Fields(time.Now())
	h := rq.w.Header()
	h["Ratelimit-Policy"], h["Ratelimit"] = []string{policy}, []string{left}
}
