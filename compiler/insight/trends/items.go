package trends

import (
	"cmp"
	"encoding/json"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// item is one item of the results (contract: api.md, section 1.5, and trends.md, section 6).
type item struct {
	Data         values         `json:"data"`
	Labels       []string       `json:"labels,omitzero"` // nil for a total
	Days         []string       `json:"days"`
	Count        value          `json:"count"`
	Aggregated   *value         `json:"aggregated_value,omitempty"`
	Label        string         `json:"label"`
	Action       *action        `json:"action"`
	Filter       map[string]any `json:"filter"`
	Order        int            `json:"order"`
	Compare      bool           `json:"compare,omitempty"`
	CompareLabel string         `json:"compare_label,omitempty"`
	Breakdown    any            `json:"breakdown_value,omitempty"`
	Incomplete   *bool          `json:"incomplete_end,omitempty"` // of a slope: whether the last bucket is still running
}

// action describes the series of an item.
type action struct {
	Days         []time.Time    `json:"days"`
	ID           any            `json:"id"`
	Type         string         `json:"type"`
	Order        int            `json:"order"`
	Name         string         `json:"name"`
	CustomName   *string        `json:"custom_name"`
	Math         *string        `json:"math"`
	MathProperty *string        `json:"math_property"`
	MathHogQL    *string        `json:"math_hogql"`
	MathGroup    *int           `json:"math_group_type_index"`
	Properties   map[string]any `json:"properties"`
}

// value is a number of an answer, null in JSON if it is not finite.
type value float64

// MarshalJSON writes the number.
func (v value) MarshalJSON() ([]byte, error) {
	f := float64(v)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	if f == 0 {
		f = 0 // without a sign
	}
	return json.Marshal(f)
}

// values are the points of an answer; nil is null.
type values []value

func valuesOf(points []float64) values {
	out := make(values, len(points))
	for i, p := range points {
		out[i] = value(p)
	}
	return out
}

func (s *shaper) items(lines []line, axes []*axis) iter.Seq[item] {
	return func(yield func(item) bool) {
		echo := s.echo()
		for i := range lines {
			l := &lines[i]
			series := &s.q.Series[l.lane.series]
			it := s.item(l, axes)
			it.Filter, it.Order = echo, l.lane.series
			counted := s.series(series)
			it.Label = counted.Name
			if l.values != nil {
				name := strings.Join(s.names(l.values), "::")
				if len(s.q.Series) > 1 {
					name = it.Label + " - " + name
				}
				it.Label = name
			}
			it.Action = actionOf(series, &counted, l.lane.series, axes[0].starts)
			if !yield(it) {
				return
			}
		}
	}
}

// item builds the part of an item that lines and formulas have in common.
func (s *shaper) item(l *line, axes []*axis) item {
	it := item{Data: valuesOf(l.points), Days: []string{}}
	if s.total {
		it.Aggregated = new(value)
		*it.Aggregated = value(l.number)
	} else {
		it.Days, it.Labels, it.Count = axes[l.lane.period].days, axes[l.lane.period].labels, value(l.count)
	}
	if s.q.Display == Slope {
		starts := axes[l.lane.period].starts
		it.Incomplete = new(len(starts) > 0 && s.periods[0].Running(starts[len(starts)-1]))
	}
	if s.q.Compare != nil && len(s.periods) > 1 {
		it.Compare, it.CompareLabel = true, "current"
		if l.lane.period > 0 {
			it.CompareLabel = "previous"
		}
	}
	if l.values != nil {
		b := s.q.Breakdowns
		switch {
		case !s.byCohort():
			it.Breakdown = l.values
			if !b.Multiple && !b.List {
				it.Breakdown = l.values[0]
			}
		case b.Multiple:
			it.Breakdown = s.shown(l.values)
		default:
			it.Breakdown = s.shown(l.values)[0]
		}
	}
	return it
}

// byCohort reports whether one of the breakdowns is by cohort.
func (s *shaper) byCohort() bool {
	return slices.ContainsFunc(s.q.Breakdowns.Fields, func(f query.Breakdown) bool { return len(f.Cohorts) > 0 })
}

// names returns the values of a line for people: cohorts by name.
func (s *shaper) names(values []string) []string {
	if !s.byCohort() {
		return values
	}
	out := slices.Clone(values)
	for k, f := range s.q.Breakdowns.Fields {
		if len(f.Cohorts) > 0 {
			out[k] = s.cohort(out[k])
		}
	}
	return out
}

// shown returns the values of a line for programs: a cohort as its id, all people as "all".
func (s *shaper) shown(values []string) []any {
	out := make([]any, len(values))
	for k, value := range values {
		out[k] = value
		if len(s.q.Breakdowns.Fields[k].Cohorts) > 0 {
			out[k] = cohortValue(value)
		}
	}
	return out
}

// cohortValue returns the id of a cohort, given as text.
func cohortValue(text string) any {
	if text == insight.Everybody {
		return "all"
	}
	if id, err := strconv.ParseInt(text, 10, 64); err == nil {
		return id
	}
	return text // not an id: the value that stands for the rest
}

func actionOf(s *query.Series, counted *insight.Counted, order int, days []time.Time) *action {
	text := func(v string) *string {
		if v == "" {
			return nil
		}
		return &v
	}
	a := &action{
		Days: days, ID: counted.ID, Type: counted.Type, Order: order, Name: counted.Name, CustomName: text(customName(s, counted)), Math: text(s.Math.Kind),
		MathProperty: text(s.Math.Property), MathHogQL: text(s.Math.HogQL), MathGroup: s.Math.Group, Properties: map[string]any{},
	}
	if a.Days == nil {
		a.Days = []time.Time{}
	}
	return a
}

// customName returns the name that the author gave a series. A name that only repeats the event's does not count; for an action, only the
// custom name does.
func customName(s *query.Series, counted *insight.Counted) string {
	if s.CustomName == "" && s.Kind != query.ActionsNode && s.Name != counted.Name {
		return s.Name
	}
	return s.CustomName
}

// echo returns the query in the form of PostHog's filters.
func (s *shaper) echo() map[string]any {
	out := map[string]any{
		"insight": "TRENDS", "entity_type": "events", "interval": string(s.q.Interval), "display": string(s.q.Display),
		"filter_test_accounts": s.q.FilterTestAccounts,
	}
	if s.q.Properties != nil {
		out["properties"] = s.q.Properties.Echo()
	}
	if s.q.Sampling != nil {
		out["sampling_factor"] = *s.q.Sampling
	}
	if s.q.Group != nil {
		out["aggregation_group_type_index"] = *s.q.Group
	}
	for name, text := range map[string]string{"date_from": s.q.DateRange.From, "date_to": s.q.DateRange.To} {
		if text != "" {
			out[name] = text
		}
	}
	maps.Copy(out, s.q.Shown)
	if s.q.Smoothing > 0 {
		out["smoothingIntervals"] = s.q.Smoothing
	}
	if len(s.q.Formulas) > 0 {
		out[s.q.FormulaField] = echoFormulas(s.q.FormulaField, s.q.Formulas)
	}
	if s.q.Breakdowns != nil {
		maps.Copy(out, s.q.Breakdowns.Echo())
	}
	return out
}

// echoFormulas returns formulas in the form of a field of trendsFilter.
func echoFormulas(field string, formulas []Formula) any {
	texts := make([]string, len(formulas))
	for i := range formulas {
		texts[i] = formulas[i].Text
	}
	switch field {
	case "formulaNodes":
		return formulas
	case "formulas":
		return texts
	}
	return texts[0]
}

// formulaItems computes the formulas, for each period and each breakdown value that any series has.
func (s *shaper) formulaItems(lines []line, axes []*axis) ([]item, error) {
	groups := s.groups(lines)
	if err := s.checkFormulas(groups); err != nil {
		return nil, err
	}
	echo := s.echo()
	out := []item{}
	for i, f := range s.formulas {
		name := s.q.Formulas[i].CustomName
		if name == "" {
			name = "Formula (" + s.q.Formulas[i].Text + ")"
		}
		var computed []line
		for _, g := range groups {
			computed = append(computed, s.compute(f, g))
		}
		switch {
		case s.placed(): // they keep the order of the groups
		case s.q.Compare != nil:
			orderCompared(computed)
		default:
			orderFormula(computed)
		}
		for k := range computed {
			it := s.item(&computed[k], axes)
			it.Label, it.Order, it.Filter = name, i, echo
			if s.total {
				it.Data = nil
			}
			out = append(out, it)
		}
	}
	return out, nil
}

// checkFormulas refuses formulas that take too long to compute: each is evaluated in every interval of every group, whether there are rows or not.
func (s *shaper) checkFormulas(groups []*group) error {
	text, points := 0, 0
	for i := range s.q.Formulas {
		text += len(s.q.Formulas[i].Text)
	}
	for _, g := range groups {
		points += max(1, len(g.points))
	}
	if text*points > maxComputed {
		return unsupported(s.q.Formulas[0].At, "The formulas have %d characters and are computed for %d points; the product may be %d. "+
			"Use shorter formulas, a longer interval, a shorter range or fewer breakdown values.", text, points, maxComputed)
	}
	return nil
}

// group is the lines of one period and breakdown value, by series.
type group struct {
	line   // the line of the first series that has the value
	series []*line
}

func (s *shaper) groups(lines []line) []*group {
	var out []*group
	at := map[string]*group{}
	for i := range lines {
		l := &lines[i]
		id := strconv.Itoa(l.lane.period) + "\x00" + strings.Join(l.values, "\x00")
		g, ok := at[id]
		if !ok {
			g = &group{line: *l, series: make([]*line, len(s.q.Series))}
			at[id] = g
			out = append(out, g)
		}
		g.series[l.lane.series] = l
	}
	return out
}

// compute computes one formula over one group. A series without the value counts as zeros.
func (s *shaper) compute(f formula, g *group) line {
	out := line{lane: g.lane, values: g.values, other: g.other}
	at := func(of func(*line) float64) float64 {
		x := make([]float64, len(g.series))
		for i, l := range g.series {
			if l != nil {
				x[i] = of(l)
			}
		}
		return f(x)
	}
	if s.total {
		out.number = at(func(l *line) float64 { return l.number })
		return out
	}
	out.points = make([]float64, len(g.points))
	for i := range out.points {
		out.points[i] = at(func(l *line) float64 { return l.points[i] })
	}
	out.count = at(func(l *line) float64 { return sum(l.points) }) // of running totals too
	return out
}

// orderFormula sorts the lines of a formula: larger ones first, but the missing value and the rest last.
func orderFormula(lines []line) {
	last := func(l *line) int {
		most := 0
		for _, v := range l.values {
			most = max(most, lastValues[v])
		}
		return most
	}
	slices.SortStableFunc(lines, func(a, b line) int {
		return cmp.Or(
			cmp.Compare(last(&a), last(&b)), cmp.Compare(b.size(), a.size()),
			cmp.Compare(b.count, a.count), slices.Compare(b.points, a.points), slices.Compare(b.values, a.values),
		)
	})
}

// orderCompared sorts the lines of a formula over several periods: by period, then by count, the larger first. Those of totals all have a
// count of 0, and are sorted by their number instead. Equal lines are sorted by their values. The missing value and the rest have no special
// place.
func orderCompared(lines []line) {
	slices.SortStableFunc(lines, func(a, b line) int {
		return cmp.Or(
			cmp.Compare(a.lane.period, b.lane.period), cmp.Compare(b.count, a.count), cmp.Compare(b.number, a.number),
			slices.CompareFunc(a.values, b.values, natural), slices.Compare(a.values, b.values),
		)
	})
}
