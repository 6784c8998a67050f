package funnels

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// The columns of an outcome.
const (
	levelName  = "level"  // the furthest step that was reached; 0 for none
	beganName  = "began"  // when the attempt that reached it first began; 0 when it was spoiled
	passedName = "passed" // the furthest step that was met, by a spoiled attempt too; where there are exclusions
	timesName  = "times"  // of the steps of that attempt, in microseconds from some time on; 0 for steps that it did not take
)

// outcome adds level, began and, where there are exclusions, passed.
//
// An actor's best attempt is the first to reach the furthest step; while it is spoiled, the next one that reaches that
// step takes its place, and a spoiled attempt that meets a later step takes it for good (contract: sections 3 and 6).
// So an attempt is final when no exclusion that guards the next move comes within the window, and the outcome is spoiled
// when there is no such attempt or a later step was met.
func (b *builder) outcome(s stage, last int) stage {
	var level, best, guard, passed []hogql.Expr // passed is an array, the others are the arguments of multiIf
	guards := false
	for k := last; k > 0; k-- {
		number, entry := insight.Const(int64(k)), fieldOf("entry", k)
		level = append(level, b.taken(k), number)
		reached := insight.Eq(insight.Field(levelName), number)
		if k > 1 {
			best = append(best, reached)
		}
		best = append(best, entry)
		if k < last && b.guarded(k+1) {
			guards = true
			guard = append(guard, reached, insight.Const(b.marks.guard[k+1]))
		}
		if s.has(nameOf("hit", k)) {
			passed = append(passed, insight.Call("if", fieldOf("hit", k), number, insight.Const(int64(0))))
		}
	}
	zero := insight.Const(int64(0))
	furthest := insight.Call("multiIf", best...)
	s = s.then(column{levelName, insight.Call("multiIf", append(level, zero)...)})
	if !guards {
		return s.then(column{beganName, expr("arrayFirst(e -> e > 0, {best})", values{"best": furthest})})
	}
	s = s.then(column{passedName, insight.Call("arrayMax", &hogql.Array{Items: append(passed, zero)})})
	if b.evenly() {
		return s.then(column{beganName, b.counted(b.lasting(furthest, min(b.lastGuarded(), last)))})
	}
	s = s.then(column{"best", furthest}, column{"guard", insight.Call("multiIf", append(guard, zero)...)})
	return s.then(column{beganName, b.counted(b.final())}).without("best", "guard")
}

// counted is when the final attempt began, 0 when the outcome is spoiled; without that where rows are left out.
func (b *builder) counted(began hogql.Expr) hogql.Expr {
	if b.filters() {
		return began
	}
	return expr("{began} * (passed <= level)", values{"began": began})
}

// The conditions below are written with bitAnd and bitOr, and values are taken away by multiplication. What only a branch of if, and or or
// needs is computed in that branch alone, and as often as it is named there: with arrays that are made of one another, that takes many
// times as long as to compute all of them once.

// final is when the final attempt in slot best began; 0 for none. guard is the bit of the exclusions that keep attempts from
// going on; 0 for none.
func (b *builder) final() hogql.Expr {
	v := values{
		"window": b.marks.span(b.marks.window), "before": shifted(insight.Field("best")), "first": b.filled(1),
	}
	v["next"] = expr("_arrayShiftLeft(arrayReverseFill(g -> g > 0, arrayMap((x, e) -> if(bitAnd(x, guard) > 0 and x - e <= {window}, x, 0), items, {before})), 1)", v)
	return expr(`arrayFirst((e, before, first, g) -> bitAnd(e > 0, bitOr(guard = 0, bitAnd(
			bitOr(e > before, bitAnd(first, level = 1)), bitOr(g <= 0, g - e > {window})))),
		best, {before}, {first}, {next})`, v)
}

// lasting is final where exclusions guard evenly all moves up to step free: it began after the last exclusion, and the next one comes too late.
func (b *builder) lasting(best hogql.Expr, free int) hogql.Expr {
	return expr(`arrayFirst((e, g, next) -> bitAnd(e > 0, bitOr(level >= {free}, bitAnd(e > g, bitOr(next <= 0, next - e > {window})))),
		{best}, {excluded}, arrayReverseFill(g -> g > 0, {exclusions}))`, values{
		"best": best, "free": int64(free), "window": b.marks.span(b.marks.window), "excluded": insight.Field(excludedName),
		"exclusions": b.exclusions(insight.Const(b.marks.allGuards())),
	})
}

// kept leaves out the outcomes that are spoiled, where rows are. It is one condition, since for each of several the engine would copy all
// arrays.
func (b *builder) kept(s stage) stage {
	if !b.filters() || !s.has(passedName) {
		return s
	}
	return s.where(expr("if(passed <= level, began, 0) > 0", nil))
}

// times adds the times of the steps of the final attempt. It may have passed over optional steps; so one goes back from the
// last step: the attempt took a step when it was in the step's slot before the event of the next one that it took. here_k is
// the place of the event of the first step that it took from k on.
func (b *builder) times(s stage) stage {
	n := b.marks.steps
	all := &hogql.Array{}
	v := func(k int) values {
		out := values{"entry": fieldOf("entry", k), "k": int64(k), "here": fieldOf("here", k), "next": fieldOf("here", k+1)}
		if k == n {
			out["next"] = insight.Const(int64(0))
		}
		return out
	}
	free := b.free()
	for k := n; free && k > 0; k-- {
		before := "level > {k} and {entry}[{next} - 1] = began"
		if k == n {
			before = "0"
		}
		s = s.then(column{nameOf("here", k), expr("if(level = {k} or ("+before+"), indexOf({entry}, began), {next})", v(k))})
	}
	for k := 1; k <= n; k++ {
		at := "items[indexOf({entry}, began)]" // 0 after the last step that was reached
		if free {
			at = "if({here} != {next}, items[{here}], 0)"
		}
		all.Items = append(all.Items, expr(at, v(k)))
	}
	return s.then(column{timesName, expr("arrayMap(x -> {time}, {all})", values{"time": b.marks.time(insight.Field("x")), "all": all})})
}
