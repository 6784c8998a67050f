package retention

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// Query counts the actors that come back after a start event, by the period of their start and the number of periods since then (contract:
// retention.md).
type Query struct {
	query.Common
	// Start and Return are the events that begin a cohort and that count as coming back.
	Start  query.Series `json:"start"`
	Return query.Series `json:"return"`
	Type   Type         `json:"type"`
	// Period is Hour, Day, Week or Month.
	Period query.Interval `json:"period"`
	// Intervals is the number of columns, and of rows if the range has no start.
	Intervals int `json:"intervals"`
	// Minimum is the number of return events that a period with a return has at least; 1 or more.
	Minimum int `json:"minimum"`
	// Cumulative counts an actor in all columns up to the last one that it reached.
	Cumulative bool `json:"cumulative,omitempty"`
	// Rolling counts windows of 24 hours from an actor's own start instead of calendar periods.
	Rolling bool `json:"rolling,omitempty"`
	// Brackets are the numbers of periods that the columns after the first cover; nil for one each.
	Brackets []int `json:"brackets,omitempty"`
	// Values adds up a property of the events; nil for counts only.
	Values     *Values           `json:"values,omitempty"`
	Breakdowns *query.Breakdowns `json:"breakdowns,omitempty"`
}

// Type says what begins an actor's cohort.
type Type string

// The types of retention.
const (
	// Recurring: every period with a start event.
	Recurring Type = "retention_recurring"
	// FirstTime: the period of the first start event ever.
	FirstTime Type = "retention_first_time"
	// FirstEver: the same, if that event is also the first of its name.
	FirstEver Type = "retention_first_ever_occurrence"
)

// Values says what a retention adds up besides its counts.
type Values struct {
	// Mean divides the sum by the number of actors.
	Mean     bool   `json:"mean,omitempty"`
	Property string `json:"property"`
	// Person reports whether it is a property of people, not of events.
	Person bool `json:"person,omitempty"`
}

// maxRetentionColumns is the maximum number of columns of a retention, and of the periods that its brackets cover.
const maxRetentionColumns = 1000

// Columns returns the number of columns, including the first one.
func (q *Query) Columns() int {
	if q.Brackets != nil {
		return len(q.Brackets) + 1
	}
	return q.Intervals
}

// Kind returns RetentionQuery.
func (*Query) Kind() string { return "RetentionQuery" }

// Canonical leaves out what only changes how the answer is shown.
func (q *Query) Canonical() []byte { return query.Canonical(q.Kind(), q) }

// Parts points at the shared fields. The period is not an interval that a dashboard could replace.
func (q *Query) Parts() query.Parts { return query.Parts{Common: &q.Common, Breakdowns: &q.Breakdowns} }

// Bucket returns the period.
func (q *Query) Bucket() query.Interval { return q.Period }

// Clone returns a copy.
func (q *Query) Clone() query.Insight {
	c := *q
	return &c
}

// Read reads a RetentionQuery.
func Read(r *query.Reader, o *query.Object) query.Node {
	q := &Query{Common: r.Common(o), Breakdowns: r.Breakdowns(o)}
	o.Required("retentionFilter")
	if given, ok := o.Take("retentionFilter"); ok {
		retentionFilter(r, q, given, o.Field("retentionFilter"))
	}
	r.NoTarget(o)
	o.Close()
	return q
}

var retentionPeriods = map[string]query.Interval{"Hour": query.Hour, "Day": query.Day, "Week": query.Week, "Month": query.Month}

func retentionFilter(r *query.Reader, q *Query, v any, at query.Place) {
	f := r.Object(v, at)
	q.Start, q.Return = entity(r, f, "targetEntity"), entity(r, f, "returningEntity")
	q.Type = Type(f.Choice("retentionType", string(Recurring), string(Recurring), string(FirstTime), string(FirstEver)))
	q.Period = retentionPeriods[f.Choice("period", "Day", "Hour", "Day", "Week", "Month")]
	q.Intervals = intervals(r, f)
	if n, _ := f.Integer("minimumOccurrences"); n < 0 {
		r.Add(f.Field("minimumOccurrences"), "greater_than_equal", "Input should be greater than or equal to 0")
	} else {
		q.Minimum = max(n, 1)
	}
	q.Cumulative = f.Flag("cumulative")
	q.Rolling = f.Choice("timeWindowMode", "strict_calendar_dates", "strict_calendar_dates", "24_hour_windows") == "24_hour_windows"
	q.Brackets = brackets(r, f)
	q.Values = retentionValues(f)
	r.NoTarget(f)
	shownRetention(f)
	f.Close()
}

