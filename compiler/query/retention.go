package query

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
)

// Retention counts the actors that come back after a start event, by the period of their start and the periods that have
// passed since (contract: retention.md).
type Retention struct {
	Common
	// Start and Return are the events that begin a cohort and that count as coming back.
	Start  Series        `json:"start"`
	Return Series        `json:"return"`
	Type   RetentionType `json:"type"`
	// Period is Hour, Day, Week or Month.
	Period Interval `json:"period"`
	// Intervals is the number of columns, and that of rows when the range has no beginning.
	Intervals int `json:"intervals"`
	// Minimum is how many return events make a period one with a return; 1 at least.
	Minimum int `json:"minimum"`
	// Cumulative counts an actor in all columns up to the last that it reached.
	Cumulative bool `json:"cumulative,omitempty"`
	// Rolling counts windows of 24 hours from an actor's own start in place of periods of the calendar.
	Rolling bool `json:"rolling,omitempty"`
	// Brackets are how many periods each column behind the first covers; nil for one each.
	Brackets []int `json:"brackets,omitempty"`
	// Values adds up a property of the events; nil for counts alone.
	Values     *RetentionValues `json:"values,omitempty"`
	Breakdowns *Breakdowns      `json:"breakdowns,omitempty"`
}

// RetentionType tells what begins an actor's cohort.
type RetentionType string

// The types of retention.
const (
	// Recurring: every period with a start event.
	Recurring RetentionType = "retention_recurring"
	// FirstTime: the period of the first start event ever.
	FirstTime RetentionType = "retention_first_time"
	// FirstEver: the same, if that event is also the first of its name.
	FirstEver RetentionType = "retention_first_ever_occurrence"
)

// RetentionValues is what a retention adds up besides its counts.
type RetentionValues struct {
	// Mean divides the sum by the number of actors.
	Mean     bool   `json:"mean,omitempty"`
	Property string `json:"property"`
	// Person tells that the property is one of people, not of events.
	Person bool `json:"person,omitempty"`
}

// maxRetentionColumns is the most columns of a retention, and the most periods that its brackets cover.
const maxRetentionColumns = 1000

// Columns is the number of the columns, the first one included.
func (q *Retention) Columns() int {
	if q.Brackets != nil {
		return len(q.Brackets) + 1
	}
	return q.Intervals
}

// Kind returns RetentionQuery.
func (*Retention) Kind() string { return "RetentionQuery" }

// Text returns nothing: the node holds no text that positions could point into.
func (*Retention) Text() string { return "" }

func (*Retention) node() {}

// Canonical leaves out what only changes how the answer is shown.
func (q *Retention) Canonical() []byte { return canonical(q.Kind(), q) }

// Parts points at the shared fields. The period is not an interval that a dashboard could replace.
func (q *Retention) Parts() Parts { return Parts{Common: &q.Common, Breakdowns: &q.Breakdowns} }

// Clone gives a copy.
func (q *Retention) Clone() Insight {
	c := *q
	return &c
}

func (r *reader) retention(m map[string]any, at place) Node {
	o := r.object(m, at)
	q := &Retention{Common: r.common(o), Breakdowns: r.breakdowns(o)}
	o.required("retentionFilter")
	if given, ok := o.take("retentionFilter"); ok {
		r.retentionFilter(q, given, o.field("retentionFilter"))
	}
	r.noTarget(o)
	o.close()
	return q
}

var retentionPeriods = map[string]Interval{"Hour": Hour, "Day": Day, "Week": Week, "Month": Month}

func (r *reader) retentionFilter(q *Retention, v any, at place) {
	f := r.object(v, at)
	q.Start, q.Return = r.entity(f, "targetEntity"), r.entity(f, "returningEntity")
	q.Type = RetentionType(f.choice("retentionType", string(Recurring), string(Recurring), string(FirstTime), string(FirstEver)))
	q.Period = retentionPeriods[f.choice("period", "Day", "Hour", "Day", "Week", "Month")]
	q.Intervals = f.intervals()
	if n, _ := f.integer("minimumOccurrences"); n < 0 {
		r.add(f.field("minimumOccurrences"), "greater_than_equal", "Input should be greater than or equal to 0")
	} else {
		q.Minimum = max(n, 1)
	}
	q.Cumulative = f.flag("cumulative")
	q.Rolling = f.choice("timeWindowMode", "strict_calendar_dates", "strict_calendar_dates", "24_hour_windows") == "24_hour_windows"
	q.Brackets = r.brackets(f)
	q.Values = r.retentionValues(f)
	r.noTarget(f)
	shownRetention(f)
	f.close()
}

