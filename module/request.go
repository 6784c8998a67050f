package module

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/definitions"
	"github.com/caddy-analytics/caddy-analytics/module/api/endpoints"
	"github.com/caddy-analytics/caddy-analytics/module/api/endpoints/files"
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

	run *execution.Run // the background run in progress that the answer has to tell of; nil for none
	// The answer shows more than a result: a client that keeps it has to ask each time whether it still holds.
	revalidate bool
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
	a.Serve(rt.routesOf(insightRoutes(), dashboardRoutes(), toolRoutes())...)
	runs := &endpoints.Runs{Executor: rt.Executor, Registry: rt.registry, Plans: rt.plans, Logs: rt.logs, Logger: rt.logger}
	a.Serve(runs.Routes()...)
	a.Serve((&endpoints.Documents{Runs: runs}).Routes()...)
	a.Serve((&endpoints.Endpoints{Executor: rt.Executor, Registry: rt.registry, Forget: rt.forget}).Routes()...)
	a.Serve((&projects.Projects{Registry: rt.registry}).Routes()...)
	a.Serve((&queries.Queries{Executor: rt.Executor, Plans: rt.plans, Logger: rt.logger}).Routes()...)
	a.Serve(rt.definitions().Routes()...)
	return a
}

func (rt *runtime) files() *files.Files {
	return &files.Files{Executor: rt.Executor, Registry: rt.registry, Forget: rt.forget}
}

func (rt *runtime) definitions() *definitions.Definitions {
	return &definitions.Definitions{Executor: rt.Executor, Registry: rt.registry}
}

// write sends an answer.
func (rq *request) write(res api.Response) { api.Write(rq.w, rq.r, rq.Start, &res) }

// writeAnswer sends a page of a result. One that was stored is sent as it was last time, bytes and all.
func (rq *request) writeAnswer(p *result.Plan, got cache.Answer, render func([]byte, *result.Plan, cache.Answer) []byte) error {
	found := execution.Result{Answer: got, Run: rq.run}
	body, ok := result.Stored(rq.rt.Cache, rq.input(), p, &found)
	if !ok {
		body = result.Render(rq.rt.Cache, rq.input(), p, found, render)
	}
	res := result.Respond(p, &found, body)
	if rq.revalidate && rq.run == nil {
		res.Cache = api.Revalidate
	}
	rq.write(res)
	return nil
}

// okStatus is the status of an answer: 202 while a background run computes a newer one.
func (rq *request) okStatus() int {
	if rq.run != nil {
		return http.StatusAccepted
	}
	return http.StatusOK
}

// reply sends v as the JSON body of an answer that no cache keeps.
func (rq *request) reply(status int, v any) { rq.write(api.JSON(status, v)) }

// replyNothing sends an answer without a body.
func (rq *request) replyNothing() { rq.write(api.NoContent()) }

// What of the input they read.

func (rq *request) input() api.Input {
	return api.Input{Request: rq.r, At: rq.at, PublicURL: rq.rt.publicURL}
}

func (rq *request) readObject() (map[string]json.RawMessage, error) { return rq.input().ReadObject() }

func (rq *request) numberedPage(number int) *string { return rq.input().NumberedPage(number) }

func (rq *request) writeList(l *api.List) { rq.write(l.Response(rq.input())) }

func writePage[T any](rq *request, all []T) error {
	res, err := api.PageOf(rq.input(), all)
	if err != nil {
		return err
	}
	rq.write(res)
	return nil
}

func (rq *request) results() *result.Writer {
	return &result.Writer{Project: rq.Project, Runs: rq.rt.Runs, Run: rq.run}
}

// memoKey is the key of the request in the memo of plans.
func (rq *request) memoKey(place string, body []byte) []byte {
	return result.MemoKey(&rq.Caller.Caller, place, rq.r.URL.RawQuery, result.AskedFormat(rq.input()), body)
}

// refresh answers a plan in its refresh mode.
func (rq *request) refresh(p *result.Plan, from execution.Origin) (execution.Result, error) {
	got, err := rq.rt.Refresh(rq.r.Context(), rq.Caller.Caller, p.Query, p.Freshness, from, p)
	rq.showQuotas(got.Quotas)
	return got, err
}

// showQuotas says in the answer's headers what is left to its caller.
func (rq *request) showQuotas(qs execution.Quotas) { api.SetQuotas(rq.w.Header(), qs) }