// shownRetention reads the fields that only change how the answer is shown.
func shownRetention(f *query.Object) {
	f.Choice("retentionReference", "", "total", "previous")
	f.Choice("meanRetentionCalculation", "", "simple", "weighted", "none")
	f.Choice("dashboardDisplay", "", "table_only", "graph_only", "all")
	f.Choice("display", "", query.Displays...)
	f.Integer("selectedInterval")
	f.Number("cohortLabelStartIndex")
	f.Display()
}

// intervals reads the number of columns. An explicit null or 0 has a different default than a missing field (contract: retention.md, section 1).
func intervals(r *query.Reader, o *query.Object) int {
	const whenAbsent, whenNone = 8, 7
	n, ok := o.Integer("totalIntervals")
	switch {
	case !ok && !o.Has("totalIntervals"):
		return whenAbsent
	case n == 0: // or null
		return whenNone
	case n < 1 || n > maxRetentionColumns:
		r.Add(o.Field("totalIntervals"), "value_error", fmt.Sprintf("Input should be from 1 to %d", maxRetentionColumns))
	}
	return n
}

// brackets reads the number of periods that each column after the first covers; fractions are cut off.
func brackets(r *query.Reader, f *query.Object) []int {
	list := f.List("retentionCustomBrackets")
	if len(list) >= maxRetentionColumns {
		r.Add(f.Field("retentionCustomBrackets"), "too_long",
			fmt.Sprintf("List should have at most %d items after validation, not %d", maxRetentionColumns-1, len(list)))
		return nil
	}
	var out []int
	total := 0.0
	for i, item := range list {
		at := f.Field("retentionCustomBrackets").Below(strconv.Itoa(i), true)
		number, ok := item.(json.Number)
		size, err := number.Float64()
		if !ok || err != nil {
			r.Add(at, "float_type", "Input should be a valid number")
			continue
		}
		size = math.Trunc(size)
		total += size
		if size < 1 || total > maxRetentionColumns {
			r.Add(at, "value_error", fmt.Sprintf("Brackets should cover 1 period each at least, and %d together at most", maxRetentionColumns))
			continue
		}
		out = append(out, int(size))
	}
	return out
}

// retentionValues reads what is added up besides the counts; nil for nothing, and if no property is given.
func retentionValues(f *query.Object) *Values {
	how := f.Choice("aggregationType", "count", "count", "sum", "avg")
	out := &Values{
		Mean: how == "avg", Property: f.Text("aggregationProperty"),
		Person: f.Choice("aggregationPropertyType", "event", "event", "person") == "person",
	}
	if how == "count" || out.Property == "" {
		return nil
	}
	return out
}

// entity reads an event that begins a cohort or counts as coming back; $pageview if it is missing.
func entity(r *query.Reader, f *query.Object, name string) query.Series {
	at := f.Field(name)
	given, ok := f.Take(name)
	if !ok {
		event := "$pageview"
		return query.Series{At: at.Attr, Kind: query.EventsNode, Event: &event, EventField: "id"}
	}
	o := r.Object(given, at)
	out := query.Series{At: at.Attr, Kind: query.EventsNode, EventField: "id"}
	kind := o.Choice("type", "events", "events", "actions", "data_warehouse", "new_entity", "groups")
	switch kind {
	case "data_warehouse", "new_entity", "groups":
		r.Add(o.Field("type"), "value_error", "Entities of type '"+kind+"' are not supported: use events")
	}
	if o.Choice("kind", string(query.EventsNode), string(query.EventsNode), string(query.ActionsNode)) == string(query.ActionsNode) || kind == "actions" {
		if !o.Has("id") {
			o.Required("id")
		}
		if id, ok := o.ActionID("id"); ok { // null means every event: contract actions.md, section 3
			out.Kind, out.Action = query.ActionsNode, id
		}
	} else if event, ok := query.Take[string](o, "id", "string_type", "Input should be a valid string"); ok {
		out.Event = &event
	}
	out.Name, out.CustomName = o.Text("name"), o.Text("custom_name")
	out.Properties = r.Properties(o, "properties")
	o.Integer("order")
	for _, name := range []string{"uuid", "table_name", "timestamp_field", "aggregation_target_field"} { // fields of a data warehouse
		o.Text(name)
	}
	o.Close()
	return out
}
