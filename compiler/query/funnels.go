package query

import (
	"strconv"
	"time"
)

// Funnels counts actors that pass steps within a window of time (contract: funnels.md).
type Funnels struct {
	Common
	// Series are the steps in their order.
	Series     []Series     `json:"series"`
	Interval   Interval     `json:"interval"`
	Breakdowns *Breakdowns  `json:"breakdowns,omitempty"`
	Viz        FunnelViz    `json:"viz"`
	Order      FunnelOrder  `json:"order"`
	Window     FunnelWindow `json:"window"`
	// Exclusions are events that must not come between two steps.
	Exclusions []FunnelExclusion `json:"exclusions,omitempty"`
	// From and To are the steps, counted from 0, that trends and times to convert are about; nil for the first and the last.
	From *int `json:"from,omitempty"`
	To   *int `json:"to,omitempty"`
	// Bins is how many ranges times to convert are put in; nil for a number that suits them.
	Bins *int `json:"bins,omitempty"`
	// AggregateBy is a HogQL expression whose values are counted in place of people; empty for people.
	AggregateBy string `json:"aggregate_by,omitempty"`
	// Attribution says which of an actor's events give the value of a breakdown.
	Attribution Attribution `json:"attribution"`
	// AttributionStep is the step, counted from 0, of the attribution by step; nil when none is given.
	AttributionStep *int `json:"attribution_step,omitempty"`
	// HideIncomplete leaves periods out of trends whose window is still open.
	HideIncomplete bool `json:"hide_incomplete,omitempty"`
}

// FunnelViz is what a funnel answers with.
type FunnelViz string

// What funnels answer with.
const (
	FunnelSteps         FunnelViz = "steps"
	FunnelTrends        FunnelViz = "trends"
	FunnelTimeToConvert FunnelViz = "time_to_convert"
	// FunnelFlow is a word of the wire whose answer nobody describes.
	FunnelFlow FunnelViz = "flow"
)

// FunnelOrder says in which order the events of an actor have to come.
type FunnelOrder string

// The orders: Strict allows no other event between two steps.
const (
	Ordered   FunnelOrder = "ordered"
	Strict    FunnelOrder = "strict"
	Unordered FunnelOrder = "unordered"
)

// Attribution says which of an actor's events give the value of a breakdown.
type Attribution string

// The attributions.
const (
	FirstTouch Attribution = "first_touch"
	LastTouch  Attribution = "last_touch"
	AllEvents  Attribution = "all_events"
	ByStep     Attribution = "step"
)

// FunnelExclusion is an event that spoils an attempt when it comes between two steps.
type FunnelExclusion struct {
	Series Series `json:"series"`
	// From and To are steps, counted from 0: it guards the moves into the steps behind From up to To.
	From int `json:"from"`
	To   int `json:"to"`
}

// FunnelWindow is how long an attempt may take.
type FunnelWindow struct {
	Count int    `json:"count"`
	Unit  string `json:"unit"`
}

// defaultWindow is the count of a window that has none, or one that is not positive.
const defaultWindow = 14

// windowUnits are the units of windows with their lengths, and the longest windows in each: a year.
var windowUnits = map[string]struct {
	length time.Duration
	most   int
}{
	"second": {time.Second, 365 * 24 * 60 * 60},
	"minute": {time.Minute, 365 * 24 * 60},
	"hour":   {time.Hour, 365 * 24},
	"day":    {24 * time.Hour, 365},
	"week":   {7 * 24 * time.Hour, 53},
	"month":  {31 * 24 * time.Hour, 12},
}

// Duration is the length of the window. Time zones do not change it.
func (w FunnelWindow) Duration() time.Duration {
	return time.Duration(w.Count) * windowUnits[w.Unit].length
}

// TooLong tells a window longer than a year of its unit.
func (w FunnelWindow) TooLong() bool { return w.Count > windowUnits[w.Unit].most }

// FromStep and ToStep are the steps, counted from 0, that trends and times to convert are about.
func (q *Funnels) FromStep() int {
	if q.From == nil {
		return 0
	}
	return *q.From
}

// ToStep is the last of those steps.
func (q *Funnels) ToStep() int {
	if q.To == nil {
		return len(q.Series) - 1
	}
	return *q.To
}

