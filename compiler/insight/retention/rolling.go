package retention

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// window returns the length of a column in a retention with windows of 24 hours (contract: retention.md, section 8).
func (b *builder) window() (unit, int) {
	switch b.q.Period {
	case query.Hour:
		return hours, 1
	case query.Week:
		return days, 7
	case query.Month:
		return days, 30
	case query.Day, query.Second, query.Minute, query.Quarter, query.Year:
	}
	return hours, 24
}

// rolling builds the query for actors with the window of their start and the windows in which they came back.
func (b *builder) rolling() history {
	unit, size := b.window()
	moment := insight.Field("timestamp")
	inRows := b.dates.lower(moment)
	comeback, where := insight.And(b.comeback, inRows), either(b.candidates(), insight.And(b.comeback, inRows))
	if !b.first() {
		comeback, where = b.comeback, insight.And(inRows, either(b.start, b.comeback))
	}
	seen := stage("select {actor} as actor, {units} as units, max(timestamp) as last_at from {events} where {condition} group by actor", map[string]any{
		"actor": b.actor, "events": b.events(), "condition": insight.And(b.common, where),
		"units": aggregate("groupUniqArray", comeback, b.dates.units(unit, moment, 1)),
	}, b.grouped())
	b.anchors(seen)
	source := seen
	if b.grouped() != nil && b.cohort == nil {
		source = b.acrossValues(seen)
	}
	begin := b.dates.units(unit, insight.Field("anchor"), 1)
	windows := stage(`select actor, {begin} as begin, arrayFilter(u -> u >= begin, units) as units from {source} where {anchored}`, map[string]any{
		"begin": begin, "source": insight.From(source), "anchored": b.anchoredIn(),
	}, b.kept())
	outer := stage(`select actor, intDiv(begin, {size}) as start, arrayDistinct(arrayMap(u -> intDiv(begin, {size}) + intDiv(u - begin, {size}), units)) as returns
		from {source}`, map[string]any{"size": int64(size), "source": insight.From(windows)}, b.kept())
	if !b.dates.All {
		outer.Where = insight.TemplateExpr("intDiv(begin, {size}) < {rows}", map[string]any{"size": int64(size), "rows": int64(b.dates.rows)})
	}
	return history{query: outer, starts: periods{single, insight.Field("start")}, returns: periods{array, insight.Field("returns")}}
}

// acrossValues gives each breakdown value of an actor the actor's start, whatever value the start has. It drops values without an event
// from the start on.
func (b *builder) acrossValues(seen *hogql.Select) *hogql.Select {
	actors := stage("select actor, min(anchor) as anchor, groupArray(tuple({value}, units, last_at)) as parts from {seen} group by actor", map[string]any{
		"value": insight.Field(valueName), "seen": insight.From(seen),
	}, nil)
	columns := "actor, anchor, arrayJoin(parts) as part"
	if b.unnamed() {
		actors.Columns = append(actors.Columns, insight.As(insight.Call("min", insight.Field("named_at")), "named_at"))
		columns = "actor, anchor, named_at, arrayJoin(parts) as part"
	}
	parts := stage("select "+columns+" from {actors}", map[string]any{"actors": insight.From(actors)}, nil)
	out := stage("select actor, anchor, part.1 as value, part.2 as units from {parts} where part.3 >= anchor", map[string]any{"parts": insight.From(parts)}, nil)
	if b.unnamed() {
		out.Columns = append(out.Columns, insight.Field("named_at"))
	}
	return out
}
