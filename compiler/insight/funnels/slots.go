package funnels

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// The matching of ordered and strict funnels (contract: funnels.md, sections 3, 5, 6 and 7). A slot holds the attempt that reached its step last.
// Columns beside the items say, for each step k, what is in slot k after each event:
//
//	entry_k    the time at which its attempt began, in the unit of items; 0 or less for none
//	spoiled_k  1 if an exclusion came since, else 0 or 2; if exclusions guard the move after k
//	excluded   instead of spoiled_k, the last exclusion; if that is enough, see evenlyGuarded
//	used_k     the simultaneous events that the attempt consists of; if an event may be of several steps
//
// A pass finds the events that fill slot k, and carries each entry on to the next events: slot k is filled by an event of step k with the
// attempt that was in slot k-1 before, within the window. So entries only grow.

func nameOf(what string, k int) string      { return what + "_" + strconv.Itoa(k) }
func fieldOf(what string, k int) hogql.Expr { return insight.Field(nameOf(what, k)) }
func shifted(x hogql.Expr) hogql.Expr {
	return insight.Call("_arrayShiftRight", x, insight.Const(int64(1)))
}
func (b *builder) guarded(k int) bool { return k <= b.marks.steps && b.marks.guard[k] != 0 }
func (b *builder) tied() bool         { return b.q.Viz != VizTrends } // trends ignore ties
func (b *builder) tracks() bool       { return !b.apart && b.tied() }

// excludedName is the column of the last exclusion up to an event, as an item; 0 for none.
const excludedName = "excluded"

// evenlyGuarded reports whether the same exclusions guard the moves into steps 2 to lastGuarded, in a funnel where an event is of one source and
// no slot is emptied. An attempt is then spoiled if an exclusion came after it began: with an exclusion before it reached its slot, it
// would not have got there.
func (b *builder) evenlyGuarded() bool {
	return b.apart && !b.strict() && b.q.Viz != VizTrends && b.marks.guards == 1 && !slices.Contains(b.marks.guard[2:b.lastGuarded()+1], 0)
}

// lastGuarded returns the last step with exclusions that guard the move into it; 1 for none.
func (b *builder) lastGuarded() int {
	k := b.marks.steps
	for k > 1 && !b.guarded(k) {
		k--
	}
	return k
}

// before returns what is in slot k before each event.
func (b *builder) before(k int) hogql.Expr {
	if b.apart && !b.strict() {
		return fieldOf("entry", k) // the event of another step does not change it
	}
	return shifted(fieldOf("entry", k))
}

// filled returns whether each event fills slot k. The first event can only fill the first slot.
func (b *builder) filled(k int) hogql.Expr {
	if k == 1 {
		if b.q.Viz == VizTrends {
			return expr("arrayMap(x -> bitAnd(x, 1) > 0 and x <= closes, items)", nil)
		}
		return expr("arrayMap(x -> bitAnd(x, 1) > 0, items)", nil)
	}
	return expr("arrayMap((e, grown) -> grown > 0 and e > 0, {entry}, arrayDifference({entry}))", values{"entry": fieldOf("entry", k)})
}

// slots adds the columns of the slots 1 to last. For each step that exclusions may guard it also adds hit_k: whether an event of the step
// met an attempt within the window, spoiled or not.
func (b *builder) slots(s stage, last int) stage {
	v := values{"all": b.marks.all(), "carry": b.carry(1)}
	began := "x - bitAnd(x, {all})"
	if b.q.Viz == VizTrends {
		began = "if(x <= closes, " + began + ", -1)"
	}
	s = s.then(column{"entry_1", expr("arrayFill(e -> e >= 0, arrayMap(x -> if(bitAnd(x, 1) = 0, {carry}, "+began+"), items))", v)})
	if b.filters() {
		s = s.where(b.taken(1)) // an actor that never enters needs no passes
	}
	var first []column
	if b.tracks() {
		first = append(first, column{"used_1", expr("arrayFill((u, f) -> f, arrayMap(i -> arrayResize([i], if(i > 0, 1, 0)), ids), {filled})", values{"filled": b.filled(1)})})
	}
	if b.evenlyGuarded() {
		first = append(first, column{excludedName, expr("arrayFill(g -> g > 0, {exclusions})", values{"exclusions": b.exclusions(insight.Const(b.marks.allGuards()))})})
	}
	s = s.then(append(first, b.spoiled(1)...)...)
	for k := 2; k <= last; k++ {
		s = b.pass(s, k)
	}
	return s
}

// spoiled returns the column spoiled_k, if exclusions guard the move after step k.
func (b *builder) spoiled(k int) []column {
	if !b.guarded(k+1) || b.evenlyGuarded() {
		return nil
	}
	return []column{{nameOf("spoiled", k), expr(
		"arrayFill(s -> s > 0, arrayMap((x, f) -> multiIf(f, 2, bitAnd(x, {guard}) > 0, 1, 0), items, {filled}))",
		values{"guard": b.marks.guard[k+1], "filled": b.filled(k)})}}
}

