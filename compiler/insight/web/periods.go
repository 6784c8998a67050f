package web

import (
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// Periods are the time that a query covers, and the time that it is compared with.
type Periods struct {
	Current insight.Span
	// Previous is the earlier span; nil without a comparison.
	Previous *insight.Span

	dates insight.Range
}

// PeriodsOf reads the periods of a query. The error is a *diag.Error that names the field.
func PeriodsOf(q *Query, w *insight.World) (Periods, error) {
	common := q.Common
	common.DateRange.DaysOfWeek = nil // contract: api.md, section 2.1
	dates, err := insight.ResolveUncut(w, &common, q.Interval)
	if err != nil {
		return Periods{}, err
	}
	p := Periods{Current: dates.Span, dates: dates}
	if q.Compare == nil {
		return p, nil
	}
	if dates.All { // there is nothing before all time
		nothing := insight.FirstTime.Add(-time.Second)
		p.Previous = &insight.Span{From: nothing, To: nothing}
		return p, nil
	}
	previous, err := dates.Previous(q.Compare)
	if err != nil {
		return Periods{}, err
	}
	p.Previous = &previous.Span
	return p, nil
}

// Since returns the current period with its true start, if it is all time. earliest is the time of the earliest event in seconds since
// 1970, nil for none. The error is a *diag.Error.
func (p *Periods) Since(earliest *float64) (insight.Span, error) {
	if !p.dates.All {
		return p.Current, nil
	}
	var at time.Time
	if earliest != nil {
		at = time.Unix(int64(*earliest), 0)
	}
	dates, err := p.dates.Since(at)
	return dates.Span, err
}

// Earliest returns the time of the project's first event in seconds since 1970 if the period is all time, null otherwise.
func (p *Periods) Earliest() hogql.Expr {
	if !p.dates.All {
		return insight.Const(nil)
	}
	const since = `(SELECT toUnixTimestamp(min(timestamp)) FROM events WHERE timestamp >= {first})`
	return insight.TemplateExpr(since, map[string]any{"first": insight.FirstTime})
}

// within returns the condition that a time is in a span.
func within(moment hogql.Expr, s insight.Span) hogql.Expr {
	return insight.And(
		insight.Compare(moment, hogql.GreaterOrEquals, insight.Const(s.From)),
		insight.Compare(moment, hogql.LessOrEquals, insight.Const(s.To)),
	)
}

// Either returns the condition that a time is in one of the periods.
func (p *Periods) Either(moment hogql.Expr) hogql.Expr {
	if p.Previous == nil {
		return within(moment, p.Current)
	}
	return insight.Or(within(moment, p.Current), within(moment, *p.Previous))
}

// Events is like Either, for the time of an event. It also has the outer bounds of the periods, since only these tell the resolver which
// events of a session to read.
func (p *Periods) Events() hogql.Expr {
	timestamp := insight.Field("timestamp")
	if p.Previous == nil {
		return within(timestamp, p.Current)
	}
	all := p.Current
	if p.Previous.From.Before(all.From) {
		all.From = p.Previous.From
	}
	if p.Previous.To.After(all.To) {
		all.To = p.Previous.To
	}
	return insight.And(within(timestamp, all), p.Either(timestamp))
}

// Now returns the condition that a session began in the current period. The start of the session is a column called started.
func (p *Periods) Now() hogql.Expr { return within(insight.Field("started"), p.Current) }

// Before is like Now, for the previous period; it returns false without a comparison.
func (p *Periods) Before() hogql.Expr {
	if p.Previous == nil {
		return insight.Const(false)
	}
	return within(insight.Field("started"), *p.Previous)
}
