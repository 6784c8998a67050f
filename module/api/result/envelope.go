package result

import (
	"bytes"
	"cmp"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Writer writes what answers contain besides rows.
type Writer struct {
	Project   *registry.Project
	Runs      *execution.Runs
	Run       *execution.Run // the background run in progress that the answer reports; nil for none
	Inspected Inspection
}

// Extras are what a query asks to see besides its rows, by its modifiers and by explain: contract api.md, sections 1.5, 2.10 and 3.
type Extras struct {
	Modifiers json.RawMessage // as given; nil for none
	Timings   bool            // how long each part took
	Explain   bool            // how ClickHouse computes the rows
	Debug     bool            // Explain, HogQLMetadata, and a mistake as a member of the answer
}

// ReadShown reads what a valid query asks to see. In wrapper nodes, that is in their source.
func ReadShown(raw json.RawMessage) Extras {
	var node struct {
		Kind      string          `json:"kind"`
		Source    json.RawMessage `json:"source"`
		Modifiers json.RawMessage `json:"modifiers"`
		Explain   any             `json:"explain"`
	}
	if json.Unmarshal(raw, &node) != nil {
		return Extras{}
	}
	if query.Wraps(node.Kind) {
		return ReadShown(node.Source)
	}
	s := Extras{Explain: node.Explain == true}
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
	s.Modifiers, s.Timings, s.Debug = compact.Bytes(), modifiers.Timings == true, modifiers.Debug == true
	s.Explain = s.Explain || s.Debug
	return s
}

// Variant distinguishes pages of the same result that show different extras.
func (s *Extras) Variant() string {
	if s.Modifiers == nil {
		return ""
	}
	return " modifiers=" + string(s.Modifiers)
}

// Inspection is what was found out for a request that asks for explain or debug; zero for others.
type Inspection struct {
	Explain  []string
	Metadata *compiler.Metadata
}

// AppendHasMore appends the member hasMore: whether there are more rows than those shown; nil is null.
func AppendHasMore(dst []byte, more *bool) []byte {
	dst = append(dst, `,"hasMore":`...)
	if more == nil {
		return append(dst, "null"...)
	}
	return jsontext.AppendBool(dst, *more)
}

// AppendWindow appends the members hasMore, limit and offset, which say which of the rows are shown. Each may be null.
func AppendWindow(dst []byte, more *bool, limit, offset *int) []byte {
	dst = jsontext.Append(append(AppendHasMore(dst, more), `,"limit":`...), limit)
	return jsontext.Append(append(dst, `,"offset":`...), offset)
}

// RenderInsight writes the first members of an insight's answer.
func RenderInsight(dst []byte, done *execution.Details, more *bool) []byte {
	dst = append(dst, `{"results":`...)
	dst = append(dst, done.Insight.Results...)
	if more != nil {
		dst = AppendHasMore(dst, more)
	}
	if done.Insight.Head != nil {
		dst = append(append(dst, ','), done.Insight.Head...)
	}
	dst = append(dst, done.Insight.More...)
	return append(dst, done.Insight.Error...)
}

// AppendFreshness appends when the rows were computed and how long they are valid.
func (s *Writer) AppendFreshness(dst []byte, p *Plan, got cache.Answer) []byte {
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
	target := at.Add(p.Fresh)
	if end := p.endOfTable(got.Entry); !end.IsZero() && end.Before(target) {
		target = end
	}
	dst = jsontext.AppendTime(dst, target)
	dst = append(dst, `,"timezone":`...)
	return jsontext.Append(dst, cmp.Or(done.Zone, s.Project.Timezone)) // a server of an older version sends none
}

// AppendDebug appends the members that show how an answer was computed.
func (s *Writer) AppendDebug(dst []byte, p *Plan, done *execution.Details) []byte {
	dst = append(dst, `,"hogql":`...)
	dst = jsontext.Append(dst, done.HogQL)
	dst = append(dst, `,"clickhouse":`...)
	dst = jsontext.Append(dst, done.SQL)
	dst = append(dst, `,"cache_key":"`...)
	dst = append(dst, p.Key.String()...)
	dst = append(dst, '"')
	dst = s.AppendShown(dst, p, done)
	dst = append(dst, `,"calculation_trigger":null`...)
	if done.Insight != nil {
		return append(dst, done.Insight.Dates...)
	}
	return append(dst, `,"resolved_date_range":null`...)
}

// RenderQuery writes the body of an answer of the query route: contract api.md, section 1.5.
func (s *Writer) RenderQuery(dst []byte, p *Plan, got cache.Answer) []byte {
	done, _ := got.Entry.Meta.(*execution.Details)
	if done.Insight != nil {
		dst = RenderInsight(dst, done, done.Insight.HasMore)
		dst = s.AppendFreshness(dst, p, got)
		dst = append(dst, `,"query_metadata":null`...)
		dst = s.AppendRunning(append(dst, ','))
		return append(s.AppendDebug(dst, p, done), '}')
	}
	result := got.Entry.Result
	dst = append(dst, `{"results":`...)
	dst = result.AppendRows(dst, 0, -1)
	dst = append(dst, ',')
	dst = append(dst, done.Head...)
	if done.OwnLimit {
		dst = AppendWindow(dst, nil, nil, nil)
	} else {
		more := result.More()
		dst = AppendWindow(dst, &more, &done.Limit, &done.Offset)
	}
	if done.Missing != nil {
		dst = jsontext.AppendInt(append(dst, `,"missing_actors_count":`...), *done.Missing)
	}
	dst = s.AppendFreshness(dst, p, got)
	dst = append(dst, `,"query":null,"metadata":`...)
	if s.Inspected.Metadata == nil {
		dst = append(dst, "null"...)
	} else {
		dst = jsontext.Append(dst, s.Inspected.Metadata)
	}
	dst = append(dst, `,"query_metadata":null,"error":null`...)
	dst = s.AppendRunning(append(dst, ','))
	dst = s.AppendDebug(dst, p, done)
	return append(dst, '}')
}

// AppendShown appends what the query asks to see besides its rows.
func (s *Writer) AppendShown(dst []byte, p *Plan, done *execution.Details) []byte {
	dst = append(dst, `,"explain":`...)
	if s.Inspected.Explain == nil {
		dst = append(dst, "null"...)
	} else {
		dst = jsontext.Append(dst, s.Inspected.Explain)
	}
	dst = append(dst, `,"modifiers":`...)
	if p.Shows.Modifiers == nil {
		dst = append(dst, "null"...)
	} else {
		dst = append(dst, p.Shows.Modifiers...)
	}
	dst = append(dst, `,"timings":`...)
	if !p.Shows.Timings || done.ExecutionID == uuid.Nil {
		return append(dst, "null"...)
	}
	return jsontext.Append(dst, []timing{
		{"./compile", done.Compile.Seconds()}, {"./clickhouse", done.Stats.Elapsed.Seconds()}, {".", (done.Compile + done.Stats.Elapsed).Seconds()},
	})
}

// timing is how long a part of a computation took, in seconds: "." is the whole, "./compile" a part.
type timing struct {
	Part    string  `json:"k"`
	Seconds float64 `json:"t"`
}

// AppendStatus appends a query_status. Its results are the answer of a run that has ended, or null for one in progress.
func (s *Writer) AppendStatus(dst []byte, r *execution.Run, ended bool, read *execution.Progress) []byte {
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
		dst = s.RenderQuery(dst, r.Shows.(*Plan), r.Answer)
	} else {
		dst = append(dst, "null"...)
	}
	moment("start_time", r.Start)
	moment("pickup_time", s.Runs.PickedUp(r, ended))
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

// AppendRunning appends the member query_status of an answer: the background run that computes a newer result, or null.
func (s *Writer) AppendRunning(dst []byte) []byte {
	dst = append(dst, `"query_status":`...)
	if s.Run == nil {
		return append(dst, "null"...)
	}
	return s.AppendStatus(dst, s.Run, false, nil)
}