// taken returns the condition that an attempt was in slot k. The last such attempt stays there until the end, unless the slot is emptied.
func (b *builder) taken(k int) hogql.Expr {
	if b.strict() {
		return expr("arrayMax({entry}) > 0", values{"entry": fieldOf("entry", k)})
	}
	return expr("{entry}[-1] > 0", values{"entry": fieldOf("entry", k)})
}

// exclusions returns the items that have any bit of a guard, with 0 in place of all others.
func (b *builder) exclusions(guard hogql.Expr) hogql.Expr {
	return expr("arrayMap(x -> if(bitAnd(x, {guard}) > 0, x, 0), items)", values{"guard": guard})
}

// filters reports whether the query filters out actors that do not count before the end. In other funnels their times become 0 at the end:
// a condition over arrays costs more than the passes it saves, since the engine computes the arrays for the condition, and again for the
// remaining rows.
func (b *builder) filters() bool { return b.strict() || b.q.Viz == VizTrends }

// carry returns what slot k holds after an event that cannot take step k: -1 if the event does not change it. In a strict funnel the event
// empties the slot, 0, except among mixed events, and except if it is of the step and only has another value.
func (b *builder) carry(k int) hogql.Expr {
	if !b.strict() {
		return insight.Const(int64(-1))
	}
	keeps := b.marks.mixed()
	if b.value != nil && b.attribution() == ByStep && k == b.attributionStep() {
		keeps |= b.marks.held()
	}
	return expr("if(bitAnd(x, {keeps}) > 0, -1, 0)", values{"keeps": keeps})
}

// pass adds the columns of slot k. Its predecessor is the slot before. If that is of an optional step and is empty or too old, it is the
// one before that, and so on.
func (b *builder) pass(s stage, k int) stage {
	v := values{"bit": b.marks.step(k), "window": b.marks.span(b.marks.window), "carry": b.carry(k)}
	names, arrays := []string{"x"}, []hogql.Expr{insight.Field(itemsName)}
	add := func(name string, array hogql.Expr) {
		names, arrays = append(names, name), append(arrays, array)
	}
	var entries, meets, useds []string // for each predecessor: the condition that it is in the window, and the result
	spoils := false
	for n, j := 1, k-1; j > 0; n, j = n+1, j-1 {
		entry, spoiled, used, guard := fmt.Sprintf("e%d", n), fmt.Sprintf("s%d", n), fmt.Sprintf("u%d", n), fmt.Sprintf("guard%d", n)
		add(entry, b.before(j))
		var clean []string
		meet := "1"
		if b.guarded(j + 1) {
			spoils = true
			switch {
			case b.evenlyGuarded():
				clean = append(clean, entry+" > g")
			case b.apart:
				add(spoiled, fieldOf("spoiled", j)) // neither an exclusion nor the event that filled the slot takes step k
				clean = append(clean, spoiled+" != 1")
			default:
				add(spoiled, shifted(fieldOf("spoiled", j)))
				v[guard] = b.marks.guard[j+1]
				clean = append(clean, spoiled+" != 1", "bitAnd(x, {"+guard+"}) = 0")
			}
		}
		if b.tracks() {
			add(used, shifted(fieldOf("used", j)))
			meet = "not has(" + used + ", i)"
			clean = append(clean, meet)
		}
		fill := entry
		if len(clean) > 0 {
			fill = "if(" + strings.Join(clean, " and ") + ", " + entry + ", -1)"
		}
		within := "x - " + entry + " <= {window}"
		entries, meets, useds = append(entries, within, fill), append(meets, within, meet), append(useds, within, used)
		if !b.optional(j) {
			break
		}
	}
	if b.tracks() {
		add("i", insight.Field(idsName))
	}
	var hit []column
	if spoils {
		hit = append(hit, column{nameOf("hit", k), lambdaOver("arrayExists", names, "bitAnd(x, {bit}) > 0 and multiIf("+strings.Join(meets, ", ")+", 0)", arrays, v)})
		if b.evenlyGuarded() {
			add("g", insight.Field(excludedName))
		}
	}
	v["found"] = lambdaOver("arrayMap", names, "multiIf(bitAnd(x, {bit}) = 0, {carry}, "+strings.Join(entries, ", ")+", -1)", arrays, v)
	columns := append([]column{{nameOf("entry", k), expr("arrayFill(e -> e >= 0, {found})", v)}}, hit...)
	if b.tracks() {
		v["made"] = lambdaOver("arrayMap", names, "arrayConcat(multiIf("+strings.Join(useds, ", ")+", u1), arrayResize([i], if(i > 0, 1, 0)))", arrays, v)
		v["filled"] = b.filled(k)
		columns = append(columns, column{nameOf("used", k), expr("arrayFill((u, f) -> f, {made}, {filled})", v)})
	}
	return s.then(append(columns, b.spoiled(k)...)...)
}

// lambdaOver builds function((names…) -> body, arrays…).
func lambdaOver(function string, names []string, body string, arrays []hogql.Expr, v values) hogql.Expr {
	all := maps.Clone(v)
	var places []string
	for i, array := range arrays {
		place := "array" + strconv.Itoa(i)
		all[place] = array
		places = append(places, "{"+place+"}")
	}
	return expr(function+"(("+strings.Join(names, ", ")+") -> "+body+", "+strings.Join(places, ", ")+")", all)
}
