package retention

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// earlier is the period of all events before the rows.
const earlier = -1

// counted builds the query for actors whose events are counted, or whose values are added up, in each period.
func (b *builder) counted() history {
	perPeriod := b.perPeriod()
	period, inRows := insight.Field("period"), insight.Compare(insight.Field("period"), hogql.Greater, insight.Const(int64(earlier)))
	if !b.first() {
		inRows = nil
	}
	started := insight.And(insight.Compare(insight.Field("starts"), hogql.Greater, insight.Const(int64(0))), inRows)
	least := int64(b.q.Minimum)
	if b.q.Values != nil {
		least = 1 // contract: retention.md, section 9
	}
	returned := insight.And(insight.Compare(insight.Field("returns"), hogql.GreaterOrEquals, insight.Const(least)), inRows)
	var starts, returns periods
	if b.q.Values != nil { // arrays, in the order of the values
		starts, returns = periods{array, aggregate("groupArray", started, period)}, periods{array, aggregate("groupArray", returned, period)}
	} else {
		starts, returns = b.gather(period, started), b.gather(period, returned)
	}
	of := b.kept()
	if b.grouped() == nil {
		of = nil
	}
	inner := stage("select actor, {starts} as start_periods, {returns} as return_periods from {source} group by actor", map[string]any{
		"starts": starts.expr, "returns": returns.expr, "source": insight.From(perPeriod),
	}, of)
	h := history{query: inner, starts: starts.in("start_periods"), returns: returns.in("return_periods"), values: b.q.Values != nil}
	if h.values {
		inner.Columns = append(inner.Columns,
			insight.As(aggregate("groupArray", started, insight.Field("start_value")), "start_values"),
			insight.As(aggregate("groupArray", returned, insight.Field("return_value")), "return_values"))
	}
	if b.first() {
		return b.onlyAnchored(h)
	}
	inner.Having = h.starts.some()
	return h
}

// perPeriod builds the query for what each actor did in each period.
func (b *builder) perPeriod() *hogql.Select {
	moment := insight.Field("timestamp")
	period, comeback := b.dates.period(moment), b.comeback
	where := insight.And(b.dates.lower(moment), either(b.start, b.comeback))
	if b.first() {
		inRows := b.dates.lower(moment)
		period = insight.Call("if", inRows, period, insight.Const(int64(earlier)))
		where = either(b.candidates(), insight.And(b.comeback, inRows))
	}
	s := stage(`select {actor} as actor, {period} as period, {starts} as starts, {returns} as returns from {events}
		where {condition} group by actor, period`, map[string]any{
		"actor": b.actor, "period": period, "events": b.events(), "condition": insight.And(b.common, where),
		"starts": aggregate("count", b.start), "returns": aggregate("count", comeback),
	}, b.grouped())
	if b.first() {
		b.anchors(s)
	}
	if b.q.Values == nil {
		return s
	}
	value := b.amount()
	s.Columns = append(s.Columns, insight.As(aggregate("sum", comeback, value), "return_value"))
	if b.together() {
		s.Columns = append(s.Columns, insight.As(aggregate("sum", b.start, value), "start_value"))
		return s
	}
	// Return events in the period of the start count from the start on.
	s.Columns = append(s.Columns,
		insight.As(aggregate("sum", b.start, value), "own_value"),
		insight.As(aggregate("minOrNull", b.start, moment), "started_at"),
		insight.As(aggregate("groupArray", comeback, insight.Call("tuple", moment, value)), "comebacks"))
	outer := *s
	outer.Columns, outer.From, outer.Where, outer.GroupBy = nil, insight.From(s), nil, nil
	for _, name := range []string{"actor", "period", "starts", "returns", "return_value"} {
		outer.Columns = append(outer.Columns, insight.Field(name))
	}
	if b.first() {
		outer.Columns = append(outer.Columns, insight.Field("anchor"))
		if b.unnamed() {
			outer.Columns = append(outer.Columns, insight.Field("named_at"))
		}
	}
	if b.value != nil {
		outer.Columns = append(outer.Columns, insight.Field(valueName))
	}
	outer.Columns = append(outer.Columns, insight.As(insight.TemplateExpr(
		"own_value + arraySum(arrayMap(c -> if(c.1 > started_at, c.2, 0), comebacks))", nil), "start_value"))
	return &outer
}

// together reports whether both entities are the same event or action, regardless of their filters.
func (b *builder) together() bool {
	x, y := b.q.Start, b.q.Return
	if x.Kind != y.Kind || x.Action != y.Action || (x.Event == nil) != (y.Event == nil) {
		return false
	}
	return x.Event == nil || *x.Event == *y.Event
}

// amount returns the number that an event adds: its property, or 0 if that is missing or not finite.
func (b *builder) amount() hogql.Expr {
	property := insight.Field("properties", b.q.Values.Property)
	if b.q.Values.Person {
		property = insight.Field(currentPerson, "properties", b.q.Values.Property)
	}
	return insight.TemplateExpr("if(isFinite({number}), ifNull({number}, 0), 0)", map[string]any{"number": insight.Call("toFloat", property)})
}

// onlyAnchored keeps, of an actor's starts, only the period of its first start event ever.
func (b *builder) onlyAnchored(h history) history {
	inner := h.query
	inner.Columns = append(inner.Columns, insight.As(insight.Call("min", insight.Field("anchor")), "first_at"))
	where, named := b.dates.lower(insight.Field("first_at")), "anchor"
	if b.unnamed() {
		named = "named_at"
		inner.Columns = append(inner.Columns, insight.As(insight.Call("min", insight.Field("named_at")), "first_named_at"))
		where = insight.And(where, insight.Eq(insight.Field("first_at"), insight.Field("first_named_at")))
	}
	if b.value != nil && b.grouped() == nil {
		inner.Columns = append(inner.Columns, insight.As(insight.Call("argMin", insight.Field(valueName), insight.Field(named)), valueName))
	}
	outer := stage("select actor, {period} as start, return_periods from {inner} where {anchored}", map[string]any{
		"period": b.dates.period(insight.Field("first_at")), "inner": insight.From(inner), "anchored": where,
	}, b.kept())
	if h.values {
		outer.Columns = append(outer.Columns, insight.Field("return_values"), insight.As(insight.TemplateExpr(
			"[start_values[indexOf(start_periods, {period})]]", map[string]any{"period": b.dates.period(insight.Field("first_at"))}), "start_values"))
	}
	h.query, h.starts = outer, periods{single, insight.Field("start")}
	return h
}
