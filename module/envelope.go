package module

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// shower writes what answers hold beside their rows.
type shower struct {
	project   *registry.Project
	runs      *execution.Runs
	run       *execution.Run // the background run in progress that the answer has to tell of; nil for none
	inspected inspection
}

// shown is what a query asks to see beside its rows, by its modifiers and by explain: contract sections 1.5, 2.10 and 3.
type shown struct {
	modifiers json.RawMessage // as they were given; nil for none
	timings   bool            // how long each part took
	explain   bool            // what ClickHouse does to get the rows
	debug     bool            // that, what HogQLMetadata says, and a mistake as a member of the answer
}

// readShown reads what a valid query asks to see. Wrapper nodes have it in their source.
func readShown(raw json.RawMessage) shown {
	var node struct {
		Kind      string          `json:"kind"`
		Source    json.RawMessage `json:"source"`
		Modifiers json.RawMessage `json:"modifiers"`
		Explain   any             `json:"explain"`
	}
	if json.Unmarshal(raw, &node) != nil {
		return shown{}
	}
	switch node.Kind {
	case "InsightVizNode", "DataVisualizationNode", "DataTableNode":
		return readShown(node.Source)
	}
	s := shown{explain: node.Explain == true}
	if len(node.Modifiers) == 0 || api.IsNull(node.Modifiers) {
		return s
	}
	var modifiers struct {
		Debug   any `json:"debug"`
		Timings any `json:"timings"`
	}
	var compact bytes.Buffer
	if json.Unmarshal(node.Modifiers, &modifiers) != nil || json.Compact(&compact, node.Modifiers) != nil {
		return s
	}
	s.modifiers, s.timings, s.debug = compact.Bytes(), modifiers.Timings == true, modifiers.Debug == true
	s.explain = s.explain || s.debug
	return s
}

// variant tells apart the pages of one result that show different things.
func (s *shown) variant() string {
	if s.modifiers == nil {
		return ""
	}
	return " modifiers=" + string(s.modifiers)
}

// inspection is what was found out for one request that asks for explain or debug; zero for others.
type inspection struct {
	explain  []string
	metadata *compiler.Metadata
}

// appendHasMore appends the member hasMore: whether there are more rows than those that are shown; nil is null.
func appendHasMore(dst []byte, more *bool) []byte {
	dst = append(dst, `,"hasMore":`...)
	if more == nil {
		return append(dst, "null"...)
	}
	return jsontext.AppendBool(dst, *more)
}

// appendWindow appends which of the rows are shown: the members hasMore, limit and offset. Each may be null.
func appendWindow(dst []byte, more *bool, limit, offset *int) []byte {
	dst = jsontext.Append(append(appendHasMore(dst, more), `,"limit":`...), limit)
	return jsontext.Append(append(dst, `,"offset":`...), offset)
}

// renderInsight writes the members that an answer of an insight begins with.
func renderInsight(dst []byte, done *execution.Details, more *bool) []byte {
	dst = append(dst, `{"results":`...)
	dst = append(dst, done.Insight.Results...)
	if more != nil {
		dst = appendHasMore(dst, more)
	}
	return append(dst, done.Insight.NoError...)
}

// appendFreshness appends when the rows were computed and how long they hold.
func (s *shower) appendFreshness(dst []byte, p *plan, got cache.Answer) []byte {
	at := got.Entry.ComputedAt
	done, _ := got.Entry.Meta.(*execution.Details)
	if done.Warnings != nil {
		dst = append(dst, `,"warnings":`...)
		dst = append(dst, done.Warnings...)
	}
	dst = append(dst, `,"is_cached":`...)
	dst = jsontext.AppendBool(dst, got.Status.Cached())
	dst = append(dst, `,"last_refresh":`...)
	dst = jsontext.AppendTime(dst, at)
	dst = append(dst, `,"next_allowed_client_refresh":`...)
	dst = jsontext.AppendTime(dst, at.Add(done.NextRefresh()))
	dst = append(dst, `,"cache_target_age":`...)
	dst = jsontext.AppendTime(dst, at.Add(p.Fresh))
	dst = append(dst, `,"timezone":`...)
	return jsontext.Append(dst, s.project.Timezone)
}

// appendDebug appends the fields that tell how an answer came about.
func (s *shower) appendDebug(dst []byte, p *plan, done *execution.Details) []byte {
	dst = append(dst, `,"hogql":`...)
	dst = jsontext.Append(dst, done.HogQL)
	dst = append(dst, `,"clickhouse":`...)
	dst = jsontext.Append(dst, done.SQL)
	dst = append(dst, `,"cache_key":"`...)
	dst = append(dst, p.Key.String()...)
	dst = append(dst, '"')
	dst = s.appendShown(dst, p, done)
	dst = append(dst, `,"calculation_trigger":null`...)
	if done.Insight != nil {
		return append(dst, done.Insight.Dates...)
	}
	return append(dst, `,"resolved_date_range":null`...)
}

