package retention

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// maxBits is the number of periods that fit into the bits of a number.
const maxBits = 64

// history is a query with a row for each actor, and for each breakdown value. Its columns are actor, value and those that starts and
// returns use.
type history struct {
	query *hogql.Select
	// starts and returns are the sets of periods with a start and with a return, as expressions over the columns.
	starts, returns periods
	// values reports whether the columns start_values and return_values have the sums of the values of start and return events, in the
	// order of the periods.
	values bool
}

// periods is a set of periods: the bits of a number, an array, or one number.
type periods struct {
	form layout
	expr hogql.Expr
}

type layout uint8

const (
	array layout = iota
	bits
	single
)

// array returns the set as an array.
func (p periods) array() hogql.Expr {
	switch p.form {
	case bits:
		return insight.Call("_bitPositionsToArray", p.expr)
	case single:
		return &hogql.Array{Items: []hogql.Expr{p.expr}}
	case array:
	}
	return p.expr
}

// key returns an expression that is equal for equal sets.
func (p periods) key() hogql.Expr {
	if p.form == array {
		return insight.Call("arraySort", p.expr)
	}
	return p.expr
}

// in returns the same set with its expression as a column of an outer query.
func (p periods) in(name string) periods { return periods{p.form, insight.Field(name)} }

// some returns the condition that the set is not empty.
func (p periods) some() hogql.Expr {
	if p.form == bits {
		return insight.Compare(p.expr, hogql.NotEquals, insight.Const(int64(0)))
	}
	return insight.Call("notEmpty", p.expr)
}

// gather returns the set of the periods of the rows that satisfy a condition; nil for all rows. index is the period of a row. It is
// negative only for events before the rows of the answer, which only some queries read, and for which the condition never holds.
func (b *builder) gather(index, condition hogql.Expr) periods {
	if b.dates.rows > maxBits || b.dates.All {
		return periods{array, aggregate("groupUniqArray", condition, index)}
	}
	if b.first() {
		index = insight.Call("greatest", index, insight.Const(int64(0)))
	}
	bit := insight.Call("bitShiftLeft", insight.Call("_toUInt64", insight.Const(int64(1))), index)
	return periods{bits, aggregate("groupBitOr", condition, bit)}
}

// history builds the query for the actors.
func (b *builder) history() history {
	switch {
	case b.q.Rolling:
		return b.rolling()
	case b.q.Values != nil || b.q.Minimum > 1:
		return b.counted()
	case b.first():
		return b.anchored()
	}
	return b.recurring()
}

// recurring builds the query for actors with all periods that have a start.
func (b *builder) recurring() history {
	index := b.dates.period(insight.Field("timestamp"))
	start, comeback := b.start, b.comeback
	where := either(start, comeback)
	if b.alike {
		start, comeback = nil, nil
	}
	starts, returns := b.gather(index, start), b.gather(index, comeback)
	values := map[string]any{
		"actor": b.actor, "events": b.events(), "starts": starts.expr,
		"condition": insight.And(b.dates.lower(insight.Field("timestamp")), b.common, where),
	}
	h := history{starts: starts.in("starts"), returns: returns.in("returns")}
	if b.alike {
		h.query = stage("select {actor} as actor, {starts} as starts from {events} where {condition} group by actor", values, b.value)
		h.returns = starts.in("starts")
		return h
	}
	values["returns"], values["some"] = returns.expr, h.starts.some()
	h.query = stage(`select {actor} as actor, {starts} as starts, {returns} as returns from {events} where {condition}
		group by actor having {some}`, values, b.value)
	return h
}

// either returns the condition that an event satisfies one of two conditions; nil if all events do.
func either(x, y hogql.Expr) hogql.Expr {
	switch {
	case x == nil || y == nil:
		return nil
	case same(x, y):
		return x
	}
	return insight.Or(x, y)
}

// candidates returns the condition on the events among which the first start event ever is found: the start events or, if it must also be
// the first of its name, all events of that name.
func (b *builder) candidates() hogql.Expr {
	if b.q.Type == FirstEver {
		return b.named
	}
	return b.start
}

// anchors adds the column anchor, the time of an actor's first start event ever, and, if it may be different, the column named_at, the time
// of its first event of that name. Both are NULL if there is none. With a breakdown by the value of that event, the value is a column too:
// the least one if there are several events at that time.
func (b *builder) anchors(s *hogql.Select) {
	earliest := func(condition hogql.Expr, name string) {
		s.Columns = append(s.Columns, insight.As(aggregate("minOrNull", condition, insight.Field("timestamp")), name))
	}
	earliest(b.start, "anchor")
	if b.unnamed() {
		earliest(b.named, "named_at")
	}
	if b.value != nil && b.grouped() == nil {
		moment := insight.Call("tuple", insight.Field("timestamp"), b.value)
		s.Columns = append(s.Columns, insight.As(aggregate("argMin", b.named, b.value, moment), valueName))
	}
}

// unnamed reports whether the first event of the name may differ from the first start event.
func (b *builder) unnamed() bool { return b.q.Type == FirstEver && !same(b.named, b.start) }

// anchoredIn returns the condition that an actor's anchor makes it a member of a row.
func (b *builder) anchoredIn() hogql.Expr {
	anchor := insight.Field("anchor")
	in := b.dates.lower(anchor)
	if b.unnamed() {
		return insight.And(in, insight.Eq(anchor, insight.Field("named_at")))
	}
	return in
}

// anchored builds the query for actors with the period of their first start event ever.
func (b *builder) anchored() history {
	moment := insight.Field("timestamp")
	inRows := b.dates.lower(moment)
	returns := b.gather(b.dates.period(moment), insight.And(b.comeback, inRows))
	inner := stage("select {actor} as actor, {returns} as returns from {events} where {condition} group by actor", map[string]any{
		"actor": b.actor, "events": b.events(), "returns": returns.expr,
		"condition": insight.And(b.common, either(b.candidates(), insight.And(b.comeback, inRows))),
	}, b.grouped())
	b.anchors(inner)
	outer := stage("select actor, {period} as start, returns from {inner} where {anchored}", map[string]any{
		"period": b.dates.period(insight.Field("anchor")), "inner": insight.From(inner), "anchored": b.anchoredIn(),
	}, b.kept())
	return history{query: outer, starts: periods{single, insight.Field("start")}, returns: returns.in("returns")}
}
