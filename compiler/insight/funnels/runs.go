package funnels

// runs makes a row for each run of the matching that an actor needs: with the attribution by step one for each value, in trends one for
// each period in which the actor enters.
func (b *builder) runs(s stage) stage {
	if s.has(valuesName) {
		s = b.runOfEachValue(s)
	}
	if s.has(startsName) && b.q.Order != Unordered {
		s = b.runOfEachPeriod(s)
	}
	return s
}

// attributionStep is the step (from 1) whose events give the values.
func (b *builder) attributionStep() int {
	if b.q.AttributionStep == nil {
		return 1
	}
	return *b.q.AttributionStep + 1
}

// runOfEachValue makes a run for each value of the attribution step's events. In each run only events with its value can take that step;
// others are marked "held", since they do not empty the step's slot in a strict funnel.
func (b *builder) runOfEachValue(s stage) stage {
	bit := b.marks.step(b.attributionStep())
	v := values{"bit": bit, "held": bit | b.marks.held()}
	if b.q.Order == Unordered {
		return b.openedByValue(s)
	}
	s = s.each(expr("arrayDistinct(arrayFilter((v, x) -> bitAnd(x, {bit}) > 0, values_, items))", v), valueName)
	return s.then(column{itemsName, expr("arrayMap((x, v) -> if(bitAnd(x, {bit}) > 0 and v != value, bitXor(x, {held}), x), items, values_)", v)}).without(valuesName)
}

// openedByValue makes a run for each value of any event. In an unordered funnel, an event with another value only counts while there are
// others in the window (contract: funnels.md, section 9). So a part of the events begins after each exclusion, and after each gap longer than the
// window, and each part keeps its events from the first one with the run's value on.
func (b *builder) openedByValue(s stage) stage {
	v := values{"steps": b.marks.allSteps(), "all": b.marks.all(), "window": b.marks.span(b.marks.window)}
	s = s.each(expr("arrayDistinct(values_)", nil), valueName)
	s = s.then(column{"open", expr(`arrayFill(o -> o >= 0, arrayMap(
		(x, v, before) -> multiIf(bitAnd(x, {steps}) = 0, 0, v = value, 1, x - before + bitAnd(before, {all}) > {window}, 0, -1),
		items, values_, _arrayShiftRight(items, 1)))`, v)})
	if s.has(startsName) {
		s = s.then(column{startsName, expr("arrayFilter((p, x, o) -> o > 0 or bitAnd(x, {steps}) = 0, periods, items, open)", v)})
	}
	return s.then(column{itemsName, expr("arrayFilter((x, o) -> o > 0 or bitAnd(x, {steps}) = 0, items, open)", v)}).without("open", valuesName)
}

// closesName is the column of the last entry of a period.
const closesName = "closes"

// runOfEachPeriod makes a run for each period with entries. In a run only the entries of its period begin attempts: those from its first
// event to closes. Events outside the window of the last one are left out.
func (b *builder) runOfEachPeriod(s stage) stage {
	v := values{"window": b.marks.span(b.marks.window), "all": b.marks.all()}
	s = s.each(expr("arrayDistinct(arrayFilter((p, x) -> bitAnd(x, 1) > 0, periods, items))", nil), periodName)
	s = s.then(column{"entries", expr("arrayFilter((x, p) -> bitAnd(x, 1) > 0 and p = period, items, periods)", nil)})
	s = s.then(column{"opens", expr("entries[1]", nil)}, column{closesName, expr("entries[-1]", nil)})
	s = s.then(column{itemsName, expr("arrayFilter(x -> x >= opens and x - closes + bitAnd(closes, {all}) <= {window}, items)", v)})
	return s.without("entries", "opens", startsName)
}

// partition returns the columns that are the same in all runs of an actor over the periods.
func (b *builder) partition() []string {
	if b.value != nil {
		return []string{actorName, valueName}
	}
	return []string{actorName}
}
