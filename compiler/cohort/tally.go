package cohort

import (
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// tally reads a behavior (contract: cohorts.md, section 3). The error is a *diag.Error.
func (b *builder) tally(n *Behavior) (tally, error) {
	event, err := b.entity(n.Event, n.At+".key")
	if err != nil {
		return tally{}, err
	}
	filters, err := b.world.Condition(n.Filters)
	if err != nil {
		return tally{}, err
	}
	t := tally{names: event.names}
	switch n.Kind {
	case Performed:
		window, err := b.window(n)
		return t.within(window, event.is, filters), err
	case Multiple:
		window, err := b.exactly(n)
		t.holds = func(a among) hogql.Expr { return compared(a.count(nil), n) }
		return t.within(window, event.is, filters), err
	case FirstTime:
		window, err := b.window(n)
		t.holds = func(a among) hogql.Expr { return firstIn(a, window.from, filters) }
		return t.until(window.to, event.is), err
	case Sequence:
		window, err := b.window(n)
		if err != nil {
			return t, err
		}
		then, err := b.entity(n.Then, n.At+".seq_event")
		if err != nil {
			return t, err
		}
		return t.sequence(window, event, then, n.Recent.Seconds()), nil
	case Stopped:
		window, err := b.window(n)
		return t.stopped(window, b.since(n.Recent), event.is, filters), err
	case Restarted:
		return b.restarted(n, t, event.is), nil
	case Regularly:
		return b.regularly(n, t, insight.And(event.is, filters)), nil
	}
	panic("BUG: a behavior of the kind " + string(n.Kind))
}

// entity is an event or an action that a behavior counts.
type entity struct {
	is    hogql.Expr // the condition that an event matches; nil for all
	names []string   // the names of these events; nil if they may have any
}

func (b *builder) entity(e Entity, attr string) (entity, error) {
	if e.Action == 0 {
		return entity{is: insight.Eq(insight.Field("event"), insight.Const(e.Event)), names: []string{e.Event}}, nil
	}
	is, err := b.world.Action(e.Action, attr)
	if err != nil {
		return entity{}, err
	}
	return entity{is: is, names: b.world.Actions.Get(e.Action).Events()}, nil
}

// within reads the events in an interval that satisfy all conditions; nil conditions always hold.
func (t tally) within(i interval, conditions ...hogql.Expr) tally {
	t.rows, t.from, t.to = insight.And(append(conditions, i.holds())...), i.from, i.to
	if t.holds == nil {
		t.holds = func(among) hogql.Expr { return nil }
	}
	return t
}

// until reads all events up to a time.
func (t tally) until(to time.Time, is hogql.Expr) tally {
	t.rows, t.to = insight.And(is, at(hogql.LessOrEquals, to)), to
	return t
}

// compared returns the condition on the number of events. It requires at least one.
func compared(count hogql.Expr, n *Behavior) hogql.Expr {
	out := insight.Compare(count, filter.BehaviorComparison(n.Operator), insight.Const(int64(n.Times)))
	if n.Operator == "lte" || n.Operator == "lt" {
		return insight.And(out, insight.Compare(count, hogql.Greater, insight.Const(int64(0))))
	}
	return out
}

// firstIn returns the condition that the first event lies in a window, and that the filters hold for an event at that time.
func firstIn(a among, from time.Time, filters hogql.Expr) hogql.Expr {
	first := a.aggregate("min", insight.Field("timestamp"), nil)
	out := insight.Compare(first, hogql.GreaterOrEquals, insight.Const(from))
	if a.rows != nil {
		out = insight.And(a.some(nil), out) // the minimum over no events is 1970
	}
	if filters == nil {
		return out
	}
	return insight.And(out, a.some(filters), insight.Eq(a.aggregate("min", insight.Field("timestamp"), filters), first))
}

// stopped requires an event in the window, and none in the recent one.
func (t tally) stopped(window, recent interval, conditions ...hogql.Expr) tally {
	t.holds = func(a among) hogql.Expr {
		return insight.And(a.some(window.holds()), insight.Eq(a.count(recent.holds()), insight.Const(int64(0))))
	}
	whole := window
	if recent.from.Before(whole.from) {
		whole.from = recent.from
	}
	if recent.to.After(whole.to) {
		whole.to = recent.to
	}
	return t.within(whole, conditions...)
}

// restarted requires an event in the recent window, none in the rest of the long window, and one before that. The day on which the recent window
// begins also counts as part of the rest.
func (b *builder) restarted(n *Behavior, t tally, is hogql.Expr) tally {
	recent, begin := b.since(n.Recent), b.begin(n.Window.Span)
	gap := interval{from: begin, to: endOfDay(recent.from)}
	if n.Recent.Unit == Minute || n.Recent.Unit == Hour {
		gap.to = recent.from.Add(-time.Microsecond) // otherwise nobody could restart on the same day
	}
	t.holds = func(a among) hogql.Expr {
		return insight.And(
			a.some(recent.holds()), insight.Eq(a.count(gap.holds()), insight.Const(int64(0))), a.some(at(hogql.Less, begin)),
		)
	}
	return t.until(recent.to, is)
}

// The parts of a Regularly.
const (
	// period is the number of periods between an event and the end of the last one.
	period = "intDiv(age({unit}, timestamp, {upper}), {length})"
	// active counts the periods with the required number of events.
	active = "arrayCount(n -> {often}, tupleElement({counts}, 2))"
)

// regularly looks at the last periods, up to yesterday.
func (b *builder) regularly(n *Behavior, t tally, is hogql.Expr) tally {
	unit, length := n.Window.Span.Unit, n.Window.Span.Count
	if unit == Year {
		unit, length = Month, 12*length
	}
	midnight := filter.StartOfDay(b.today(), 0)
	upper, from := midnight.Add(-time.Microsecond), before(midnight, Span{Count: n.Periods * length, Unit: unit})
	index := insight.TemplateExpr(period, map[string]any{"unit": string(unit), "upper": upper, "length": int64(length)})
	t.holds = func(a among) hogql.Expr {
		return insight.Compare(periods(a, index, n), hogql.GreaterOrEquals, insight.Const(int64(n.Enough)))
	}
	return t.within(interval{from: from, to: upper}, is, insight.Compare(index, hogql.Less, insight.Const(int64(n.Periods))))
}

// periods counts the periods with the required number of events.
func periods(a among, index hogql.Expr, n *Behavior) hogql.Expr {
	if n.Operator == "gte" && n.Times == 1 {
		return a.aggregate("uniqExact", index, nil)
	}
	one := &hogql.Array{Items: []hogql.Expr{insight.Const(int64(1))}}
	counts := insight.Call("sumMap", &hogql.Array{Items: []hogql.Expr{index}}, one)
	if a.rows != nil {
		counts = insight.Call("sumMapIf", &hogql.Array{Items: []hogql.Expr{index}}, one, a.rows)
	}
	often := insight.Compare(insight.Field("n"), filter.BehaviorComparison(n.Operator), insight.Const(int64(n.Times)))
	return insight.TemplateExpr(active, map[string]any{"often": often, "counts": counts})
}
