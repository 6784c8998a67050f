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
// further than tie behind it. When the events of a group differ in their marks, each becomes one copy a step, in the order
// of the steps, with the mark "mixed" and without those of exclusions. Only actors that have such a group are touched:
//
//	crowded  whether there is one
//	crowd    the events of such an actor: item, id and, where it is needed, value
//	begins   beside these, whether one begins a group
//	moved    the same events in their new order
func (b *builder) ties(s stage) stage {
	riders := []hogql.Expr{insight.Field(itemsName), expr("arrayEnumerate(items)", nil)}
	if s.has(valuesName) {
		riders = append(riders, insight.Field(valuesName))
	}
	m := &b.marks
	bits := &hogql.Array{}
	copied := expr("(bitXor(p.1, bitAnd(p.1, {all})) + step + {mixed}, p.2)", values{"all": m.all(), "mixed": m.mixed()})
	if tuple, ok := copied.(*hogql.Tuple); ok && s.has(valuesName) {
		tuple.Items = append(tuple.Items, expr("p.3", nil))
	}
	for k := 1; k <= m.steps; k++ {
		bits.Items = append(bits.Items, insight.Const(m.step(k)))
	}
	v := values{
		"tie": int64(tie), "near": m.span(tie), "all": m.all(), "time": m.time(expr("p.1", nil)), "steps": bits, "copied": copied,
		"events": insight.Call("arrayZip", riders...),
	}
	s = s.then(column{"crowded", expr(
		"arrayExists((x, y) -> y - x <= {near} and bitAnd(bitXor(x, y), {all}) > 0, arrayPopBack(items), arrayPopFront(items))", v)})
	s = s.then(column{"crowd", expr("arraySlice({events}, 1, if(crowded, length(items), 0))", v)})
	s = s.then(column{"times", expr("arrayMap(p -> {time}, crowd)", v)})
	s = s.then(column{"begins", expr(`arrayFlatten(arrayMap(
		chain -> arrayFold((s, t) -> if(t - s.1 > {tie}, (t, arrayPushBack(s.2, 1)), (s.1, arrayPushBack(s.2, 0))), arrayPopFront(chain), (chain[1], [1])).2,
		arraySplit((t, before) -> t - before > {tie}, times, _arrayShiftRight(times, 1))))`, v)})
	s = s.then(column{"moved", expr(`arrayFlatten(arrayMap(
		g -> if(arrayMin(p -> bitAnd(p.1, {all}), g) = arrayMax(p -> bitAnd(p.1, {all}), g), g,
			arrayFlatten(arrayMap(step -> arrayMap(p -> {copied}, arrayFilter(p -> bitAnd(p.1, step) > 0, g)), {steps}))),
		arraySplit((p, begin) -> begin, crowd, begins)))`, v)})
	columns := []column{{itemsName, expr("if(crowded, moved.1, items)", nil)}}
	if !b.apart {
		columns = append(columns, column{idsName, expr("if(crowded, moved.2, arrayMap(x -> 0, items))", nil)})
	}
	if s.has(valuesName) {
		columns = append(columns, column{valuesName, expr("if(crowded, moved.3, "+valuesName+")", nil)})
	}
	return s.then(columns...).without("crowded", "crowd", "times", "begins", "moved")
}
