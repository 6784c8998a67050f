package module

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// insightParams are the parameters of the query string that decide about the results of insights: contract section 4.4.
type insightParams struct {
	mode     execution.RefreshMode
	over     result.Overrides
	clientID string
	text     bool // results are shown as tables of text
	many     bool // the insight is one of many in the answer: what is refused to one is no error of all
	full     bool // the answer has no room for the result
}

func (rq *request) insightParams() (insightParams, error) {
	given := rq.r.URL.Query()
	params := insightParams{mode: execution.RefreshForceCache, clientID: given.Get("client_query_id")}
	if name := given.Get("refresh"); api.IsTrue(name) {
		params.mode = execution.RefreshForceBlocking
	} else if name != "" && name != "false" {
		mode, ok := execution.ParseRefresh(name)
		if !ok {
			return params, api.Invalid("refresh", "invalid_choice", "%q is not a valid choice.", name)
		}
		params.mode = mode
	}
	if !result.ValidQueryID(params.clientID) || len(params.clientID) > result.MaxQueryID {
		return params, api.Invalid("client_query_id", "invalid_input", "The id must be usable as a part of a path, and have at most %d characters.", result.MaxQueryID)
	}
	for name, into := range map[string]*json.RawMessage{"filters_override": &params.over.Filters, "variables_override": &params.over.Variables} {
		var object map[string]json.RawMessage
		if given, err := rq.jsonParam(name, &object); err != nil {
			return params, err
		} else if given {
			*into = jsontext.Append(nil, object)
		}
	}
	return params, rq.mayOverride(params.over.Filters)
}

// several gives the parameters for many insights at once: an id cannot stand for all of their runs.
func (p insightParams) several() insightParams {
	p.clientID, p.many = "", true
	return p
}

// shownInsight is an insight as one request asks for it: by itself, or as a part of a dashboard.
type shownInsight struct {
	*registry.Insight
	tile      *registry.Tile // nil by itself
	dashboard *registry.Dashboard
}

// shown reads from_dashboard. Like the peer it takes no notice of a dashboard that the insight is not on.
func (rq *request) shown(i *registry.Insight) shownInsight {
	id, _ := parseNumber(rq.r.URL.Query().Get("from_dashboard"))
	for _, t := range rq.Snapshot.TilesOf(i.Project, i.ID) {
		if t.Dashboard == id {
			return shownInsight{i, t, rq.Snapshot.Dashboard(i.Project, id)}
		}
	}
	return shownInsight{Insight: i}
}

// overrides are what goes over the insight's query: the request's own over the dashboard's; a tile's filters take the place
// of both.
func (s shownInsight) overrides(given result.Overrides) (result.Overrides, error) {
	if s.tile == nil {
		return given, nil
	}
	var err error
	if given.Variables, err = merge(s.dashboard.Variables, given.Variables); err != nil {
		return given, err
	}
	if !isEmptyObject(s.tile.FilterOverrides) {
		given.Filters = s.tile.FilterOverrides
		return given, nil
	}
	given.Filters, err = merge(s.dashboard.Filters, given.Filters)
	return given, err
}

// overlaid is the query with its overrides put over it, for clients that run what they were shown; nil when there are none.
func (s shownInsight) overlaid(given result.Overrides) (json.RawMessage, error) {
	over, err := s.overrides(given)
	if err != nil || isEmptyObject(over.Filters) && isEmptyObject(over.Variables) {
		return nil, err
	}
	return compiler.Overlaid(s.Query, over.Filters, over.Variables) // a mistake of the request, told as it is
}

func isEmptyObject(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "{}" }

// merge puts the members of one object over those of another. Two empty ones give nothing.
func merge(below, over json.RawMessage) (json.RawMessage, error) {
	if isEmptyObject(below) {
		return over, nil
	}
	if isEmptyObject(over) {
		return below, nil
	}
	var all, more map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(below, &all), json.Unmarshal(over, &more)); err != nil {
		return nil, fmt.Errorf("reading overrides: %w", err)
	}
	maps.Copy(all, more)
	return jsontext.Append(nil, all), nil
}

