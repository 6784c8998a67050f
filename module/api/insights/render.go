package insights

import (
	"cmp"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
)

// append appends an insight with its result. complete fills in the fields that the caller knows; it may be nil.
func (s *Results) append(dst []byte, c *api.Caller, i shownInsight, res insightResult, complete func(*insightHead)) []byte {
	full := fullOf(c, i.Insight)
	full.Alerts = s.Alerts(c, i.Insight)
	if res.query != nil {
		full.Query = res.query
	}
	full.Query = currentVariables(c, full.Query)
	if complete != nil {
		complete(&full.insightHead)
	}
	if i.tile != nil {
		full.insightOnDashboard = &insightOnDashboard{Color: i.tile.Color, Layouts: i.tile.Layouts}
	}
	dst = jsontext.Append(dst, full)
	dst = dst[:len(dst)-1] // the brace comes after the result
	switch {
	case res.Answer.Entry == nil:
		dst = appendNoResult(dst, c, res)
	case res.text:
		dst = s.appendText(dst, c, res)
	default:
		dst = s.appendResult(dst, c, res)
	}
	dst = append(dst, `,"query_status":`...)
	switch {
	case res.failure != "":
		dst = s.appendFailure(dst, c, i, res)
	case res.Run != nil:
		dst = s.writer(c).AppendStatus(dst, res.Run, false, nil)
	default:
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"filters_hash":`...)
	if res.plan == nil {
		return append(dst, "null}"...)
	}
	return append(jsontext.Append(dst, res.plan.Key.String()), '}')
}

// writer returns the writer of what the caller's answers contain besides rows.
func (s *Results) writer(c *api.Caller) *result.Writer {
	return &result.Writer{Project: c.Project, Runs: s.Executor.Runs}
}

// appendResult appends the members that come from the result of the query.
func (s *Results) appendResult(dst []byte, c *api.Caller, res insightResult) []byte {
	done, _ := res.Answer.Entry.Meta.(*execution.Details)
	if done.Insight != nil {
		dst = append(dst, `,"result":`...)
		dst = append(dst, done.Insight.Results...)
		dst = result.AppendHasMore(dst, done.Insight.HasMore)
		if done.Insight.Head == nil {
			dst = append(dst, `,"columns":null,"types":null`...)
		} else {
			dst = append(append(dst, ','), done.Insight.Head...)
		}
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
	dst = s.writer(c).AppendFreshness(dst, res.plan, res.Answer)
	return jsontext.Append(append(dst, `,"hogql":`...), done.HogQL)
}

// appendText appends the result as a text table.
func (s *Results) appendText(dst []byte, c *api.Caller, res insightResult) []byte {
	if res.table == nil {
		res.table = new(s.tableOf(c, res))
	}
	dst = jsontext.Append(append(dst, `,"result":`...), res.table)
	return s.writer(c).AppendFreshness(dst, res.plan, res.Answer)
}

// tableOf returns the result as a text table; empty if there is no result.
func (s *Results) tableOf(c *api.Caller, res insightResult) string {
	if res.Answer.Entry == nil {
		return ""
	}
	text, err := result.FormatResults(res.plan, res.Answer)
	if err != nil { // a bug: this server wrote the result
		s.Logger.Error("writing results as text", zap.String("request", c.RequestID), zap.Error(err))
	}
	return text
}

// appendNoResult appends the same members for an insight without a result.
func appendNoResult(dst []byte, c *api.Caller, res insightResult) []byte {
	dst = append(result.AppendHasMore(append(dst, `,"result":null`...), nil), `,"columns":null,"types":null,"hogql":null,"resolved_date_range":null,"is_cached":false,"last_refresh":`...)
	if res.failure == errConcurrency {
		dst = jsontext.AppendTime(dst, c.Start) // as in PostHog: the time of the attempt
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"next_allowed_client_refresh":null,"cache_target_age":null,"timezone":`...)
	return jsontext.Append(dst, c.Project.Timezone)
}

// appendFailure appends the query_status of an insight whose query failed.
func (s *Results) appendFailure(dst []byte, c *api.Caller, i shownInsight, res insightResult) []byte {
	failed := execution.Run{
		ID: res.plan.ClientID, Query: res.plan.Query, Shows: res.plan, From: i.origin(), Start: c.Start, Picked: new(atomic.Int64),
		Failure: cmp.Or(res.mistake, api.Invalid("", "error", "%s", res.failure)),
	}
	failed.End = c.Start
	return s.writer(c).AppendStatus(dst, &failed, true, nil)
}
