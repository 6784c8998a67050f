// Package queries answers the query route: contract api.md section 1.
package queries

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
)

// Queries handles the routes of queries.
type Queries struct {
	Executor *execution.Executor
	Plans    *cache.Memo[*result.Plan] // plans of earlier requests
	Logger   *zap.Logger
}

// Routes returns the routes of queries.
func (q *Queries) Routes() []api.Route {
	const scope = result.QueryScope
	return []api.Route{
		{Method: http.MethodPost, Pattern: "query", Scope: scope, Handler: q.run},
		{Method: http.MethodPost, Pattern: "query/:name", Scope: scope, Handler: q.named},
		{Method: http.MethodGet, Pattern: "query/:name", Scope: scope, Handler: q.status},
		{Method: http.MethodDelete, Pattern: "query/:name", Scope: scope, Handler: q.cancel},
		{Method: http.MethodGet, Pattern: "query/:name/log", Scope: scope, Handler: q.log},
	}
}

// run answers POST query/: contract api.md, section 1.
func (q *Queries) run(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	body, err := api.ReadBody(in.Request)
	if err != nil {
		return nil, err
	}
	defer api.ReturnBody(body)
	return q.answer(ctx, c, in, body.Bytes())
}

// answer answers a query request. It does not parse a request again that it has seen before, byte for byte.
func (q *Queries) answer(ctx context.Context, c *api.Caller, in *api.Input, body []byte) (*api.Response, error) {
	var place string // never the name of an endpoint, so that it can't get the plan of a run
	if in.FromMCP() {
		place = " mcp"
	}
	memo := result.MemoKey(&c.Caller, place, in.URL.RawQuery, result.AskedFormat(in), false, body)
	p, ok := result.Recall(q.Plans, memo, &c.Caller, nil)
	if !ok {
		var err error
		if p, err = q.Plan(c, body, place); err != nil {
			return nil, err
		}
		if _, typing := p.Node.(*query.Autocomplete); p.Held == nil && !typing { // no two completions ask the same
			q.Plans.Put(memo, p)
		}
	}
	if describes(p.Node) {
		return q.describe(ctx, c, p.Node)
	}
	got, err := q.Executor.Refresh(ctx, &c.Caller, p.Query, &p.Freshness, execution.Origin{}, p)
	if err != nil {
		res, err := q.mistake(ctx, c, p, err)
		return res.With(got.Quotas), err
	}
	if got.Answer.Entry == nil {
		return q.running(c, p, got), nil
	}
	var seen result.Inspection
	if p.Shows.Explain {
		var shown execution.Quotas
		seen, shown, err = q.inspect(ctx, c, p)
		if shown != nil {
			got.Quotas = shown
		}
		if err != nil {
			return &api.Response{Quotas: got.Quotas}, err
		}
	}
	page := result.Stored(q.Executor.Cache, in, p, &got)
	if page == nil {
		w := q.writer(c, got.Run)
		w.Inspected = seen
		render := w.RenderQuery
		if place != "" {
			render = q.forMCP(w, c.RequestID)
		}
		page, err = result.Render(ctx, q.Executor.Cache, in, p, &got, render)
		if err != nil {
			return &api.Response{Quotas: got.Quotas}, err
		}
	}
	return result.Respond(p, &got, page), nil
}

// writer returns the writer of what the caller's answers contain besides rows.
func (q *Queries) writer(c *api.Caller, run *execution.Run) *result.Writer {
	return &result.Writer{Project: c.Project, Runs: q.Executor.Runs, Run: run}
}

// running returns the response while there is no result yet: contract api.md, section 1.3.
func (q *Queries) running(c *api.Caller, p *result.Plan, got execution.Result) *api.Response {
	body := []byte{'{'}
	if p.Refresh != execution.RefreshForceAsync {
		body = append(body, `"cache_key":"`...)
		body = append(body, p.Key.String()...)
		body = append(body, `",`...)
	}
	body = q.writer(c, got.Run).AppendRunning(body)
	return api.Raw(result.Status(got.Run), append(body, '}')).With(got.Quotas)
}

// named answers POST query/{Kind}/, whose kind must match the body's, and three actions at the same level.
func (q *Queries) named(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	switch {
	case in.At.Name == "check_auth_for_async":
		return api.JSON(http.StatusOK, map[string]string{"user": "ok"}), nil
	case in.At.Name == "upgrade":
		return upgrade(in)
	case in.At.Name == "sql":
		return q.sql(ctx, c, in)
	case !isKindName(in.At.Name):
		return nil, api.NotFound("Not found.")
	}
	body, err := api.ReadBody(in.Request)
	if err != nil {
		return nil, err
	}
	defer api.ReturnBody(body)
	if err := checkKind(body.Bytes(), in.At.Name); err != nil {
		return nil, err
	}
	return q.answer(ctx, c, in, body.Bytes())
}

// checkKind checks that a query request has the kind in the path.
func checkKind(body []byte, name string) error {
	fields, err := queryObject(body)
	if err != nil {
		return err
	}
	var node map[string]json.RawMessage
	if json.Unmarshal(fields["query"], &node) != nil || node == nil {
		return api.Invalid("", "invalid_input", "Query must be a JSON object.")
	}
	var kind string
	if raw, ok := node["kind"]; !ok || json.Unmarshal(raw, &kind) != nil || kind != name {
		return api.Invalid("", "invalid_input", "Query kind mismatch: path kind %q does not match body kind %q.", name, kind)
	}
	return nil
}

// forMCP returns the function that writes a body with formatted_results at the end: the results as a plain text table.
func (q *Queries) forMCP(w *result.Writer, requestID string) func([]byte, *result.Plan, cache.Answer) []byte {
	return func(dst []byte, p *result.Plan, got cache.Answer) []byte {
		dst = w.RenderQuery(dst, p, got)
		text, err := result.FormatResults(p, got)
		if err != nil { // a bug: this server wrote the result
			q.Logger.Error("writing results as text", zap.String("request", requestID), zap.Error(err))
			return dst
		}
		dst = append(dst[:len(dst)-1], `,"formatted_results":`...)
		return append(jsontext.Append(dst, text), '}')
	}
}

// queryObject reads the body of a route below query/, which must be an object.
func queryObject(body []byte) (map[string]json.RawMessage, error) {
	if err := api.CheckJSON(body); err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil || fields == nil {
		return nil, api.Invalid("", "invalid_input", "Query body must be a JSON object.")
	}
	return fields, nil
}

// isKindName tells paths with a kind, [A-Z][A-Za-z]*, from those with the id of a query.
func isKindName(name string) bool {
	return name[0] >= 'A' && name[0] <= 'Z' && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}

// requestMistake words a mistake outside of the query like PostHog's validator; an empty field stands for the whole request.
func requestMistake(field, words, typ string) *api.Error {
	if field != "" {
		field += "\n"
	}
	return api.ParseError(fmt.Sprintf("JSON parse error - 1 validation error for QueryRequest\n%s  %s [type=%s]", field, words, typ))
}

// extraField refuses an unknown field of a query request, and suggests what was probably meant.
func extraField(name string, fields map[string]json.RawMessage) *api.Error {
	answer := requestMistake(name, "Extra inputs are not permitted", "extra_forbidden")
	_, wrapped := fields["query"]
	_, kind := fields["kind"]
	if near := schema.Nearest(name, slices.Values(queryFields)); kind && !wrapped {
		answer.Detail += `: put the query into the field query, as in {"query": {"kind": …}}`
	} else if near != "" {
		answer.Detail += fmt.Sprintf(": did you mean '%s'?", near)
	}
	return answer
}
