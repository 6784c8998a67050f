package funnels

import (
	"slices"
	"strconv"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// The columns of journeys. Arrays have an element for each event of the actor, in order.
const (
	actorName  = "actor"
	itemsName  = "items"   // packed events: see marks
	valueName  = "value"   // the breakdown value
	valuesName = "values_" // the breakdown values beside the items; for the attribution by step
	periodName = "period"  // the period of trends
	startsName = "periods" // the periods of trends beside the items
)

// journeys gathers the events of each actor in one scan. It leaves out events of no step and no exclusion, except in a strict funnel, which
// any event may break.
func (b *builder) journeys() stage {
	where := b.where
	if !b.strict() {
		where = insight.And(where, b.anySource())
	}
	q := &hogql.Select{From: insight.Events(&b.q.Common), Where: where, Columns: []hogql.Expr{insight.As(b.actor, actorName)}}
	out := stage{names: []string{actorName}}
	keys := []hogql.Expr{insight.Field(actorName)}
	riders := []column{{itemsName, b.marks.item(b.mask())}}
	if b.q.Viz == VizTrends {
		riders = append(riders, column{startsName, b.dates.Bucket(insight.Field("timestamp"))})
	}
	if b.value != nil {
		switch b.attribution() {
		case AllEvents:
			keys = append(keys, insight.Field(valueName))
			q.Columns, out.names = append(q.Columns, insight.As(b.value.x, valueName)), append(out.names, valueName)
		case FirstTouch, LastTouch:
			q.Columns, out.names = append(q.Columns, insight.As(b.touch(), valueName)), append(out.names, valueName)
		case ByStep:
			riders = append(riders, column{valuesName, b.value.x})
		}
	}
	q.GroupBy = insight.GroupBy(keys...)
	if len(riders) == 1 {
		q.Columns, out.names = append(q.Columns, insight.As(expr("arraySort(groupArray({item}))", values{"item": riders[0].x}), itemsName)), append(out.names, itemsName)
		out.query = q
		return out
	}
	tuple := &hogql.Tuple{}
	for _, r := range riders {
		tuple.Items = append(tuple.Items, r.x)
	}
	const together = "together"
	q.Columns, out.names = append(q.Columns, insight.As(expr("arraySort(groupArray({event}))", values{"event": tuple}), together)), append(out.names, together)
	out.query = q
	var columns []column
	for i, r := range riders {
		columns = append(columns, column{r.name, &hogql.Element{X: insight.Field(together), N: i + 1}})
	}
	return out.then(columns...).without(together)
}

// anySource returns the condition that an event is of a step or an exclusion; nil if all are.
func (b *builder) anySource() hogql.Expr {
	conditions := make([]hogql.Expr, len(b.sources))
	for i, s := range b.sources {
		if s.condition == nil {
			return nil
		}
		conditions[i] = s.condition
	}
	return insight.Or(conditions...)
}

// mask returns the bits of an event.
func (b *builder) mask() hogql.Expr {
	if b.apart {
		choice := &hogql.Call{Name: "multiIf"}
		for _, s := range b.sources {
			choice.Args = append(choice.Args, insight.OrTrue(s.condition), insight.Const(s.mask))
		}
		choice.Args = append(choice.Args, insight.Const(int64(0)))
		return choice
	}
	var mask hogql.Expr
	for _, s := range b.sources {
		bits := insight.Const(s.mask)
		if s.condition != nil {
			bits = insight.Call("if", s.condition, bits, insight.Const(int64(0)))
		}
		if mask == nil {
			mask = bits
		} else {
			mask = insight.Call("bitOr", mask, bits)
		}
	}
	return mask
}

// value is the breakdown value of an event: a text, or a list of texts.
type value struct {
	x       hogql.Expr
	members []hogql.Expr
	whole   hogql.Expr // the only member before its text is cut
	// list reports whether the answer has lists instead of texts, cohort whether the value is the id of a cohort.
	list, cohort bool
	// outsiders reports whether actors outside of the only cohort have a value too: that of outsider.
	outsiders bool
}

// outsider stands for a cohort's id: everybody who is not in the only cohort of a breakdown.
const outsider = 1 << 52

var outsiderValue = strconv.Itoa(outsider)

// attribution says which events give an actor its value: for cohorts all of them, since an actor's cohorts are the same on all of its
// events.
func (b *builder) attribution() Attribution {
	if b.value.cohort {
		return AllEvents
	}
	return b.q.Attribution
}

func (b *builder) breakdown() (*value, error) {
	out := &value{}
	members, err := b.w.Cohorts(b.q.Breakdowns)
	if err != nil {
		return nil, err
	}
	if fields := b.q.Breakdowns.Fields; len(fields) == 1 && members != nil {
		id := strconv.FormatInt(fields[0].Cohorts[0].ID, 10)
		out.x = insight.Call("if", members, insight.Const(id), insight.Const(outsiderValue))
		out.members, out.whole, out.cohort, out.list, out.outsiders = []hogql.Expr{out.x}, out.x, true, true, true
		return out, nil
	}
	b.where = insight.And(b.where, members)
	for _, f := range b.q.Breakdowns.Fields {
		f.Bins = 0 // funnels have no histograms
		member, err := b.w.Breakdown(&f)
		if err != nil {
			return nil, err
		}
		out.members = append(out.members, member)
		if out.whole, err = b.w.WholeBreakdown(&f); err != nil {
			return nil, err
		}
	}
	out.x = out.members[0]
	if len(out.members) > 1 {
		out.x = insight.Call("array", out.members...)
	}
	kind := b.q.Breakdowns.Fields[0].Type
	out.cohort = len(out.members) == 1 && kind == "cohort"
	out.list = len(out.members) > 1 || kind != "group" || b.q.Breakdowns.List
	return out, nil
}

// missing returns the value of an actor that has none.
func (v *value) missing() hogql.Expr {
	if len(v.members) == 1 {
		return insight.Const("")
	}
	return insight.Call("array", slices.Repeat([]hogql.Expr{insight.Const("")}, len(v.members))...)
}

// touch returns the value of the first or the last event that has one.
func (b *builder) touch() hogql.Expr {
	name := "argMinIf"
	if b.attribution() == LastTouch {
		name = "argMaxIf"
	}
	if whole := b.value.whole; len(b.value.members) == 1 { // cut once for an actor, not once for an event
		return insight.CutBreakdown(insight.Call(name, whole, insight.Field("timestamp"), insight.Call("notEmpty", whole)))
	}
	given := make([]hogql.Expr, len(b.value.members))
	for i, m := range b.value.members {
		given[i] = insight.Call("notEmpty", m)
	}
	touched := insight.Call(name, b.value.x, insight.Field("timestamp"), insight.Or(given...))
	return expr("if(empty({touched}), {missing}, {touched})", values{"touched": touched, "missing": b.value.missing()})
}
