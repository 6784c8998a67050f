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

// outcome adds level, began and passed, and whether an exclusion came at all.
//
// An actor's best attempt is the first to reach the furthest step; while it is spoiled, the next one that reaches that
// step takes its place, and a spoiled attempt that meets a step beyond takes it for good (contract: sections 3 and 6).
// So an attempt is final when no exclusion that guards the next move comes within the window, and the outcome is spoiled
// when there is no such attempt or a step beyond was met.
func (b *builder) outcome(s stage, last int) stage {
	level, began, passed := &hogql.Call{Name: "multiIf"}, &hogql.Call{Name: "multiIf"}, &hogql.Call{Name: "multiIf"}
	guards := int64(0)
	for k := last; k > 0; k-- {
		number := insight.Const(int64(k))
		level.Args = append(level.Args, expr("arrayMax({entry}) > 0", values{"entry": fieldOf("entry", k)}), number)
		reached := insight.Eq(insight.Field(levelName), number)
		if k < last && b.guarded(k+1) {
			guards |= b.marks.guard[k+1]
			began.Args = append(began.Args, insight.And(reached, insight.Field("exposed")), b.final(k))
		}
		began.Args = append(began.Args, reached, expr("arrayFirst(e -> e > 0, {entry})", values{"entry": fieldOf("entry", k)}))
		if s.has(nameOf("hit", k)) {
			passed.Args = append(passed.Args, fieldOf("hit", k), number)
		}
	}
	zero := insight.Const(int64(0))
	level.Args, began.Args, passed.Args = append(level.Args, zero), append(began.Args, zero), append(passed.Args, zero)
	columns := []column{{levelName, level}}
	if guards != 0 {
		columns = append(columns, column{passedName, passed}, column{"exposed", expr("arrayExists(x -> bitAnd(x, {guards}) > 0, items)", values{"guards": guards})})
	}
	return s.then(columns...).then(column{beganName, began})
}

// final is when the final attempt in slot k began, for an actor with exclusions; 0 for none.
func (b *builder) final(k int) hogql.Expr {
	v := values{
		"entry": fieldOf("entry", k), "before": shifted(fieldOf("entry", k)), "filled": b.filled(k),
		"guard": b.marks.guard[k+1], "window": b.marks.span(b.marks.window),
	}
	v["next"] = expr("_arrayShiftLeft(arrayReverseFill(g -> g > 0, arrayMap((x, e) -> if(bitAnd(x, {guard}) > 0 and x - e <= {window}, x, 0), items, {before})), 1)", v)
	return expr("arrayFirst((e, f, g) -> f and (g <= 0 or g - e > {window}), {entry}, {filled}, {next})", v)
}

// kept is the condition that an outcome counts.
func kept(s stage) hogql.Expr {
	var clean hogql.Expr
	if s.has(passedName) {
		clean = expr("passed <= level", nil)
	}
	return insight.And(expr("level > 0", nil), expr("began > 0", nil), clean)
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
	free := false
	for k := 1; k <= n; k++ {
		free = free || b.optional(k)
	}
	for k := n; free && k > 0; k-- {
		before := "level > {k} and {entry}[{next} - 1] = began"
		if k == n {
			before = "0"
		}
		s = s.then(column{nameOf("here", k), expr("if(level = {k} or ("+before+"), indexOf({entry}, began), {next})", v(k))})
	}
	for k := 1; k <= n; k++ {
		took, at := "level >= {k}", "items[indexOf({entry}, began)]"
		if free {
			took, at = "{here} != {next}", "items[{here}]"
		}
		v := v(k)
		v["time"] = b.marks.time(expr(at, v))
		all.Items = append(all.Items, expr("if("+took+", {time}, 0)", v))
	}
	return s.then(column{timesName, all})
}
