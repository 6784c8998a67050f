// Package funnels builds and shapes FunnelsQuery (contract: funnels.md).
//
// One scan turns the events of each actor into a sorted array of integers. The matching goes over these arrays, one pass for each step. So
// its cost is linear in events and steps, and only the events of steps and exclusions are kept:
//
//	scan ─▶ journeys: an actor and its items ─▶ ties ─▶ runs: by value or period ─▶ slots ─▶ outcome ─▶ steps, trends, times
//	        (journeys.go, marks.go)            (ties.go)   (runs.go)              (slots.go, unordered.go)
package funnels

import (
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// builder is the state of one Build.
type builder struct {
	q     *Query
	w     *insight.World
	dates insight.Range
	marks marks
	// where is the condition on all events, besides being one of a step.
	where hogql.Expr
	actor hogql.Expr
	// text reports whether actors are texts: the values of an expression, instead of people or groups.
	text bool
	// sources are the steps, and after them the exclusions.
	sources []source
	// apart reports whether an event is of one source at most, because the sources have different names.
	apart bool
	// value is the breakdown value of an event; nil without a breakdown.
	value *value
}

// source is a step or an exclusion: the condition for its events, and the bits that mark them.
type source struct {
	condition hogql.Expr // nil for all events
	names     []string   // names of its events; nil for any
	mask      int64
}

// Build returns the query of a funnel. Its errors are mistakes of the author: *diag.Error.
func Build(q *Query, w *insight.World) (*insight.Built, error) {
	b, err := newBuilder(q, w)
	if err != nil {
		return nil, err
	}
	switch q.Viz {
	case VizTrends:
		return b.trends()
	case VizTimeToConvert:
		return b.timeToConvert()
	case VizSteps, VizFlow:
	}
	return b.steps()
}

func newBuilder(q *Query, w *insight.World) (*builder, error) {
	if err := check(q); err != nil {
		return nil, err
	}
	b := &builder{q: q, w: w}
	resolve := insight.ResolveUncut
	if q.Viz == VizTrends {
		resolve = insight.Resolve
	}
	var err error
	if b.dates, err = resolve(w, &q.Common, q.Interval); err != nil {
		return nil, err
	}
	b.dates.Lower = b.dates.From // a funnel begins at the time of date_from (contract: funnels.md, section 2), even if its day or hour began before
	b.guard()
	if err := b.conditions(); err != nil {
		return nil, err
	}
	if err := b.actors(); err != nil {
		return nil, err
	}
	if q.Breakdowns != nil && q.Viz != VizTimeToConvert { // it has no effect on times (contract: funnels.md, section 12)
		if b.value, err = b.breakdown(); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// guard assigns the bits of items. Moves that are guarded by the same exclusions share a bit.
func (b *builder) guard() {
	n := len(b.q.Series)
	b.marks = marks{steps: n, guard: make([]int64, n+2), window: b.q.Window.Duration().Microseconds()}
	bitOf := map[int]int64{} // by the set of exclusions
	for k := 2; k <= n; k++ {
		who := 0
		for i, e := range b.q.Exclusions {
			if e.From+2 <= k && k <= e.To+1 {
				who |= 1 << i
			}
		}
		if who == 0 {
			continue
		}
		if bitOf[who] == 0 {
			bitOf[who] = 1 << (n + b.marks.guards)
			b.marks.guards++
		}
		b.marks.guard[k] = bitOf[who]
	}
	b.marks.shift = b.marks.window + 2 - b.dates.Lower.UnixMicro()
	b.marks.fit(b.dates.To.UnixMicro() - b.dates.Lower.UnixMicro())
}

func (b *builder) conditions() error {
	common, err := b.w.Conditions(&b.q.Common)
	if err != nil {
		return err
	}
	for i := range b.q.Series {
		s := source{mask: b.marks.step(i + 1), names: b.names(&b.q.Series[i])}
		if s.condition, err = b.step(&b.q.Series[i]); err != nil {
			return err
		}
		b.sources = append(b.sources, s)
	}
	for i := range b.q.Exclusions {
		e := &b.q.Exclusions[i]
		s := source{names: b.names(&e.Series)}
		if s.condition, err = b.w.Series(&e.Series); err != nil {
			return err
		}
		for k := e.From + 2; k <= e.To+1; k++ {
			s.mask |= b.marks.guard[k]
		}
		b.sources = append(b.sources, s)
	}
	b.apart = !slices.ContainsFunc(b.sources, func(s source) bool { return s.names == nil })
	seen := map[string]bool{}
	for _, s := range b.sources {
		for _, name := range s.names {
			b.apart = b.apart && !seen[name]
		}
		for _, name := range s.names {
			seen[name] = true
		}
	}
	b.where = insight.And(b.dates.Bounds(), common)
	if sampling := b.q.Sampling; sampling != nil && *sampling == 0 {
		b.where = insight.And(b.where, insight.Const(false)) // the sample is empty
	}
	return nil
}

// names returns the event names of a series; nil for any name.
func (b *builder) names(s *query.Series) []string {
	switch s.Kind {
	case query.EventsNode:
		if s.Event == nil {
			return nil
		}
		return []string{*s.Event}
	case query.ActionsNode:
		if a := b.w.Actions.Get(s.Action); a != nil {
			return a.Events()
		}
		return nil
	case query.GroupNode:
	}
	var out []string
	for i := range s.Members {
		of := b.names(&s.Members[i])
		if of == nil {
			return nil
		}
		out = append(out, of...)
	}
	return out
}

// actors sets what is counted: groups take precedence over the expression (contract: funnels.md, section 2).
func (b *builder) actors() error {
	own := strings.TrimSpace(b.q.AggregateBy)
	if b.q.Group != nil || own == "" || own == "person_id" {
		var named hogql.Expr
		b.actor, named = insight.Actor(b.q.Group)
		b.where = insight.And(b.where, named)
		return nil
	}
	attr := b.q.Field("funnelsFilter.funnelAggregateByHogQL")
	e, mistake := filter.UserValue(own, b.w.Spend)
	if mistake != nil {
		return diag.Field(mistake.Code, attr, "The HogQL expression of the actors %s", mistake.Detail)
	}
	if err := b.w.Known(e, attr); err != nil {
		return err
	}
	b.text = true
	b.actor = expr("ifNull(toString({own}), '')", values{"own": e})
	b.where = insight.And(b.where, expr("notEmpty({actor})", values{"actor": b.actor}))
	return nil
}

// earliest returns a column with the earliest event of any source, in seconds since 1970, if the range begins with it; otherwise none.
func (b *builder) earliest() []hogql.Expr {
	if !b.dates.All {
		return nil
	}
	first := insight.Template("SELECT toUnixTimestamp(min(timestamp)) FROM {events} WHERE {condition}", values{
		"events": insight.Events(&b.q.Common), "condition": insight.And(b.where, b.anySource()),
	})
	return []hogql.Expr{insight.As(&hogql.Subquery{Query: first}, "earliest")}
}

// Actor returns the expression for what is counted on an event: a person, the key of a group, or a text. The error is a *diag.Error.
func Actor(q *Query, w *insight.World) (hogql.Expr, error) {
	b := &builder{q: q, w: w}
	if err := b.actors(); err != nil {
		return nil, err
	}
	return b.actor, nil
}

// optional reports whether a step (from 1) may be skipped.
func (b *builder) optional(k int) bool { return b.q.Series[k-1].Optional }

// free reports whether any step may be skipped.
func (b *builder) free() bool {
	return slices.ContainsFunc(b.q.Series, func(s query.Series) bool { return s.Optional })
}

// required returns the last step before k (from 1) that may not be skipped; 0 for none.
func (b *builder) required(k int) int {
	for k--; k > 0 && b.optional(k); k-- {
	}
	return k
}

// strict reports whether no other event may come between two steps.
func (b *builder) strict() bool { return b.q.Order == Strict }
