package alerts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/trends"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// askTimeout is how long a check waits for its turn and its answer.
const askTimeout = 15 * time.Minute

// ask gets the numbers that a rule compares. A stored answer is used if it is at most half the time between checks old, and was computed in the
// current interval.
func (c *Checker) ask(ctx context.Context, snap *registry.Snapshot, a *registry.Alert, r *Rule, now time.Time) ([]Series, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	db, err := c.Executor.Database(ctx, snap.Schema(a.Project))
	if err != nil {
		return nil, err
	}
	node, span, err := r.narrowed(&insight.World{Database: db, Now: now})
	if err != nil {
		return nil, err
	}
	project := snap.Project(a.Project)
	q := &execution.Query{
		Node: node, Text: node.Text(), Rows: compiler.QueryRoute,
		Key: cache.KeyParts{
			Project: a.Project, Query: string(node.Canonical()), Zone: project.Timezone, Extra: c.Executor.Mark(snap, a.Project, node),
		}.Key(),
	}
	fresh := c.Executor.FreshnessOf(node, execution.RefreshBlocking)
	fresh.Fresh = min(fresh.Fresh, cadence(a.Interval)/2)
	if !r.Query.Display.Total() {
		fresh.Fresh = min(fresh.Fresh, now.Sub(current(&span, now)))
	}
	caller := &execution.Caller{Project: project, Snapshot: snap, Start: now}
	got, err := c.Executor.InBackground(ctx, caller, q, &fresh)
	switch {
	case err != nil:
		return nil, err
	case got.Failure != nil: // and the answer is an older one
		return nil, got.Failure
	}
	done, ok := got.Entry.Meta.(*execution.Details)
	if !ok || done.Insight == nil {
		return nil, errors.New("the answer is not that of an insight")
	}
	return r.series(done.Insight.Results, runs(&span, now))
}

// narrowed returns the query limited to the intervals that the rule compares, and its range. Running sums start where the insight's do, so a query for
// them keeps its range, as far as that is not in the future. A query for the total of a range stays as it is, and its range is not returned.
func (r *Rule) narrowed(w *insight.World) (*trends.Query, insight.Range, error) {
	node := *r.Query
	node.Compare = nil
	if node.Display.Total() {
		return &node, insight.Range{}, nil
	}
	if node.Display == trends.Slope { // which lacks the intervals in between
		node.Display = trends.Line
	}
	if node.Display != trends.CumulativeLine {
		node.DateRange = query.DateRange{From: r.lookback(), DaysOfWeek: node.DateRange.DaysOfWeek}
	}
	span, err := insight.Resolve(w, &node.Common, node.Interval)
	if err != nil || span.To.Before(span.Next(current(&span, w.Now))) {
		return &node, span, err
	}
	node.DateRange.To = ""
	span, err = insight.Resolve(w, &node.Common, node.Interval)
	return &node, span, err
}

// current returns the start of the interval that is in progress, in the time zone of the range.
func current(span *insight.Range, now time.Time) time.Time {
	return span.Floor(now.In(span.To.Location()))
}

// runs reports whether the last interval of a range is still in progress. It is not if the range excludes the current interval.
func runs(span *insight.Range, now time.Time) bool {
	rest := *span // a long range has very many intervals
	if start := current(span, now); rest.From.Before(start) {
		rest.From = start
	}
	return len(rest.Buckets()) > 0
}

// series extracts what the rule compares from the results of its query.
func (r *Rule) series(results []byte, running bool) ([]Series, error) {
	var items []struct {
		Data  []*float64 `json:"data"`
		Days  []string   `json:"days"`
		Total *float64   `json:"aggregated_value"`
		Label string     `json:"label"`
		Order int        `json:"order"`
	}
	if err := json.Unmarshal(results, &items); err != nil {
		return nil, fmt.Errorf("reading the results of an insight: %w", err)
	}
	if len(items) == 0 {
		return []Series{{Label: "empty result", Current: new(float64), Before: new(float64), Empty: true}}, nil
	}
	back := 1 // counted from the end
	if running && !r.Current() {
		back = 2
	}
	back += r.Delay
	at := func(data []*float64, back int) *float64 {
		if back > len(data) {
			return nil
		}
		return data[len(data)-back]
	}
	var out []Series
	for _, item := range items {
		switch {
		case item.Order != r.Series:
		case r.Query.Display.Total():
			out = append(out, Series{Label: item.Label, Current: item.Total})
		default:
			one := Series{Label: item.Label, Current: at(item.Data, back), Before: at(item.Data, back+1)}
			if n := len(item.Days); back <= n {
				one.Day = item.Days[n-back]
			}
			out = append(out, one)
		}
	}
	return out, nil
}
