package insights

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/dustin/go-humanize"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Results computes and shows the results of insights.
type Results struct {
	Executor *execution.Executor
	Registry *registry.Registry
	Plans    *cache.Memo[*result.Plan] // plans of earlier requests
	// Alerts returns the alerts of an insight that a caller may read, in the form for them.
	Alerts func(c *api.Caller, i *registry.Insight) []any
	Logger *zap.Logger
}

// plan returns the plan of the query of an insight. It does not plan a request again that it has seen before.
func (s *Results) plan(c *api.Caller, in *api.Input, i shownInsight, params resultParams) (*result.Plan, error) {
	level, _ := access(c, "insight")
	var tile int64
	if i.tile != nil {
		tile = i.tile.ID
	}
	// The response shows the insight, its dashboards, variables, users and alerts: anything in the project can affect it.
	place := fmt.Sprintf("insight %d tile %d %s %d %t %s", i.ID, tile, level, c.Snapshot.Serial(c.Project.ID), c.Key.Allows("alert:read"), params.clientID)
	if s.Executor.Peers != nil { // whether they may answer depends on the caller
		place += fmt.Sprint(" ", c.Key.Allows("insight:read"))
	}
	memo := result.MemoKey(&c.Caller, place, in.URL.RawQuery, result.AskedFormat(in), false, nil)
	if p, ok := result.Recall(s.Plans, memo, &c.Caller, nil); ok {
		return p, nil
	}
	node, err := compiler.Parse(i.Query)
	if err != nil {
		return nil, fmt.Errorf("reading the stored query of insight %d: %w", i.ID, err)
	}
	over, err := i.overrides(c, node, params.over)
	if err != nil {
		return nil, err
	}
	p, err := result.PlanNode(s.Executor, &c.Caller, node, over, params.mode)
	if err != nil {
		return nil, err
	}
	p.ClientID = params.clientID
	if s.Executor.Peers != nil && peersMayAnswer(c, i.Insight, over) {
		p.Recipe = &execution.Recipe{Insight: i.ID, Query: i.Query, Variables: bytes.Clone(over.Variables), Filters: bytes.Clone(over.Filters)}
	}
	p.Page = cache.PageKey{Limit: -1, Variant: fmt.Sprintf("%s fresh=%s", memo, p.Fresh)} // the response says when the result ceases to be fresh
	s.Plans.Put(memo, p)
	return p, nil
}

// peersMayAnswer reports whether another server may run the query for the caller. It knows the insight, but not the overrides of a dashboard or a request,
// for which it requires the scope of queries.
func peersMayAnswer(c *api.Caller, i *registry.Insight, over result.Overrides) bool {
	switch {
	case c.Key.Bound():
		return false
	case c.Key.Allows(result.QueryScope):
		return true
	}
	return !i.NeedsQueryScope && c.Key.Allows("insight:read") && len(over.Variables) == 0 && len(over.Filters) == 0
}

// insightResult is the outcome of the query of an insight.
type insightResult struct {
	plan *result.Plan // nil if there is no query
	execution.Result
	text    bool            // the result is shown as a text table
	table   *string         // the table, if it was written already
	query   json.RawMessage // as it ran, with overrides applied; nil if there were none
	failure string          // why there is no result, for people; empty on success
	mistake *api.Error      // the mistake in the query, if it is shown instead of a result; else nil
}

// errConcurrency is PostHog's error for too many concurrent queries of a project.
const errConcurrency = "concurrency_limit_exceeded"

// errTooMuchAtOnce replaces results for which the response has no room.
var errTooMuchAtOnce = fmt.Sprintf("The results of this dashboard take more than %s. Ask for this insight by itself.", humanize.IBytes(maxDashboardBytes))

