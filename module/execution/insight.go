package execution

import (
	"bytes"
	"errors"
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
)

// insightAnswer is the answer of an insight, built once from its rows and kept in their place.
type insightAnswer struct {
	Results     []byte // JSON
	Head        []byte // the members columns and types; nil for results that are not rows
	More        []byte // further members, each preceded by a comma
	HasMore     *bool  // nil for kinds whose answers are never truncated
	Error       []byte // the member error: contract api.md, section 1.5
	Dates       []byte // resolved_date_range and related members
	nextRefresh time.Duration
	until       time.Time // after which it no longer changes; zero when it has no range
	reversed    bool      // its range ends before it begins
}

func (a *insightAnswer) size() int {
	if a == nil {
		return 0
	}
	return len(a.Results) + len(a.Head) + len(a.More) + len(a.Error) + len(a.Dates)
}

// shape builds the answer of an insight from its rows.
func (x *Computation) shape(compiled *compiler.Compiled, rows *cache.Result) (*insightAnswer, error) {
	answer, err := compiled.Shape(rows.Rows())
	if errors.Is(err, insight.ErrTooLarge) || err == nil && len(answer.Results) > MaxResultBytes {
		return nil, cache.ErrTooLarge
	}
	if err != nil {
		return nil, err
	}
	out := &insightAnswer{Results: answer.Results, HasMore: answer.HasMore, nextRefresh: refreshAfter(x.query.Node, answer), Error: []byte(`,"error":null`)}
	switch {
	case answer.Error != "":
		out.Error = jsontext.Append([]byte(`,"error":`), answer.Error)
	case answer.More == nil && compiler.KindOf(x.query.Node).EmptyError:
		out.Error = []byte(`,"error":""`)
	}
	if answer.Columns != nil {
		out.Head = jsontext.Append(append(out.Head, `"columns":`...), answer.Columns)
		out.Head = jsontext.Append(append(out.Head, `,"types":`...), answer.Types)
	}
	if members := bytes.TrimSuffix(bytes.TrimPrefix(answer.More, []byte("{")), []byte("}")); len(members) > 0 {
		out.More = append([]byte(","), members...)
	}
	out.Dates = appendRange(append(out.Dates, `,"resolved_date_range":`...), answer.Range)
	if answer.Range != nil {
		out.until = answer.Range.To
		if !answer.Until.IsZero() {
			out.until = answer.Until
		}
		out.reversed = answer.Range.To.Before(answer.Range.From)
	}
	if answer.Previous != nil {
		out.Dates = appendRange(append(out.Dates, `,"resolved_compare_date_range":`...), answer.Previous)
	}
	return out, nil
}

func appendRange(dst []byte, r *insight.Span) []byte {
	if r == nil {
		return append(dst, "null"...)
	}
	const form = "2006-01-02T15:04:05.999999Z07:00"
	return jsontext.Append(dst, map[string]string{"date_from": r.From.Format(form), "date_to": r.To.Format(form)})
}

// refreshAfter returns how long after a run a client should leave the refresh button alone: contract api.md, section 1.3.
func refreshAfter(node query.Node, answer *insight.Answer) time.Duration {
	short := answer.Range != nil && answer.Range.To.Sub(answer.Range.From) <= 7*24*time.Hour
	if query.IntervalOf(node) == query.Hour || short {
		return 3 * time.Minute
	}
	return 15 * time.Minute
}

// clientRefresh is how long clients should leave the refresh button alone after a run of any other query: contract api.md, section 1.3.
const clientRefresh = time.Minute

// NextRefresh returns how long after a run a client should leave the refresh button alone, for any kind of query.
func (d *Details) NextRefresh() time.Duration {
	if d.Insight != nil {
		return d.Insight.nextRefresh
	}
	return clientRefresh
}
