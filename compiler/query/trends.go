package query

import (
	"strconv"
	"strings"
)

// Trends counts events over time (contract: trends.md).
type Trends struct {
	Common
	Series     []Series    `json:"series"`
	Interval   Interval    `json:"interval"`
	Breakdowns *Breakdowns `json:"breakdowns,omitempty"`
	Compare    *Compare    `json:"compare,omitempty"`
	Display    Display     `json:"display"`
	// Formulas are computed from the series, which are then not answered themselves.
	Formulas []Formula `json:"formulas,omitempty"`
	// Smoothing is over how many points each point is averaged; 0 and 1 for none.
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
	WorldMap       Display = "WorldMap"
)

// displays are the words of the wire, total those that show one number for the whole range.
var (
	displays = strings.Fields(`Auto ActionsLineGraph ActionsBar ActionsUnstackedBar ActionsStackedBar ActionsAreaGraph
ActionsLineGraphCumulative BoldNumber ActionsPie ActionsBarValue ActionsTable WorldMap CalendarHeatmap TwoDimensionalHeatmap BoxPlot`)
	totals = map[Display]bool{
		"BoldNumber": true, "ActionsPie": true, "ActionsBarValue": true, "ActionsTable": true, WorldMap: true,
		"CalendarHeatmap": true, "TwoDimensionalHeatmap": true,
	}
)

// Total tells a display that shows one number for the whole range.
func (d Display) Total() bool { return totals[d] }

// shown are the fields of trendsFilter that change no number.
var shownFields = strings.Fields(`aggregationAxisFormat aggregationAxisPrefix aggregationAxisPostfix decimalPlaces minDecimalPlaces
showLegend showAlertThresholdLines showValuesOnSeries showLabelsOnSeries showPercentStackView showMultipleYAxes yAxisScaleType
hiddenLegendIndexes hideWeekends resultCustomizationBy resultCustomizations goalLines showConfidenceIntervals confidenceLevel
showTrendLines showMovingAverage movingAverageIntervals detailedResultsAggregationType excludeBoxPlotOutliers`)

// Kind returns TrendsQuery.
func (*Trends) Kind() string { return "TrendsQuery" }

// Text returns nothing: the node holds no text that positions could point into.
func (*Trends) Text() string { return "" }

func (*Trends) node() {}

// Canonical keeps all that the answer holds, echoed fields included.
func (q *Trends) Canonical() []byte { return canonical(q.Kind(), q) }

// Parts points at the shared fields.
func (q *Trends) Parts() Parts {
	return Parts{Common: &q.Common, Interval: &q.Interval, Breakdowns: &q.Breakdowns, Compare: &q.Compare}
}

// Clone gives a copy.
func (q *Trends) Clone() Insight {
	c := *q
	return &c
}

func (r *reader) trends(m map[string]any, at place) Node {
	o := r.object(m, at)
	q := &Trends{
		Common: r.common(o), Series: r.series(o), Interval: r.interval(o), Breakdowns: r.breakdowns(o), Compare: r.compare(o), Display: Line,
	}
	if given, ok := o.take("trendsFilter"); ok {
		r.trendsFilter(q, given, o.field("trendsFilter"))
	}
	if _, ok := o.take("conversionGoal"); ok {
		r.add(o.field("conversionGoal"), "value_error", "Conversion goals are not supported")
	}
	o.close()
	return q
}

// mostSmoothing bounds the points that one point is averaged over.
const mostSmoothing = 1000

func (r *reader) trendsFilter(q *Trends, v any, at place) {
	f := r.object(v, at)
	q.Display = Display(f.choice("display", string(Line), displays...))
	if q.Display == "BoxPlot" {
		r.add(f.field("display"), "value_error", "Box plots are not supported")
	}
	q.Formulas = r.formulas(f)
	if n, ok := f.integer("smoothingIntervals"); ok {
		if n < 1 || n > mostSmoothing {
			r.add(f.field("smoothingIntervals"), "value_error", "Input should be from 1 to "+strconv.Itoa(mostSmoothing))
		}
		q.Smoothing = n
	}
	if n := r.bins(f, "breakdown_histogram_bin_count"); n > 0 && q.Breakdowns != nil {
		for i := range q.Breakdowns.Fields {
			if q.Breakdowns.Fields[i].Bins == 0 && !q.Breakdowns.Multiple && q.Breakdowns.Fields[i].Type != cohortType {
				q.Breakdowns.Fields[i].Bins = n
			}
		}
	}
	for _, name := range shownFields {
		if value, ok := f.take(name); ok {
			if q.Shown == nil {
				q.Shown = map[string]any{}
			}
			q.Shown[name] = value
		}
	}
	f.close()
}

// maxFormulas bounds the formulas of one query.
const maxFormulas = 100

// formulas reads formulaNodes, else formulas, else formula.
func (r *reader) formulas(f *object) []Formula {
	var nodes, list, one []Formula
	for i, item := range f.list("formulaNodes") {
		n := r.object(item, f.field("formulaNodes").below(strconv.Itoa(i), true))
		nodes = append(nodes, Formula{At: n.field("formula").attr, Text: n.need("formula"), CustomName: n.text("custom_name")})
		n.close()
	}
	for i, item := range f.list("formulas") {
		at := f.field("formulas").below(strconv.Itoa(i), true)
		text, ok := item.(string)
		if !ok {
			r.add(at, "string_type", "Input should be a valid string")
		}
		list = append(list, Formula{At: at.attr, Text: text})
	}
	if text := f.text("formula"); text != "" {
		one = append(one, Formula{At: f.field("formula").attr, Text: text})
	}
	for _, given := range [][]Formula{nodes, list, one} {
		if len(given) > maxFormulas {
			r.add(f.at, "too_long", "There are more than "+strconv.Itoa(maxFormulas)+" formulas")
		}
		if len(given) > 0 {
			return given
		}
	}
	return nil
}
