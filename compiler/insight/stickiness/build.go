// Package stickiness answers StickinessQuery: node ─▶ [build] ─▶ tree, and rows ─▶ [shape] ─▶ results (contract:
// stickiness.md).
package stickiness

import (
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// The queries that count actors by the number of intervals in which they were active. An actor is active in an interval with any event, or
// with enough events.
const (
	byCount     = `SELECT {item} AS item, intervals, count() AS actors FROM {active} GROUP BY intervals`
	byAny       = `SELECT {actor} AS actor, uniqExact({interval}) AS intervals FROM {events} WHERE {condition} GROUP BY actor`
	byThreshold = `SELECT actor, count() AS intervals FROM (
		SELECT {actor} AS actor, {interval} AS active, count() AS hits FROM {events} WHERE {condition}
		GROUP BY actor, active HAVING {enough}
	) GROUP BY actor`
	// since finds the earliest event of all series, in seconds since 1970.
	since = `SELECT {item} AS item, toUnixTimestamp(min(timestamp)) AS intervals, 0 AS actors FROM {events} WHERE {condition}`
)

// PostHog's codes for criteria, and for numbers of intervals in a block.
const (
	negativeCode  diag.Code = "stickiness_criteria_negative"
	zeroCode      diag.Code = "stickiness_criteria_zero_incompatible"
	noBlockCode   diag.Code = "stickiness_interval_count_non_positive"
	longBlockCode diag.Code = "stickiness_interval_count_too_large"
)

// maxTogether is the most intervals that a block may have.
const maxTogether = 365

// earliest marks the row of the earliest event, in place of an item's number.
const earliest = -1

// item is one series over one range of time.
type item struct {
	series *query.Series
	order  int // index of the series
	dates  insight.Range
	label  string // "current" or "previous"; empty without a comparison
}

// builder holds what the parts of one query share.
type builder struct {
	query   *Query
	world   *insight.World
	filters hogql.Expr      // the filters of the insight
	periods []insight.Range // the current one, and the one it is compared with
}

func newBuilder(q *Query, w *insight.World) (*builder, error) {
	if err := check(q); err != nil {
		return nil, err
	}
	b := &builder{query: q, world: w}
	var err error
	if b.filters, err = w.Conditions(&q.Common); err != nil {
		return nil, err
	}
	dates, err := insight.Resolve(w, &q.Common, q.Interval)
	if err != nil {
		return nil, err
	}
	b.periods = []insight.Range{dates}
	if q.Compare != nil && !dates.All { // there is nothing before all of time
		previous, err := dates.Previous(q.Compare)
		if err != nil {
			return nil, err
		}
		b.periods = append(b.periods, previous)
	}
	return b, nil
}

// check refuses what has the right form but makes no sense. Such a query can be saved.
func check(q *Query) error {
	if len(q.Series) == 0 {
		return diag.Field(insight.NoSeriesCode, q.Field("series"), "Stickiness insights require at least one series.")
	}
	if n := q.IntervalCount; n != nil && *n < 1 {
		return diag.Field(noBlockCode, q.Field("intervalCount"), "intervalCount must be a positive integer.")
	} else if n != nil && *n > maxTogether {
		return diag.Field(longBlockCode, q.Field("intervalCount"), "intervalCount cannot exceed %d.", maxTogether)
	}
	if c := q.Criteria; c != nil && c.Value < 0 {
		return diag.Field(negativeCode, q.Field("stickinessFilter.stickinessCriteria.value"), "Stickiness criteria value must be non-negative.")
	} else if c != nil && c.Value == 0 && c.Operator != AtLeast {
		return diag.Field(zeroCode, q.Field("stickinessFilter.stickinessCriteria.value"),
			"Stickiness criteria with operator exact or lte must use a value greater than 0.")
	}
	return nil
}

// Build returns the query of a stickiness, and what shapes its rows. It has no pieces of time: it counts actors by the number of their
// active intervals, which no interval alone can tell. The error is a *diag.Error.
func Build(q *Query, w *insight.World) (*insight.Built, error) {
	b, err := newBuilder(q, w)
	if err != nil {
		return nil, err
	}
	dates := b.periods[0]
	answer := shape{query: q, counted: w.Counted, dates: dates, items: make([]item, 0, 2*len(q.Series))}
	labels := []string{""}
	if len(b.periods) > 1 {
		answer.previous = &b.periods[1]
		labels = []string{"current", "previous"}
	}
	var members []hogql.Query
	for i := range q.Series {
		for period, label := range labels {
			it := item{series: &q.Series[i], order: i, dates: b.periods[period], label: label}
			member, err := b.item(&it, len(answer.items))
			if err != nil {
				return nil, err
			}
			members, answer.items = append(members, member), append(answer.items, it)
		}
	}
	if dates.All {
		first, err := b.since(answer.items)
		if err != nil {
			return nil, err
		}
		members = append(members, first)
	}
	return &insight.Built{Query: insight.Union(members...), Shape: answer.answer}, nil
}

// item builds the query of one item; its rows have the item's number.
func (b *builder) item(it *item, number int) (hogql.Query, error) {
	active, err := b.active(it)
	if err != nil {
		return nil, err
	}
	return insight.Template(byCount, map[string]any{"item": int64(number), "active": insight.From(active)}), nil
}

// active returns the actors of an item that were active at all, each with its number of intervals.
func (b *builder) active(it *item) (hogql.Query, error) {
	condition, err := b.condition(it.series)
	if err != nil {
		return nil, err
	}
	actor, named, err := b.actor(it.series)
	if err != nil {
		return nil, err
	}
	values := map[string]any{
		"actor": actor, "interval": b.interval(&it.dates), "events": b.events(it.series),
		"condition": insight.And(it.dates.BoundsFrom(b.lower(&it.dates)), condition, named),
	}
	criteria := b.query.Criteria
	if criteria == nil || criteria.Operator == AtLeast && criteria.Value <= 1 {
		return insight.Template(byAny, values), nil
	}
	values["enough"] = insight.Compare(insight.Field("hits"), operators[criteria.Operator], insight.Const(int64(criteria.Value)))
	return insight.Template(byThreshold, values), nil
}

// operators maps the operators of the API to comparisons.
var operators = map[CriteriaOperator]hogql.CompareOp{
	AtLeast: hogql.GreaterOrEquals, AtMost: hogql.LessOrEquals, Exactly: hogql.Equals,
}

// condition returns what events of a series must satisfy besides their time.
func (b *builder) condition(s *query.Series) (hogql.Expr, error) {
	own, err := b.world.Series(s)
	if err != nil {
		return nil, err
	}
	if sampling := b.query.Sampling; sampling != nil && *sampling == 0 {
		own = insight.And(own, insight.Const(false)) // the sample is empty
	}
	return insight.And(own, b.filters), nil
}

// events returns the table that a series reads. In an author's own expression, the table may be called e.
func (b *builder) events(s *query.Series) hogql.Table {
	table := insight.Events(&b.query.Common)
	if name, ok := table.(*hogql.TableName); ok && ofValues(s) {
		name.Alias = hogql.Name{Text: "e"}
	}
	return table
}

// ofValues reports whether a series counts the values of an expression.
func ofValues(s *query.Series) bool {
	return s.Math.Kind == "hogql" && strings.TrimSpace(s.Math.HogQL) != ""
}

// actor returns what a series counts: people, groups, or the values of an expression; named is the condition that an event has one. All
// other maths count people, and so do these without the type of groups or the expression.
func (b *builder) actor(s *query.Series) (actor, named hogql.Expr, err error) {
	switch {
	case s.Math.Kind == "unique_group":
		actor, named = insight.Actor(s.Math.Group)
		return actor, named, nil
	case ofValues(s):
		e, mistake := filter.UserExpr(s.Math.HogQL, b.world.Spend)
		if mistake != nil {
			return nil, nil, diag.Field(mistake.Code, s.At+".math_hogql", "The HogQL expression of a series %s", mistake.Detail)
		}
		return e, insight.Call("isNotNull", e), b.world.Known(e, s.At+".math_hogql")
	}
	actor, named = insight.Actor(nil)
	return actor, named, nil
}

// interval identifies the interval of a time: a calendar interval, or a block of IntervalCount whole ones, counted back from the end of the
// range.
func (b *builder) interval(dates *insight.Range) hogql.Expr {
	if b.query.IntervalCount == nil {
		return dates.Bucket(insight.Field("timestamp"))
	}
	return insight.TemplateExpr("intDiv(age({unit}, timestamp, {upper}), {count})", map[string]any{
		"unit": string(b.query.Interval), "upper": dates.To, "count": int64(*b.query.IntervalCount),
	})
}

// lower returns the earliest time of events that count. Unlike in other insights, a month counts from its first day, and a day from
// midnight (contract: stickiness.md, section 2).
func (b *builder) lower(dates *insight.Range) time.Time {
	if b.query.DateRange.Explicit || dates.All {
		return dates.Lower
	}
	if b.query.Interval == query.Day || b.query.Interval.Months() > 0 {
		return dates.Floor(dates.From)
	}
	return dates.Lower
}

// since builds the query for the earliest event of any item.
func (b *builder) since(items []item) (hogql.Query, error) {
	var all []hogql.Expr
	for i := range items {
		condition, err := b.condition(items[i].series)
		if err != nil {
			return nil, err
		}
		all = append(all, insight.OrTrue(condition))
	}
	return insight.Template(since, map[string]any{
		"item": int64(earliest), "events": insight.Events(&b.query.Common),
		"condition": insight.And(items[0].dates.Bounds(), insight.Or(all...)),
	}), nil
}
