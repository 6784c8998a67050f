package funnels

import (
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// The matching of unordered funnels (contract: funnels.md, section 8). The queues hold the events of the window in order, so what counts for an event
// is which steps come from it on, before its window ends. The columns beside the items are
//
//	next_k     the next event of step k, this one included; 0 for none
//	gone       the next exclusion, which clears the queues
//	completed  how many steps the queues hold when the event leaves them; 0 if an exclusion clears it
const (
	completedName = "completed"
	clearedName   = "gone"
)

// completions adds these columns.
func (b *builder) completions(s stage) stage {
	m := &b.marks
	if !b.apart {
		s = b.assigned(s)
	}
	v := values{"steps": m.allSteps(), "all": m.all(), "window": m.span(m.window), "n": int64(m.steps)}
	var columns []column
	names, arrays := []string{"x"}, []hogql.Expr{insight.Field(itemsName)}
	var within, nexts []string
	for k := 1; k <= m.steps; k++ {
		columns = append(columns, column{nameOf("next", k), expr("arrayReverseFill(x -> x > 0, arrayMap(x -> if(bitAnd(x, {bit}) > 0, x, 0), items))", values{"bit": m.step(k)})})
		next := nameOf("n", k)
		names, arrays, nexts = append(names, next), append(arrays, fieldOf("next", k)), append(nexts, next)
		within = append(within, "if("+next+" > 0 and "+next+" - x + bitAnd(x, {all}) <= {window}, 1, 0)")
	}
	s = s.then(columns...)
	sum := strings.Join(within, " + ")
	if m.guards == 0 {
		return s.then(column{completedName, lambdaOver("arrayMap", names, "if(bitAnd(x, {steps}) = 0, 0, "+sum+")", arrays, v)})
	}
	v["guards"] = m.allGuards()
	s = s.then(column{clearedName, expr("arrayReverseFill(g -> g > 0, arrayMap(x -> if(bitAnd(x, {steps}) = 0 and bitAnd(x, {guards}) > 0, x, 0), items))", v)})
	names, arrays = append(names, "gone"), append(arrays, insight.Field(clearedName))
	inTime := "gone = 0 or gone - x + bitAnd(x, {all}) > {window} or (" + sum + " = {n} and arrayMax([" + strings.Join(nexts, ", ") + "]) < gone)"
	return s.then(column{completedName, lambdaOver("arrayMap", names, "if(bitAnd(x, {steps}) > 0 and ("+inTime+"), "+sum+", 0)", arrays, v)})
}

// unorderedTimes adds the sorted times of the first run that completed the most steps.
func (b *builder) unorderedTimes(s stage) stage {
	m := &b.marks
	s = b.completions(s).then(column{levelName, expr("arrayMax(completed)", nil)})
	s = s.where(expr("level > 0", nil)).then(column{"first", expr("indexOf(completed, level)", nil)})
	all := &hogql.Array{}
	for k := 1; k <= m.steps; k++ {
		all.Items = append(all.Items, expr("if({next}[first] > 0 and {next}[first] - items[first] + bitAnd(items[first], {all}) <= {window}, {time}, 0)",
			values{"next": fieldOf("next", k), "all": m.all(), "window": m.span(m.window), "time": m.time(expr("{next}[first]", values{"next": fieldOf("next", k)}))}))
	}
	return s.then(column{timesName, expr("arrayResize(arraySort(arrayFilter(t -> t > 0, {all})), {n})", values{"all": all, "n": int64(m.steps)})})
}

// assigned assigns every event of several steps to one of them: the step whose queue got its newest event first, an empty queue before all
// others. It folds the events of actors that have such events, with the newest event of each queue as the state.
func (b *builder) assigned(s stage) stage {
	m := &b.marks
	bits := &hogql.Array{}
	for k := 1; k <= m.steps; k++ {
		bits.Items = append(bits.Items, insight.Const(m.step(k)))
	}
	v := values{
		"steps": m.allSteps(), "all": m.all(), "window": m.span(m.window), "bits": bits, "n": int64(m.steps),
		"none": m.sized(expr("_toInt64(0)", nil)),
	}
	s = s.then(column{"several", expr("arrayExists(x -> bitCount(bitAnd(x, {steps})) > 1, items)", v)})
	// Once all queues are filled, their oldest events leave until a queue is empty: the one whose newest event is the oldest.
	v["left"] = expr("arrayMap((newest, k) -> if(x - newest > {window} or arrayMin(s.1) > 0 and k = indexOf(s.1, arrayMin(s.1)), 0, newest), s.1, arrayEnumerate(s.1))", v)
	v["step"] = expr("arraySort(arrayFilter(q -> bitAnd(x, q.2) > 0, arrayZip({left}, {bits})))[1].2", v)
	v["blocks"] = blocks(expr("arraySlice(items, 1, if(several, length(items), 0))", nil))
	v["empty"] = expr("arrayResize([{none}], 0)", v)
	v["within"] = expr(`arrayFold((s, x) -> if(bitAnd(x, {steps}) = 0,
			(arrayMap(newest -> newest * 0, s.1), arrayPushBack(s.2, x)),
			(arrayMap((newest, bit) -> if(bit = {step}, x - bitAnd(x, {all}), newest), {left}, {bits}), arrayPushBack(s.2, x - bitAnd(x, {all}) + {step}))),
		block, (done.1, {empty}))`, v)
	s = s.then(column{"given", expr(
		"arrayFold((done, block) -> arrayMap(w -> (w.1, arrayConcat(done.2, w.2)), [{within}])[1], {blocks}, (arrayWithConstant({n}, {none}), {empty})).2", v)})
	return s.then(column{itemsName, expr("if(several, given, items)", nil)}).without("several", "given")
}