// result runs the query of an insight. It returns mistakes in the query as errors, if the mode is one that computes results. After any other failure, the
// insight is shown without a result, with the reason in its query_status: contract api.md section 4.4. It returns the quotas even with an error.
func (s *Results) result(ctx context.Context, c *api.Caller, in *api.Input, i shownInsight, params resultParams) (insightResult, error) {
	if i.Query == nil {
		return insightResult{}, nil
	}
	withheld := i.NeedsQueryScope && !c.Key.Allows(result.QueryScope)
	switch {
	case withheld && params.mode == execution.RefreshForceCache:
		return insightResult{}, nil
	case withheld && !params.many && !params.written:
		return insightResult{}, api.MissingScope(result.QueryScope)
	}
	p, err := s.plan(c, in, i, params)
	if err != nil {
		failed := insightResult{plan: unplanned(c, i)}
		if params.mode == execution.RefreshForceCache {
			return params.shown(ctx, failed, err)
		}
		return failed, err
	}
	switch {
	case withheld:
		return insightResult{plan: p, failure: api.MissingScope(result.QueryScope).Detail}, nil
	case params.full:
		return insightResult{plan: p, failure: errTooMuchAtOnce}, nil
	}
	out := insightResult{plan: p, text: params.text}
	if out.query, err = i.overlaid(c, p.Node, params.over); err != nil {
		return out, err
	}
	out.Result, err = s.Executor.Refresh(ctx, &c.Caller, p.Query, &p.Freshness, i.origin(), p)
	if params.mode == execution.RefreshForceCache && out.Answer.Status == cache.Stale {
		out.Answer.Status = cache.Hit // it is not being refreshed
	}
	if err == nil {
		return out, nil
	}
	failed := api.ErrorOf(err)
	var refused *execution.LimitError
	switch {
	case ctx.Err() != nil, errors.As(err, &refused) && refused.Owner != "":
		return out, err
	case failed.Status == http.StatusTooManyRequests:
		out.failure = errConcurrency
	case failed.Status < http.StatusInternalServerError:
		return out, err
	default:
		failed.Log(s.Logger, in.Request, c.RequestID)
		out.failure = failed.Detail
	}
	return out, nil
}

// unplanned replaces the plan of an insight whose query can't be planned.
func unplanned(c *api.Caller, i shownInsight) *result.Plan {
	return &result.Plan{Query: &execution.Query{Key: cache.KeyParts{Project: c.Project.ID, Query: string(i.Query)}.Key()}}
}

// shown handles an error in a response that shows more than this result: other insights, or what was written. A mistake in the query becomes a part of the
// result. Other errors fail the whole response: the caller is gone, or has used up a rate, which does not undo a write.
func (p resultParams) shown(ctx context.Context, res insightResult, err error) (insightResult, error) {
	if err == nil || ctx.Err() != nil {
		return res, err
	}
	mistake := api.ErrorOf(err)
	shown := insightResult{plan: res.plan, query: res.query, Result: execution.Result{Quotas: res.Quotas}, failure: mistake.Detail}
	switch {
	case mistake.Status >= http.StatusInternalServerError, mistake.Status == http.StatusTooManyRequests && !p.written:
		return res, err
	case mistake.Status == http.StatusTooManyRequests:
		return shown, nil
	}
	shown.mistake = mistake
	return shown, nil
}

// answer answers with an insight and its result. A body with a cached result is stored as a page. As the insight can change while its result does not,
// clients have to revalidate it.
func (s *Results) answer(
	ctx context.Context, c *api.Caller, in *api.Input, params resultParams, status int, i *registry.Insight,
) (*api.Response, error) {
	c = c.Now(s.Registry)
	if c.Snapshot.Schema(c.Project.ID) == nil {
		return nil, api.NotFound("Project not found.") // it was just deleted
	}
	if i = c.Snapshot.AnyInsight(c.Project.ID, i.ID); i == nil { // what is remembered for a snapshot is of the insight in it
		return nil, api.NotFound("Not found.")
	}
	one := shownIn(c, in, i)
	got, err := s.result(ctx, c, in, one, params)
	if params.written {
		got, err = params.shown(ctx, got, err)
	}
	if err != nil {
		return &api.Response{Quotas: got.Quotas}, err
	}
	if status != http.StatusOK || got.Answer.Entry == nil {
		if status == http.StatusOK {
			status = result.Status(got.Run)
		}
		return api.Raw(status, s.append(nil, c, one, got, nil)).With(got.Quotas), nil
	}
	body := result.Stored(s.Executor.Cache, in, got.plan, &got.Result)
	if body == nil {
		body, err = result.Render(ctx, s.Executor.Cache, in, got.plan, &got.Result, func(dst []byte, _ *result.Plan, _ cache.Answer) []byte {
			return s.append(dst, c, one, got, nil)
		})
		if err != nil {
			return &api.Response{Quotas: got.Quotas}, err
		}
	}
	res := result.Respond(got.plan, &got.Result, body)
	if got.Run == nil {
		res.Cache = api.Revalidate
	}
	return res, nil
}
