package funnels

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// tie is the time, in microseconds, in which events count as simultaneous (contract: section 4).
const tie = 50_000

// idsName tells the events of an actor apart, beside the items; 0 for an event that no other is simultaneous with.
const idsName = "ids"

// ties puts simultaneous events in the order of the steps. A group of them begins with its first event, and reaches no
// further than tie after it. When the events of a group differ in their marks, each becomes one copy a step, in the order
// of the steps, with the mark "mixed" and without those of exclusions. Only actors that have such a group are touched:
//
//	crowded  whether there is one: the last bits of the difference of two items are 0 when their marks are the same
//	crowd    the events of such an actor: their items, or tuples of item, id and, where it is needed, value
//	moments  beside these, their times
//	starts   beside these, when their groups began; found in the chains of events that are near one another
//	moved    the same events in their new order
func (b *builder) ties(s stage) stage {
	m := &b.marks
	var riders []hogql.Expr // beside the items
	if !b.apart {
		riders = append(riders, expr("arrayEnumerate(items)", nil))
	}
	if s.has(valuesName) {
		riders = append(riders, insight.Field(valuesName))
	}
	events, item := insight.Field(itemsName), expr("p", nil)
	if len(riders) > 0 {
		events, item = insight.Call("arrayZip", append([]hogql.Expr{events}, riders...)...), expr("p.1", nil)
	}
	v := values{
		"tie": int64(tie), "near": m.span(tie), "all": m.all(), "events": events, "item": item, "time": m.time(item),
	}
	copied := expr("{item} - bitAnd({item}, {all}) + step", v)
	if len(riders) > 0 {
		tuple := &hogql.Tuple{Items: []hogql.Expr{copied}}
		for i := range riders {
			tuple.Items = append(tuple.Items, &hogql.Element{X: expr("p", nil), N: i + 2})
		}
		copied = tuple
	}
	steps := &hogql.Array{}
	for k := 1; k <= m.steps; k++ {
		steps.Items = append(steps.Items, insight.Const(m.step(k)|m.mixed()))
	}
	v["copied"], v["steps"] = copied, steps
	s = s.then(
		column{"crowded", expr("arrayExists(d -> d <= {near} and bitAnd(d, {all}) > 0, arrayDifference(items))", v)},
		column{"crowd", expr("arraySlice({events}, 1, if(crowded, length(items), 0))", v)},
		column{"moments", expr("arrayMap(p -> {time}, crowd)", v)})
	s = s.then(column{"starts", expr(`arrayFlatten(arrayMap(
		chain -> arrayFold((s, t) -> arrayPushBack(s, if(t - s[-1] > {tie}, t, s[-1])), chain, arrayResize(chain, 0)),
		arraySplit((t, before) -> t - before > {tie}, moments, _arrayShiftRight(moments, 1))))`, v)})
	s = s.then(column{"moved", expr(`arrayFlatten(arrayMap(
		g -> if(arrayUniq(arrayMap(p -> bitAnd({item}, {all}), g)) = 1, g,
			arrayFlatten(arrayMap(step -> arrayMap(p -> {copied}, arrayFilter(p -> bitAnd({item}, step) > 0, g)), {steps}))),
		arraySplit((p, start, before) -> start != before, crowd, starts, _arrayShiftRight(starts, 1))))`, v)})
	moved := func(n int) hogql.Expr {
		if len(riders) == 0 {
			return insight.Field("moved")
		}
		return &hogql.Element{X: insight.Field("moved"), N: n}
	}
	columns := []column{{itemsName, expr("if(crowded, {moved}, items)", values{"moved": moved(1)})}}
	if !b.apart {
		columns = append(columns, column{idsName, expr("if(crowded, {moved}, arrayMap(x -> 0, items))", values{"moved": moved(2)})})
	}
	if s.has(valuesName) {
		columns = append(columns, column{valuesName, expr("if(crowded, {moved}, {old})", values{"moved": moved(1 + len(riders)), "old": insight.Field(valuesName)})})
	}
	return s.then(columns...).without("crowded", "crowd", "moments", "starts", "moved")
}