// renderQuery writes the body of an answer of the query route: contract section 1.5.
func (s *shower) renderQuery(dst []byte, p *plan, got cache.Answer) []byte {
	done, _ := got.Entry.Meta.(*execution.Details)
	if done.Insight != nil {
		dst = renderInsight(dst, done, done.Insight.HasMore)
		dst = s.appendFreshness(dst, p, got)
		dst = append(dst, `,"query_metadata":null`...)
		dst = s.appendRunning(append(dst, ','))
		return append(s.appendDebug(dst, p, done), '}')
	}
	result := got.Entry.Result
	dst = append(dst, `{"results":`...)
	dst = result.AppendRows(dst, 0, -1)
	dst = append(dst, ',')
	dst = append(dst, done.Head...)
	if done.OwnLimit {
		dst = appendWindow(dst, nil, nil, nil)
	} else {
		more := result.More()
		dst = appendWindow(dst, &more, &done.Limit, &done.Offset)
	}
	if done.Missing != nil {
		dst = jsontext.AppendInt(append(dst, `,"missing_actors_count":`...), *done.Missing)
	}
	dst = s.appendFreshness(dst, p, got)
	dst = append(dst, `,"query":null,"metadata":`...)
	if s.inspected.metadata == nil {
		dst = append(dst, "null"...)
	} else {
		dst = jsontext.Append(dst, s.inspected.metadata)
	}
	dst = append(dst, `,"query_metadata":null,"error":null`...)
	dst = s.appendRunning(append(dst, ','))
	dst = s.appendDebug(dst, p, done)
	return append(dst, '}')
}

// appendShown appends what the query asks to see beside its rows.
func (s *shower) appendShown(dst []byte, p *plan, done *execution.Details) []byte {
	dst = append(dst, `,"explain":`...)
	if s.inspected.explain == nil {
		dst = append(dst, "null"...)
	} else {
		dst = jsontext.Append(dst, s.inspected.explain)
	}
	dst = append(dst, `,"modifiers":`...)
	if p.shows.modifiers == nil {
		dst = append(dst, "null"...)
	} else {
		dst = append(dst, p.shows.modifiers...)
	}
	dst = append(dst, `,"timings":`...)
	if !p.shows.timings || done.ExecutionID == uuid.Nil {
		return append(dst, "null"...)
	}
	return jsontext.Append(dst, []timing{
		{"./compile", done.Compile.Seconds()}, {"./clickhouse", done.Stats.Elapsed.Seconds()}, {".", (done.Compile + done.Stats.Elapsed).Seconds()},
	})
}

// timing is how long a part of a computation took, in seconds: "." is the whole, "./compile" a part of it.
type timing struct {
	Part    string  `json:"k"`
	Seconds float64 `json:"t"`
}

// appendStatus appends a query_status. The answer of a run that has ended stands in its results; one in progress has none.
func (s *shower) appendStatus(dst []byte, r *execution.Run, ended bool, read *execution.Progress) []byte {
	moment := func(name string, at time.Time) {
		dst = append(dst, `,"`...)
		dst = append(dst, name...)
		dst = append(dst, `":`...)
		if at.IsZero() {
			dst = append(dst, "null"...)
			return
		}
		dst = jsontext.AppendTime(dst, at)
	}
	failed := ended && r.Failure != nil
	dst = jsontext.Append(append(dst, `{"id":`...), r.ID)
	dst = append(dst, `,"query_async":true,"team_id":`...)
	dst = jsontext.AppendInt(dst, int(r.Project()))
	dst = jsontext.Append(append(dst, `,"insight_id":`...), r.From.Insight)
	dst = jsontext.Append(append(dst, `,"dashboard_id":`...), r.From.Dashboard)
	dst = jsontext.AppendBool(append(dst, `,"complete":`...), ended)
	dst = jsontext.AppendBool(append(dst, `,"error":`...), failed)
	var failure *api.Error
	if failed {
		failure = api.ErrorOf(r.Failure)
	}
	if failed && failure.Exposable() {
		dst = jsontext.Append(append(dst, `,"error_message":`...), failure.Detail)
		dst = jsontext.Append(append(dst, `,"error_code":`...), failure.Code)
	} else {
		dst = append(dst, `,"error_message":null,"error_code":null`...)
	}
	dst = append(dst, `,"results":`...)
	if ended && !failed {
		dst = s.renderQuery(dst, r.Shows.(*plan), r.Answer)
	} else {
		dst = append(dst, "null"...)
	}
	moment("start_time", r.Start)
	moment("pickup_time", s.runs.PickedUp(r, ended))
	if ended {
		moment("end_time", r.End)
		moment("expiration_time", r.End.Add(execution.RunKept))
	} else {
		dst = append(dst, `,"end_time":null,"expiration_time":null`...)
	}
	dst = jsontext.Append(append(dst, `,"task_id":null,"query_progress":`...), read)
	dst = append(dst, `,"labels":null,"cache_key":"`...)
	dst = append(dst, r.Query.Key.String()...)
	return append(dst, `","bytes_read":null,"budget_remaining_bytes":null,"query_scan":null}`...)
}

// appendRunning appends the member query_status of an answer: the background run that computes a newer one, or null.
func (s *shower) appendRunning(dst []byte) []byte {
	dst = append(dst, `"query_status":`...)
	if s.run == nil {
		return append(dst, "null"...)
	}
	return s.appendStatus(dst, s.run, false, nil)
}
