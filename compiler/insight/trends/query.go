package trends

import (
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// Query counts events over time (contract: trends.md).
type Query struct {
	query.Common
	Series     []query.Series    `json:"series"`
	Interval   query.Interval    `json:"interval"`
	Breakdowns *query.Breakdowns `json:"breakdowns,omitempty"`
	Compare    *query.Compare    `json:"compare,omitempty"`
	// CompareFilter is what compareFilter says, even if it asks for no comparison.
	CompareFilter query.Compare `json:"-"`
	Display       Display       `json:"display"`
	// Formulas are computed from the series, which are then not in the answer themselves.
	Formulas []Formula `json:"formulas,omitempty"`
	// FormulaField is the field of trendsFilter that has the formulas.
	FormulaField string `json:"formula_field,omitempty"`
	// Smoothing is the number of points that each point is averaged over; 0 and 1 for no smoothing.
	Smoothing int `json:"smoothing,omitempty"`
	// Shown is the rest of trendsFilter, which is only echoed.
	Shown map[string]any `json:"shown,omitempty"`
}

// Formula is computed from the points of series A, B and so on.
type Formula struct {
	// At is the place of the formula's text in the JSON.
	At         string `json:"-"`
	Text       string `json:"formula"`
	CustomName string `json:"custom_name,omitempty"`
}

// Display is the kind of chart.
type Display string

// The displays that change numbers. All others show points over time as Line does.
const (
	Line           Display = "ActionsLineGraph"
	CumulativeLine Display = "ActionsLineGraphCumulative"
	Metric         Display = "Metric"
	WorldMap       Display = "WorldMap"
	// Slope shows only the first and the last point.
	Slope Display = "SlopeGraph"
)

// totals are the displays that show one number for the whole range.
var totals = map[Display]bool{
	"BoldNumber": true, "ActionsPie": true, "ActionsBarValue": true, "ActionsTable": true, WorldMap: true,
	"ActionsDonut": true, "ActionsProportionBar": true, "CalendarHeatmap": true, "TwoDimensionalHeatmap": true,
}

// uncompared are the displays that have no place for a second period.
var uncompared = map[Display]bool{WorldMap: true, Slope: true, "ActionsProportionBar": true, "CalendarHeatmap": true}

// Total reports whether a display shows one number for the whole range.
func (d Display) Total() bool { return totals[d] }

// shownFields are the fields of trendsFilter that change no number, although their names do not say so.
var shownFields = strings.Fields(`decimalPlaces minDecimalPlaces hideWeekends resultCustomizationBy resultCustomizations confidenceLevel
movingAverageIntervals detailedResultsAggregationType excludeBoxPlotOutliers`)

// Kind returns TrendsQuery.
func (*Query) Kind() string { return "TrendsQuery" }

// Canonical keeps everything that the answer contains, echoed fields included.
func (q *Query) Canonical() []byte { return query.Canonical(q.Kind(), q) }

// Parts points at the shared fields.
func (q *Query) Parts() query.Parts {
	parts := query.Parts{Common: &q.Common, Interval: &q.Interval, Breakdowns: &q.Breakdowns}
	if q.compares(false) {
		parts.Compared = &q.CompareFilter
	}
	if !uncompared[q.Display] {
		parts.Compare = &q.Compare
	}
	return parts
}

// Clone returns a copy.
func (q *Query) Clone() query.Insight {
	c := *q
	return &c
}

// Read reads a TrendsQuery.
func Read(r *query.Reader, o *query.Object) query.Node {
	q := &Query{
		Common: r.Common(o), Series: r.Series(o), Interval: r.Interval(o), Breakdowns: r.Breakdowns(o), Display: Line,
	}
	if given, ok := o.Take("trendsFilter"); ok {
		trendsFilter(r, q, given, o.Field("trendsFilter"))
	}
	var on bool
	if q.CompareFilter, on = r.CompareFilter(o); q.compares(on) {
		q.Compare = &q.CompareFilter
	}
	if q.Display == Slope {
		q.Smoothing = 0 // two points have no mean
	}
	r.BySession(o) // only a CalendarHeatmapQuery counts by the hour
	if _, ok := o.Take("conversionGoal"); ok {
		r.Add(o.Field("conversionGoal"), "value_error", "Conversion goals are not supported")
	}
	o.Close()
	return q
}

// maxSmoothing is the maximum number of points that one point is averaged over.
const maxSmoothing = 1000

func trendsFilter(r *query.Reader, q *Query, v any, at query.Place) {
	f := r.Object(v, at)
	q.Display = Display(f.Choice("display", string(Line), query.Displays...))
	q.Formulas, q.FormulaField = formulas(r, f)
	if n, ok := f.Integer("smoothingIntervals"); ok {
		if n < 1 || n > maxSmoothing {
			r.Add(f.Field("smoothingIntervals"), "value_error", "Input should be from 1 to "+strconv.Itoa(maxSmoothing))
		}
		q.Smoothing = n
	}
	if n := r.Bins(f, "breakdown_histogram_bin_count"); n > 0 && q.Breakdowns != nil {
		for i := range q.Breakdowns.Fields {
			if q.Breakdowns.Fields[i].Bins == 0 && !q.Breakdowns.Multiple && q.Breakdowns.Fields[i].Type != query.CohortType {
				q.Breakdowns.Fields[i].Bins = n
			}
		}
	}
	q.Shown = f.Display(shownFields...)
	f.Close()
}

// compares reports whether the trend is compared with an earlier period; asked is whether its compareFilter says so. The two points of a
// slope are compared with each other.
func (q *Query) compares(asked bool) bool {
	return asked && q.Display != Slope || q.Display == Metric && q.DateRange.From != "all" && showsChange(q.Shown)
}

// showsChange reports whether a metric shows by how much its number differs from that of the previous period. The latest point alone is
// compared with the one before it, for which no other period is needed.
func showsChange(shown map[string]any) bool {
	return shown["metricShowChange"] != false && shown["metricSummary"] != "latest"
}

// maxFormulas is the maximum number of formulas of a query.
const maxFormulas = 100

// formulas reads formulaNodes, else formulas, else formula, and returns the name of the field that it has read; empty if there are none.
func formulas(r *query.Reader, f *query.Object) (all []Formula, field string) {
	var nodes, list, one []Formula
	for i, item := range f.List("formulaNodes") {
		n := r.Object(item, f.Field("formulaNodes").Below(strconv.Itoa(i), true))
		nodes = append(nodes, Formula{At: n.Field("formula").Attr, Text: n.Need("formula"), CustomName: n.Text("custom_name")})
		n.Close()
	}
	for i, item := range f.List("formulas") {
		at := f.Field("formulas").Below(strconv.Itoa(i), true)
		text, ok := item.(string)
		if !ok {
			r.Add(at, "string_type", "Input should be a valid string")
		}
		list = append(list, Formula{At: at.Attr, Text: text})
	}
	if text := f.Text("formula"); text != "" {
		one = append(one, Formula{At: f.Field("formula").Attr, Text: text})
	}
	for _, given := range []struct {
		all   []Formula
		field string
	}{{nodes, "formulaNodes"}, {list, "formulas"}, {one, "formula"}} {
		if len(given.all) > maxFormulas {
			r.Add(f.At, "too_long", "There are more than "+strconv.Itoa(maxFormulas)+" formulas")
		}
		if len(given.all) > 0 {
			return given.all, given.field
		}
	}
	return nil, ""
}