// planInsight plans the query of an insight. A request that was seen before is not planned again.
func (rq *request) planInsight(s shownInsight, params insightParams) (*result.Plan, error) {
	level, _ := rq.access("insight")
	var tile int64
	if s.tile != nil {
		tile = s.tile.ID
	}
	memo := rq.memoKey(fmt.Sprintf("insight %d tile %d %s %s", s.ID, tile, level, params.clientID), nil)
	if p, ok := result.Recall(rq.rt.plans, memo, &rq.Caller.Caller); ok {
		return p, nil
	}
	node, err := compiler.Parse(s.Query)
	if err != nil {
		return nil, fmt.Errorf("reading the stored query of insight %d: %w", s.ID, err)
	}
	over := params.over
	if _, isHogQL := node.(*query.HogQL); isHogQL || isInsight(node) { // a dashboard's filters mean nothing to other kinds
		if over, err = s.overrides(over); err != nil {
			return nil, err
		}
	}
	p, err := result.PlanNode(rq.rt.Executor, &rq.Caller.Caller, node, over, params.mode)
	if err != nil {
		return nil, err
	}
	p.ClientID = params.clientID
	p.Page = cache.PageKey{Limit: -1, Variant: string(memo)}
	rq.rt.plans.Put(memo, p)
	return p, nil
}

func isInsight(node query.Node) bool {
	_, ok := node.(query.Insight)
	return ok
}

// insightResult is what there is to show for the query of an insight.
type insightResult struct {
	plan *result.Plan // nil when it has no query
	execution.Result
	text    bool            // the result is shown as a table of text
	query   json.RawMessage // as it ran, with overrides put over it; nil when there are none
	failure string          // why there is no result, for people; empty when nothing failed
}

// errConcurrency is what the peer says when too many queries of a project run at once.
const errConcurrency = "concurrency_limit_exceeded"

// errTooMuchAtOnce stands in the place of results that an answer has no room for.
var errTooMuchAtOnce = fmt.Sprintf("The results of this dashboard take more than %s. Ask for this insight by itself.", Size(maxDashboardBytes))

// result answers the query of an insight. Mistakes in the query are errors; when anything else fails, the insight is shown
// without its result, with the reason in its query_status: contract section 4.4.
func (rq *request) result(s shownInsight, params insightParams) (insightResult, error) {
	if s.Query == nil {
		return insightResult{}, nil
	}
	withheld := s.NeedsQueryScope && !rq.mayQuery()
	switch {
	case withheld && params.mode == execution.RefreshForceCache:
		return insightResult{}, nil
	case withheld && !params.many:
		return insightResult{}, api.MissingScope(result.QueryScope)
	}
	p, err := rq.planInsight(s, params)
	if err != nil {
		return insightResult{}, err
	}
	switch {
	case withheld:
		return insightResult{plan: p, failure: api.MissingScope(result.QueryScope).Detail}, nil
	case params.full:
		return insightResult{plan: p, failure: errTooMuchAtOnce}, nil
	}
	from := execution.Origin{Insight: &s.ID}
	if s.tile != nil {
		from.Dashboard = &s.tile.Dashboard
	}
	out := insightResult{plan: p, text: params.text}
	if out.query, err = s.overlaid(params.over); err != nil {
		return insightResult{}, err
	}
	out.Result, err = rq.refresh(p, from)
	if params.mode == execution.RefreshForceCache && out.Answer.Status == cache.Stale {
		out.Answer.Status = cache.Hit // it is not being refreshed
	}
	if err == nil {
		return out, nil
	}
	failed := api.ErrorOf(err)
	var refused *execution.LimitError
	switch {
	case rq.r.Context().Err() != nil, errors.As(err, &refused) && refused.Owner != "":
		return out, err
	case failed.Status == http.StatusTooManyRequests:
		out.failure = errConcurrency
	case failed.Status < http.StatusInternalServerError:
		return out, err
	default:
		failed.Log(rq.rt.logger, rq.r, rq.RequestID)
		out.failure = failed.Detail
	}
	return out, nil
}

// writeInsight answers with an insight and its result. A body that shows a cached result is kept as a page; as the insight can
// change while its result does not, clients ask whether it has.
func (rq *request) writeInsight(status int, i *registry.Insight) error {
	params, err := rq.insightParams()
	if err != nil {
		return err
	}
	rq.Snapshot = rq.rt.registry.Snapshot() // after a write: with what it changed
	s := rq.shown(i)
	res, err := rq.result(s, params)
	if err != nil {
		return err
	}
	rq.run = res.Run
	if status != http.StatusOK || res.Answer.Entry == nil {
		if status == http.StatusOK {
			status = rq.okStatus()
		}
		rq.write(api.Raw(status, rq.appendInsight(nil, s, res, nil)))
		return nil
	}
	rq.revalidate = true
	return rq.writeAnswer(res.plan, res.Answer, func(dst []byte, _ *result.Plan, got cache.Answer) []byte {
		res.Answer = got
		return rq.appendInsight(dst, s, res, nil)
	})
}

