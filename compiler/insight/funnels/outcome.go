package funnels

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// The columns of an outcome.
const (
	levelName  = "level"  // the furthest step that was reached; 0 for none
	beganName  = "began"  // when the attempt that reached it first began; 0 if it was spoiled
	passedName = "passed" // the furthest step that was met, even by a spoiled attempt; if there are exclusions
	timesName  = "times"  // of the steps of that attempt, in microseconds and with the shift; 0 for steps that it did not take
)

// outcome adds level, began and, if there are exclusions, passed.
//
// An actor's best attempt is the first to reach the furthest step. If it is spoiled, the next one that reaches that step replaces it; a
// spoiled attempt that meets a later step replaces it for good (contract: funnels.md, sections 3 and 6). So an attempt is final if no exclusion that
// guards the next move comes within the window, and the outcome is spoiled if there is no such attempt or a later step was met.
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
	if b.evenlyGuarded() {
		return s.then(column{beganName, b.counted(b.lasting(furthest, min(b.lastGuarded(), last)))})
	}
	s = s.then(column{"best", furthest}, column{"guard", insight.Call("multiIf", append(guard, zero)...)})
	return s.then(column{beganName, b.counted(b.final())}).without("best", "guard")
}

// counted sets began to 0 if the outcome is spoiled, except where such rows are filtered out (see filters).
func (b *builder) counted(began hogql.Expr) hogql.Expr {
	if b.filters() {
		return began
	}
	return expr("{began} * (passed <= level)", values{"began": began})
}

// The conditions below use bitAnd and bitOr, and multiply by a condition to remove values. With if, "and" and "or", the engine computes
// what only one branch needs inside that branch, and again for each time it is named there. With arrays that are built from each other,
// that takes many times as long as computing all of them once.

// final returns when the final attempt in slot best began; 0 for none. guard is the bit of the exclusions that stop attempts from going on;
// 0 for none.
func (b *builder) final() hogql.Expr {
	v := values{
		"window": b.marks.span(b.marks.window), "before": shifted(insight.Field("best")), "first": b.filled(1),
	}
	v["next"] = expr("_arrayShiftLeft(arrayReverseFill(g -> g > 0, arrayMap((x, e) -> if(bitAnd(x, guard) > 0 and x - e <= {window}, x, 0), items, {before})), 1)", v)
	return expr(`arrayFirst((e, before, first, g) -> bitAnd(e > 0, bitOr(guard = 0, bitAnd(
			bitOr(e > before, bitAnd(first, level = 1)), bitOr(g <= 0, g - e > {window})))),
		best, {before}, {first}, {next})`, v)
}

// lasting is like final, for exclusions that guard all moves up to step free evenly: the attempt began after the last exclusion, and the
// next one comes too late.
func (b *builder) lasting(best hogql.Expr, free int) hogql.Expr {
	return expr(`arrayFirst((e, g, next) -> bitAnd(e > 0, bitOr(level >= {free}, bitAnd(e > g, bitOr(next <= 0, next - e > {window})))),
		{best}, {excluded}, arrayReverseFill(g -> g > 0, {exclusions}))`, values{
		"best": best, "free": int64(free), "window": b.marks.span(b.marks.window), "excluded": insight.Field(excludedName),
		"exclusions": b.exclusions(insight.Const(b.marks.allGuards())),
	})
}

// kept filters out spoiled outcomes, in funnels that filter rows (see filters). It uses one condition, since the engine would copy all
// arrays for each of several.
func (b *builder) kept(s stage) stage {
	if !b.filters() || !s.has(passedName) {
		return s
	}
	return s.where(expr("if(passed <= level, began, 0) > 0", nil))
}

// times adds the times of the steps of the final attempt. The attempt may have skipped optional steps, so times goes backwards from the
// last step: the attempt took a step if it was in the step's slot before the event of the next step that it took. here_k is the index of
// the event of the first step that it took from k on.
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
		at := "items[indexOf({entry}, began)]" // 0 after the last step that it reached
		if free {
			at = "if({here} != {next}, items[{here}], 0)"
		}
		all.Items = append(all.Items, expr(at, v(k)))
	}
	return s.then(column{timesName, expr("arrayMap(x -> {time}, {all})", values{"time": b.marks.time(insight.Field("x")), "all": all})})
}