// shownRetention reads the fields that change only how the answer is shown.
func shownRetention(f *object) {
	f.choice("retentionReference", "", "total", "previous")
	f.choice("meanRetentionCalculation", "", "simple", "weighted", "none")
	f.choice("dashboardDisplay", "", "table_only", "graph_only", "all")
	f.choice("display", "", displays...)
	f.integer("selectedInterval")
	f.flag("showTrendLines")
	f.list("goalLines")
}

// intervals reads the number of columns. An explicit null is another number than none (contract: retention.md, section 1).
func (o *object) intervals() int {
	const whenAbsent, whenNull = 8, 7
	n, ok := o.integer("totalIntervals")
	switch {
	case !ok && !o.has("totalIntervals"):
		return whenAbsent
	case !ok:
		return whenNull
	case n < 1 || n > maxRetentionColumns:
		o.r.add(o.field("totalIntervals"), "value_error", fmt.Sprintf("Input should be from 1 to %d", maxRetentionColumns))
	}
	return n
}

// brackets reads how many periods the columns behind the first cover; fractions are cut off.
func (r *reader) brackets(f *object) []int {
	list := f.list("retentionCustomBrackets")
	if len(list) >= maxRetentionColumns {
		r.add(f.field("retentionCustomBrackets"), "too_long",
			fmt.Sprintf("List should have at most %d items after validation, not %d", maxRetentionColumns-1, len(list)))
		return nil
	}
	var out []int
	total := 0.0
	for i, item := range list {
		at := f.field("retentionCustomBrackets").below(strconv.Itoa(i), true)
		number, ok := item.(json.Number)
		size, err := number.Float64()
		if !ok || err != nil {
			r.add(at, "float_type", "Input should be a valid number")
			continue
		}
		size = math.Trunc(size)
		total += size
		if size < 1 || total > maxRetentionColumns {
			r.add(at, "value_error", fmt.Sprintf("Brackets should cover 1 period each at least, and %d together at most", maxRetentionColumns))
			continue
		}
		out = append(out, int(size))
	}
	return out
}

// retentionValues reads what is added up besides the counts; nil for nothing, and as long as no property is named.
func (r *reader) retentionValues(f *object) *RetentionValues {
	how := f.choice("aggregationType", "count", "count", "sum", "avg")
	out := &RetentionValues{
		Mean: how == "avg", Property: f.text("aggregationProperty"),
		Person: f.choice("aggregationPropertyType", "event", "event", "person") == "person",
	}
	if how == "count" || out.Property == "" {
		return nil
	}
	return out
}

// entity reads an event that begins a cohort or counts as coming back: $pageview when it is not there.
func (r *reader) entity(f *object, name string) Series {
	at := f.field(name)
	given, ok := f.take(name)
	if !ok {
		event := "$pageview"
		return Series{At: at.attr, Kind: EventsNode, Event: &event}
	}
	o := r.object(given, at)
	out := Series{At: at.attr, Kind: EventsNode}
	kind := o.choice("type", "events", "events", "actions", "data_warehouse", "new_entity", "groups")
	switch kind {
	case "data_warehouse", "new_entity", "groups":
		r.add(o.field("type"), "value_error", "Entities of type '"+kind+"' are not supported: use events")
	}
	if o.choice("kind", string(EventsNode), string(EventsNode), string(ActionsNode)) == string(ActionsNode) || kind == "actions" {
		out.Kind = ActionsNode
		o.required("id")
		out.Action = r.actionID(o)
	} else if event, ok := take[string](o, "id", "string_type", "Input should be a valid string"); ok {
		out.Event = &event
	}
	out.Name, out.CustomName = o.text("name"), o.text("custom_name")
	out.Properties = r.properties(o, "properties")
	o.integer("order")
	for _, name := range []string{"uuid", "table_name", "timestamp_field", "aggregation_target_field"} { // of a data warehouse
		o.text(name)
	}
	o.close()
	return out
}

// actionID reads the id of an action, which clients send as a number or as text.
func (r *reader) actionID(o *object) int {
	given, ok := o.take("id")
	if !ok {
		return 0
	}
	id, err := strconv.Atoi(fmt.Sprint(given))
	if err != nil {
		r.add(o.field("id"), "int_type", "Input should be a valid integer")
	}
	return id
}
