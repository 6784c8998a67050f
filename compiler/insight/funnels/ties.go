package funnels

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// tie is the time in microseconds within which events count as simultaneous (contract: funnels.md, section 4).
const tie = 50_000

// idsName is the column that tells the events of an actor apart, beside the items; 0 for an event that is simultaneous with no other.
const idsName = "ids"

// ties puts simultaneous events in the order of the steps. A group of them begins with its first event and includes those up to tie after
// it. If the events of a group differ in their marks, each becomes one copy for each of its steps, in the order of the steps, with the mark
// "mixed" and without those of exclusions. Only actors that may have such a group are changed: the last bits of the difference of two items
// are 0 if their marks are the same.
func (b *builder) ties(s stage) stage {
	crowded := expr("arrayExists(d -> d <= {near} and bitAnd(d, {all}) > 0, arrayDifference(items))", values{"near": b.marks.span(tie), "all": b.marks.all()})
	var riders []hogql.Expr // beside the items
	if !b.apart {
		riders = append(riders, expr("arrayEnumerate(items)", nil))
	}
	if s.has(valuesName) {
		riders = append(riders, insight.Field(valuesName))
	}
	if len(riders) == 0 {
		// The engine computes the moved items only for actors for which the condition holds.
		return s.then(column{itemsName, expr("if({crowded}, {moved}, items)", values{"crowded": crowded, "moved": b.moved(insight.Field(itemsName), 0)})})
	}
	// The events of such an actor become tuples of item, id and, if needed, value.
	events := insight.Call("arrayZip", append([]hogql.Expr{insight.Field(itemsName)}, riders...)...)
	s = s.then(column{"crowded", crowded}, column{"crowd", expr("arraySlice({events}, 1, if(crowded, length(items), 0))", values{"events": events})})
	s = s.then(column{"moved", b.moved(insight.Field("crowd"), len(riders))})
	moved := func(n int) hogql.Expr { return &hogql.Element{X: insight.Field("moved"), N: n} }
	columns := []column{{itemsName, expr("if(crowded, {moved}, items)", values{"moved": moved(1)})}}
	if !b.apart {
		columns = append(columns, column{idsName, expr("if(crowded, {moved}, arrayMap(x -> 0, items))", values{"moved": moved(2)})})
	}
	if s.has(valuesName) {
		columns = append(columns, column{valuesName, expr("if(crowded, {moved}, {old})", values{"moved": moved(1 + len(riders)), "old": insight.Field(valuesName)})})
	}
	return s.then(columns...).without("crowded", "crowd", "moved")
}

// blocks splits an array into blocks, to fold each of them. For every element that a fold adds, the engine copies the array built so far,
// so the time of one fold over everything would grow with the square of the length.
func blocks(array hogql.Expr) hogql.Expr {
	return expr("arraySplit((e, i) -> i % 256 = 1, {array}, arrayEnumerate({array}))", values{"array": array})
}

// moved returns the events in their new order: items, or tuples of an item and its riders. It splits them into chains of events that are
// near each other, and splits a chain into groups, between two events whose groups begin at different times.
func (b *builder) moved(events hogql.Expr, riders int) hogql.Expr {
	m := &b.marks
	item := expr("p", nil)
	if riders > 0 {
		item = expr("p.1", nil)
	}
	v := values{"tie": int64(tie), "near": m.span(tie), "all": m.all(), "events": events, "item": item, "time": m.time(item)}
	v["copied"] = expr("{item} - bitAnd({item}, {all}) + step", v)
	if riders > 0 {
		tuple := &hogql.Tuple{Items: []hogql.Expr{expr("{copied}", v)}}
		for i := range riders {
			tuple.Items = append(tuple.Items, &hogql.Element{X: expr("p", nil), N: i + 2})
		}
		v["copied"] = tuple
	}
	steps := &hogql.Array{}
	for k := 1; k <= m.steps; k++ {
		steps.Items = append(steps.Items, insight.Const(m.step(k)|m.mixed()))
	}
	v["steps"] = steps
	v["copies"] = expr("arrayFlatten(arrayMap(step -> arrayMap(p -> {copied}, arrayFilter(p -> bitAnd({item}, step) > 0, g)), {steps}))", v)
	v["blocks"] = blocks(expr("arrayMap(p -> {time}, chain)", v))
	v["begins"] = expr(`arrayPopFront(arrayFold((s, block) -> arrayConcat(s, arrayPopFront(
		arrayFold((q, t) -> arrayPushBack(q, if(t - q[-1] > {tie}, t, q[-1])), block, arraySlice(s, -1)))), {blocks}, [_toInt64(0)]))`, v)
	v["groups"] = expr("arraySplit((p, d) -> d > 0, chain, arrayDifference({begins}))", v)
	v["chains"] = expr("arraySplit((p, d) -> d > {near}, {events}, arrayDifference(arrayMap(p -> {item}, {events})))", v)
	return expr("arrayFlatten(arrayMap(chain -> arrayMap(g -> if(arrayUniq(arrayMap(p -> bitAnd({item}, {all}), g)) = 1, g, {copies}), {groups}), {chains}))", v)
}