// Kind returns FunnelsQuery.
func (*Funnels) Kind() string { return "FunnelsQuery" }

// Text returns nothing: the node holds no text that positions could point into.
func (*Funnels) Text() string { return "" }

func (*Funnels) node() {}

// Canonical leaves out what only changes how the answer is shown.
func (q *Funnels) Canonical() []byte { return canonical(q.Kind(), q) }

// Parts points at the shared fields.
func (q *Funnels) Parts() Parts {
	return Parts{Common: &q.Common, Interval: &q.Interval, Breakdowns: &q.Breakdowns}
}

// Clone gives a copy.
func (q *Funnels) Clone() Insight {
	c := *q
	return &c
}

func (r *reader) funnels(m map[string]any, at place) Node {
	o := r.object(m, at)
	q := &Funnels{
		Common: r.common(o), Series: r.series(o), Interval: r.interval(o), Breakdowns: r.breakdowns(o),
		Viz: FunnelSteps, Order: Ordered, Window: FunnelWindow{defaultWindow, "day"}, Attribution: FirstTouch,
	}
	if given, ok := o.take("funnelsFilter"); ok {
		r.funnelsFilter(q, r.object(given, o.field("funnelsFilter")))
	}
	if r.compare(o) != nil {
		r.add(o.field("compareFilter"), "value_error", "Funnels cannot be compared with another period")
	}
	r.noTarget(o)
	o.close()
	return q
}

// shownFunnel are the fields of funnelsFilter that change no number.
var shownFunnel = []string{
	"funnelStepReference", "layout", "hiddenLegendBreakdowns", "resultCustomizations", "goalLines", "showValuesOnSeries", "showTrendLines",
	"breakdownSorting", "useUdf",
}

func (r *reader) funnelsFilter(q *Funnels, f *object) {
	q.Viz = FunnelViz(f.choice("funnelVizType", string(FunnelSteps), string(FunnelSteps), string(FunnelTrends), string(FunnelTimeToConvert), string(FunnelFlow)))
	q.Order = FunnelOrder(f.choice("funnelOrderType", string(Ordered), string(Ordered), string(Strict), string(Unordered)))
	if n, ok := f.integer("funnelWindowInterval"); ok && n > 0 {
		q.Window.Count = n
	}
	q.Window.Unit = f.choice("funnelWindowIntervalUnit", "day", "second", "minute", "hour", "day", "week", "month")
	q.From, q.To = f.integerOrNil("funnelFromStep"), f.integerOrNil("funnelToStep")
	if f.m["binCount"] == "auto" {
		f.ignore("binCount")
	} else {
		q.Bins = f.integerOrNil("binCount")
	}
	q.AggregateBy = f.text("funnelAggregateByHogQL")
	q.Attribution = Attribution(f.choice("breakdownAttributionType", string(FirstTouch), string(FirstTouch), string(LastTouch), string(AllEvents), string(ByStep)))
	q.AttributionStep = f.integerOrNil("breakdownAttributionValue")
	q.HideIncomplete = f.flag("hideIncompleteConversionWindowPeriods")
	q.Exclusions = r.exclusions(f)
	f.ignore(shownFunnel...)
	r.noTarget(f)
	f.close()
}

// exclusions reads nodes of series that say between which steps they count.
func (r *reader) exclusions(f *object) []FunnelExclusion {
	list := f.list("exclusions")
	if len(list) > maxSeries {
		r.add(f.field("exclusions"), "too_long", "There are too many exclusions")
		return nil
	}
	var out []FunnelExclusion
	for i, item := range list {
		at := f.field("exclusions").below(strconv.Itoa(i), true)
		o := r.object(item, at)
		o.required("funnelFromStep", "funnelToStep")
		from, _ := o.integer("funnelFromStep")
		to, _ := o.integer("funnelToStep")
		node := make(map[string]any, len(o.m))
		for name, value := range o.m {
			if name != "funnelFromStep" && name != "funnelToStep" {
				node[name] = value
			}
		}
		if o.m != nil {
			out = append(out, FunnelExclusion{Series: r.seriesNode(node, at, true), From: from, To: to})
		}
	}
	return out
}

func (o *object) integerOrNil(name string) *int {
	n, ok := o.integer(name)
	if !ok {
		return nil
	}
	return &n
}