// appendInsight appends an insight with its result; complete puts in what else is known of it, and may be nil.
func (rq *request) appendInsight(dst []byte, s shownInsight, res insightResult, complete func(*insightHead)) []byte {
	full := rq.fullInsight(s.Insight)
	if res.query != nil {
		full.Query = res.query
	}
	if complete != nil {
		complete(&full.insightHead)
	}
	if s.tile != nil {
		full.insightOnDashboard = &insightOnDashboard{Color: s.tile.Color, Layouts: s.tile.Layouts}
	}
	dst = jsontext.Append(dst, full)
	dst = dst[:len(dst)-1] // the brace comes behind the result
	switch {
	case res.Answer.Entry == nil:
		dst = rq.appendNoResult(dst, res)
	case res.text:
		dst = rq.appendText(dst, res)
	default:
		dst = rq.appendResult(dst, res)
	}
	dst = append(dst, `,"query_status":`...)
	switch {
	case res.failure != "":
		dst = rq.appendFailure(dst, s, res)
	case res.Run != nil:
		dst = rq.results().AppendStatus(dst, res.Run, false, nil)
	default:
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"filters_hash":`...)
	if res.plan == nil {
		return append(dst, "null}"...)
	}
	return append(jsontext.Append(dst, res.plan.Key.String()), '}')
}

// appendResult appends the members that come from the answer of the query.
func (rq *request) appendResult(dst []byte, res insightResult) []byte {
	done, _ := res.Answer.Entry.Meta.(*execution.Details)
	if done.Insight != nil {
		dst = append(dst, `,"result":`...)
		dst = append(dst, done.Insight.Results...)
		dst = result.AppendHasMore(dst, done.Insight.HasMore)
		dst = append(dst, `,"columns":null,"types":null`...)
		dst = append(dst, done.Insight.Dates...)
	} else {
		kept := res.Answer.Entry.Result
		dst = append(dst, `,"result":`...)
		dst = kept.AppendRows(dst, 0, -1)
		dst = append(dst, ',')
		dst = append(dst, done.Head...)
		var more *bool
		if !done.OwnLimit {
			cut := kept.More()
			more = &cut
		}
		dst = result.AppendHasMore(dst, more)
		dst = append(dst, `,"resolved_date_range":null`...)
	}
	dst = rq.results().AppendFreshness(dst, res.plan, res.Answer)
	return jsontext.Append(append(dst, `,"hogql":`...), done.HogQL)
}

// appendText appends the result as a table of text.
func (rq *request) appendText(dst []byte, res insightResult) []byte {
	text, err := result.FormatResults(res.plan, res.Answer)
	if err != nil { // our own results cannot be read
		rq.rt.logger.Error("writing results as text", zap.String("request", rq.RequestID), zap.Error(err))
	}
	dst = jsontext.Append(append(dst, `,"result":`...), text)
	return rq.results().AppendFreshness(dst, res.plan, res.Answer)
}

// appendNoResult appends the same members for an insight whose result is not there.
func (rq *request) appendNoResult(dst []byte, res insightResult) []byte {
	dst = append(result.AppendHasMore(append(dst, `,"result":null`...), nil), `,"columns":null,"types":null,"hogql":null,"resolved_date_range":null,"is_cached":false,"last_refresh":`...)
	if res.failure == errConcurrency {
		dst = jsontext.AppendTime(dst, rq.Start) // as the peer has it: the time of the try
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"next_allowed_client_refresh":null,"cache_target_age":null,"timezone":`...)
	return jsontext.Append(dst, rq.Project.Timezone)
}

// appendFailure appends the query_status of an insight whose query failed.
func (rq *request) appendFailure(dst []byte, s shownInsight, res insightResult) []byte {
	failed := execution.Run{
		ID: res.plan.ClientID, Query: res.plan.Query, Shows: res.plan, From: execution.Origin{Insight: &s.ID}, Start: rq.Start, Picked: new(atomic.Int64),
		Failure: api.Invalid("", "error", "%s", res.failure),
	}
	failed.End = rq.Start
	return rq.results().AppendStatus(dst, &failed, true, nil)
}
