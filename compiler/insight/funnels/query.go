package funnels

import (
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// Query counts actors that pass through steps within a window of time (contract: funnels.md).
type Query struct {
	query.Common
	// Series are the steps in order.
	Series     []query.Series    `json:"series"`
	Interval   query.Interval    `json:"interval"`
	Breakdowns *query.Breakdowns `json:"breakdowns,omitempty"`
	Viz        Viz               `json:"viz"`
	Order      Order             `json:"order"`
	Window     Window            `json:"window"`
	// Exclusions are events that must not come between two steps.
	Exclusions []Exclusion `json:"exclusions,omitempty"`
	// From and To are the steps, counted from 0, that trends and times to convert are about; nil for the first and the last.
	From *int `json:"from,omitempty"`
	To   *int `json:"to,omitempty"`
	// Bins is the number of ranges for times to convert; nil for a number that suits them.
	Bins *int `json:"bins,omitempty"`
	// AggregateBy is a HogQL expression whose values are counted instead of people; empty for people.
	AggregateBy string `json:"aggregate_by,omitempty"`
	// Attribution says which of an actor's events give the breakdown value.
	Attribution Attribution `json:"attribution"`
	// AttributionStep is the step, counted from 0, for the attribution by step; nil if it is not given.
	AttributionStep *int `json:"attribution_step,omitempty"`
	// HideIncomplete leaves out of trends the periods whose window is still open.
	HideIncomplete bool `json:"hide_incomplete,omitempty"`
}

// Viz is the kind of a funnel's answer.
type Viz string

// The kinds of answers.
const (
	VizSteps         Viz = "steps"
	VizTrends        Viz = "trends"
	VizTimeToConvert Viz = "time_to_convert"
	// VizFlow shows the steps in another way. Read replaces it with VizSteps.
	VizFlow Viz = "flow"
)

// Order says in which order the events of an actor must come.
type Order string

// The orders: Strict allows no other event between two steps.
const (
	Ordered   Order = "ordered"
	Strict    Order = "strict"
	Unordered Order = "unordered"
)

// Attribution says which of an actor's events give the breakdown value.
type Attribution string

// The attributions.
const (
	FirstTouch Attribution = "first_touch"
	LastTouch  Attribution = "last_touch"
	AllEvents  Attribution = "all_events"
	ByStep     Attribution = "step"
)

// Exclusion is an event that spoils an attempt if it comes between two steps.
type Exclusion struct {
	Series query.Series `json:"series"`
	// From and To are steps, counted from 0: the exclusion guards the moves into the steps after From, up to To.
	From int `json:"from"`
	To   int `json:"to"`
}

// Window is the time that an attempt may take.
type Window struct {
	Count int    `json:"count"`
	Unit  string `json:"unit"`
}

// defaultWindow is the count of a window that has none, or one that is not positive.
const defaultWindow = 14

// windowUnits are the lengths of the units of windows.
var windowUnits = map[string]time.Duration{
	"second": time.Second, "minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour, "week": 7 * 24 * time.Hour, "month": 31 * 24 * time.Hour,
}

// longestWindow is the maximum length of a window: no two events are further apart.
const longestWindow = 100 * 366 * 24 * time.Hour

// Duration returns the length of the window, at most longestWindow. Time zones do not change it.
func (w Window) Duration() time.Duration {
	unit := windowUnits[w.Unit]
	if w.Count > int(longestWindow/unit) {
		return longestWindow
	}
	return time.Duration(w.Count) * unit
}

// FromStep returns the first step, counted from 0, that trends and times to convert are about.
func (q *Query) FromStep() int {
	if q.From == nil {
		return 0
	}
	return *q.From
}

// ToStep returns the last step, counted from 0, that trends and times to convert are about.
func (q *Query) ToStep() int {
	if q.To == nil {
		return len(q.Series) - 1
	}
	return *q.To
}

// Kind returns FunnelsQuery.
func (*Query) Kind() string { return "FunnelsQuery" }

// Canonical leaves out what only changes how the answer is shown.
func (q *Query) Canonical() []byte { return query.Canonical(q.Kind(), q) }

// Parts points at the shared fields.
func (q *Query) Parts() query.Parts {
	return query.Parts{Common: &q.Common, Interval: &q.Interval, Breakdowns: &q.Breakdowns}
}

// Clone returns a copy.
func (q *Query) Clone() query.Insight {
	c := *q
	return &c
}

// Read reads a FunnelsQuery.
func Read(r *query.Reader, o *query.Object) query.Node {
	q := &Query{
		Common: r.Common(o), Series: r.Series(o), Interval: r.Interval(o), Breakdowns: r.Breakdowns(o),
		Viz: VizSteps, Order: Ordered, Window: Window{defaultWindow, "day"}, Attribution: FirstTouch,
	}
	if given, ok := o.Take("funnelsFilter"); ok {
		funnelsFilter(r, q, r.Object(given, o.Field("funnelsFilter")))
	}
	if r.Compare(o) != nil {
		r.Add(o.Field("compareFilter"), "value_error", "Funnels cannot be compared with another period")
	}
	r.NoTarget(o)
	o.Close()
	return q
}

// shownFunnel are the fields of funnelsFilter that change no number, although their names do not say so.
var shownFunnel = []string{"funnelStepReference", "resultCustomizations", "breakdownSorting", "useUdf"}

func funnelsFilter(r *query.Reader, q *Query, f *query.Object) {
	q.Viz = Viz(f.Choice("funnelVizType", string(VizSteps), string(VizSteps), string(VizTrends), string(VizTimeToConvert), string(VizFlow)))
	if q.Viz == VizFlow { // another way to show the steps
		q.Viz = VizSteps
	}
	q.Order = Order(f.Choice("funnelOrderType", string(Ordered), string(Ordered), string(Strict), string(Unordered)))
	if n, ok := f.Integer("funnelWindowInterval"); ok && n > 0 {
		q.Window.Count = n
	}
	q.Window.Unit = f.Choice("funnelWindowIntervalUnit", "day", "second", "minute", "hour", "day", "week", "month")
	q.From, q.To = f.IntegerOrNil("funnelFromStep"), f.IntegerOrNil("funnelToStep")
	if f.Given["binCount"] == "auto" {
		f.Ignore("binCount")
	} else {
		q.Bins = f.IntegerOrNil("binCount")
	}
	q.AggregateBy = f.Text("funnelAggregateByHogQL")
	q.Attribution = Attribution(f.Choice("breakdownAttributionType", string(FirstTouch), string(FirstTouch), string(LastTouch), string(AllEvents), string(ByStep)))
	q.AttributionStep = f.IntegerOrNil("breakdownAttributionValue")
	q.HideIncomplete = f.Flag("hideIncompleteConversionWindowPeriods")
	q.Exclusions = exclusions(r, f)
	if f.Flag("funnelHoldConstantBreakdown") {
		r.Refuse(f.Field("funnelHoldConstantBreakdown"), "A funnel that holds its breakdown constant is not supported")
	}
	if f.Choice("funnelWindowBoundary", "clip", "clip", "extend") == "extend" {
		r.Refuse(f.Field("funnelWindowBoundary"), "Only steps within the date range count: funnelWindowBoundary has to be clip")
	}
	r.NoTarget(f)
	f.Display(shownFunnel...)
	f.Close()
}

// exclusions reads series nodes that also say between which steps they count.
func exclusions(r *query.Reader, f *query.Object) []Exclusion {
	list := f.List("exclusions")
	if len(list) > query.MaxSeries {
		r.Add(f.Field("exclusions"), "too_long", "There are too many exclusions")
		return nil
	}
	var out []Exclusion
	for i, item := range list {
		at := f.Field("exclusions").Below(strconv.Itoa(i), true)
		o := r.Object(item, at)
		o.Required("funnelFromStep", "funnelToStep")
		from, _ := o.Integer("funnelFromStep")
		to, _ := o.Integer("funnelToStep")
		node := make(map[string]any, len(o.Given))
		for name, value := range o.Given {
			if name != "funnelFromStep" && name != "funnelToStep" {
				node[name] = value
			}
		}
		if o.Given != nil {
			out = append(out, Exclusion{Series: r.SeriesNode(node, at, true), From: from, To: to})
		}
	}
	return out
}
