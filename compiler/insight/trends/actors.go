package trends

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// drill is a request for the actors behind a point of a chart.
type drill struct {
	*builder
	at      *query.InsightActors
	lane    lane
	measure measure
}

// Actors returns the query for the actors behind a point of a trend, or behind its one number: those whose events count there. For the math
// of first times these are the actors whose first event is there, for active users those seen in the days that end with the point, and in a
// running total those of all points up to it. The columns beside their ids are event_count, event_distinct_ids of people and, except for
// first times, last_seen. The error is a *diag.Error.
func Actors(q *Query, at *query.InsightActors, w *insight.World) (*insight.People, error) {
	q, err := oneCohort(q, at)
	if err != nil {
		return nil, err
	}
	d := &drill{builder: &builder{q: q, w: w}, at: at}
	if err := d.prepare(); err != nil {
		return nil, err
	}
	if at.Series != nil {
		d.lane.series = *at.Series
	}
	if d.lane.series >= len(q.Series) {
		return nil, diag.Field(diag.InvalidInput, at.Field("series"), "The insight has no series %d", d.lane.series)
	}
	if at.Compare != nil && *at.Compare == "previous" {
		if d.lane.period = 1; len(d.periods) < 2 {
			return nil, diag.Field(diag.InvalidInput, at.Field("compare"), "The insight is not compared with a previous period")
		}
	}
	if d.measure, err = d.measureOf(&q.Series[d.lane.series]); err != nil {
		return nil, err
	}
	r, from, end, err := d.span()
	if err != nil {
		return nil, err
	}
	if d.measure.way == firstEver || d.measure.way == firstMatch {
		return d.byFirstEvent(&r, from, end)
	}
	return d.byEvents(&r, from, end)
}

// oneCohort keeps only the cohort asked for in a breakdown by cohorts. If none is asked for, it drops the breakdown, so that nobody is
// listed twice.
func oneCohort(q *Query, at *query.InsightActors) (*Query, error) {
	if q.Breakdowns == nil || !slices.ContainsFunc(q.Breakdowns.Fields, func(f query.Breakdown) bool { return len(f.Cohorts) > 0 }) {
		return q, nil
	}
	out, split := *q, *q.Breakdowns
	out.Breakdowns, split.Fields = &split, slices.Clone(split.Fields)
	wanted, isList := at.Breakdown.([]any)
	if !isList {
		wanted = []any{at.Breakdown}
	}
	for k := range split.Fields {
		field := &split.Fields[k]
		switch {
		case len(field.Cohorts) == 0, k >= len(wanted), wanted[k] == insight.OtherValue:
		case at.Breakdown != nil:
			value, err := insight.CohortValue(field, textOf(wanted[k]), at.Field("breakdown"))
			if err != nil {
				return nil, err
			}
			field.Cohorts = slices.DeleteFunc(slices.Clone(field.Cohorts), func(c query.Cohort) bool { return strconv.FormatInt(c.ID, 10) != value })
		case insight.Joined(field):
			out.Breakdowns = nil
		}
	}
	return &out, nil
}

// textOf converts a value of an answer to the text of a breakdown value.
func textOf(value any) string {
	if number, ok := value.(json.Number); ok {
		return number.String()
	}
	text, _ := value.(string)
	return text
}

// span returns the time in which events count: within r, the end of which is the last moment that counts, at or after from, and before end.
// A zero end means that only r is the upper bound.
//
// A point covers the interval that starts at the given day, even beyond the range; but a range of explicit dates cuts off what is outside, and
// a running total has only what is in the range.
func (d *drill) span() (r insight.Range, from, end time.Time, err error) {
	r = d.periods[d.lane.period]
	r.Ends = false // any day may be asked for
	given := d.at.Day != nil && *d.at.Day != ""
	if d.total() {
		if given {
			return r, from, end, diag.Field(diag.InvalidInput, d.at.Field("day"), "A `day` is forbidden for trends actors queries with total value aggregation")
		}
		from = r.Lower
		if d.measure.way == window {
			from = r.To.AddDate(0, 0, -d.measure.days)
		}
		return r, from, end, nil
	}
	if !given {
		return r, from, end, diag.Field(diag.InvalidInput, d.at.Field("day"), "A `day` is required for trends actors queries without total value aggregation")
	}
	last, err := d.day()
	if err != nil {
		return r, from, end, err
	}
	first := last
	if d.q.Display == CumulativeLine {
		first = r.Floor(r.From)
	}
	from, end = first, r.Next(last)
	if d.measure.way == window {
		from, end = d.window(first, last)
	}
	if !d.q.DateRange.Explicit && d.q.Display != CumulativeLine {
		r.To = end.Add(-time.Microsecond)
		if from.Before(r.Lower) {
			r.Lower = from
		}
		return r, from, time.Time{}, nil
	}
	if d.measure.way != window && r.Lower.After(from) {
		from = r.Lower
	}
	return r, from, end, nil
}

// day returns the time asked for. A time of the previous period may be given as it is or, as in PostHog, as the time that it is compared
// with. A time in neither period is shifted back by the distance between the periods.
func (d *drill) day() (time.Time, error) {
	current := &d.periods[0]
	day, err := insight.ReadDay(d.w, *d.at.Day, d.at.Field("day"))
	if err != nil {
		return day, err
	}
	if day = day.In(d.w.Zone()); d.lane.period == 0 {
		return day, nil
	}
	previous := &d.periods[1]
	theirs := previous.Buckets()
	if i := slices.IndexFunc(current.Buckets(), current.Floor(day).Equal); i >= 0 {
		if i < len(theirs) {
			return theirs[i], nil
		}
		return day, diag.Field(diag.InvalidInput, d.at.Field("day"), "The previous period has no bucket at this place")
	}
	if own := previous.Floor(day); slices.ContainsFunc(theirs, own.Equal) {
		return own, nil
	}
	return previous.Floor(previous.Shifted(day, current)), nil
}

// window returns the span of the windows that end with the buckets first to last.
func (d *drill) window(first, last time.Time) (from, end time.Time) {
	if d.q.Interval.Clock() > 0 {
		r := &d.periods[0]
		length := time.Duration(d.measure.days) * 24 * time.Hour
		return r.Next(first).Add(-length), r.Next(last)
	}
	return first.AddDate(0, 0, 1-d.measure.days), last.AddDate(0, 0, 1)
}

// byEvents returns the query for the actors whose events count.
func (d *drill) byEvents(r *insight.Range, from, end time.Time) (*insight.People, error) {
	s := &d.q.Series[d.lane.series]
	condition, err := d.w.Series(s)
	if err != nil {
		return nil, err
	}
	values, err := d.value(func(k int) hogql.Expr { return d.values[k] })
	if err != nil {
		return nil, err
	}
	where := insight.And(condition, d.measure.named, d.common, r.BoundsFrom(from), before(insight.Field("timestamp"), end), values)
	return insight.PeopleOf(insight.EventSet{From: insight.Events(&d.q.Common), Where: where}, d.measure.group, d.at.Recordings), nil
}

// before returns the condition that a time is before end; nil if end is zero.
func before(x hogql.Expr, end time.Time) hogql.Expr {
	if end.IsZero() {
		return nil
	}
	return insight.Compare(x, hogql.Less, insight.Const(end))
}

// byFirstEvent returns the query for the actors whose first event is in a span of time.
func (d *drill) byFirstEvent(r *insight.Range, from, end time.Time) (*insight.People, error) {
	inner, matches, err := d.firstEvents(d.lane.series, d.measure, r)
	if err != nil {
		return nil, err
	}
	inner.Columns = append(inner.Columns, insight.As(d.measure.actor, insight.ActorID))
	values, err := d.value(func(k int) hogql.Expr { return insight.Field(valueName(k)) })
	if err != nil {
		return nil, err
	}
	first := insight.Field("first")
	where := insight.And(r.BoundsOf(first), insight.Compare(first, hogql.GreaterOrEquals, insight.Const(from)), matches, values, before(first, end))
	condition, err := d.w.Series(&d.q.Series[d.lane.series])
	if err != nil {
		return nil, err
	}
	events := &hogql.Select{From: insight.From(inner), Where: where, Columns: []hogql.Expr{insight.Field(insight.ActorID), first}}
	out := &insight.People{
		Group: d.measure.group, Extra: []string{insight.EventCount},
		Events: &insight.EventSet{From: insight.Events(&d.q.Common), Where: insight.And(condition, d.measure.named, d.common, insight.Compare(
			&hogql.Tuple{Items: []hogql.Expr{d.measure.actor, insight.Field("timestamp")}}, hogql.In, &hogql.Subquery{Query: events},
		))},
	}
	withIDs := *inner
	people := &hogql.Select{
		From: insight.From(&withIDs), Where: where,
		Columns: []hogql.Expr{insight.Field(insight.ActorID), insight.As(insight.Const(int64(1)), insight.EventCount)},
	}
	if d.measure.group == nil {
		withIDs.Columns = append(slices.Clip(inner.Columns), insight.As(
			insight.Call("argMin", insight.Call("array", insight.Field("distinct_id")), insight.Field("timestamp")), insight.EventDistinctIDs))
		people.Columns = append(people.Columns, insight.Field(insight.EventDistinctIDs))
		out.Extra, out.Always = append(out.Extra, insight.EventDistinctIDs), []string{insight.EventDistinctIDs}
	}
	if d.at.Recordings {
		withIDs.Columns = append(slices.Clip(withIDs.Columns), insight.As(firstEvent(insight.And(condition, d.common)), insight.MatchingEvents))
		people.Columns = append(people.Columns, insight.Field(insight.MatchingEvents))
		out.Extra = append(out.Extra, insight.MatchingEvents)
	}
	out.Query = people
	return out, nil
}

// firstEvent returns the aggregate for the matching events of an actor: its first event that satisfies the filters, which may be nil.
func firstEvent(filters hogql.Expr) hogql.Expr {
	args := []hogql.Expr{insight.Call("array", insight.MatchingEvent()), insight.Field("timestamp")}
	if filters == nil {
		return insight.Call("argMin", args...)
	}
	return insight.Call("argMinIf", append(args, filters)...)
}

// value returns the condition that a row has the breakdown value asked for; nil if none is. x returns a row's value of a breakdown.
func (d *drill) value(x func(k int) hogql.Expr) (hogql.Expr, error) {
	if !d.split() || d.at.Breakdown == nil {
		return nil, nil
	}
	wanted, ok := d.at.Breakdown.([]any)
	if !ok {
		wanted = []any{d.at.Breakdown}
	}
	if len(wanted) != len(d.values) {
		return nil, diag.Field(diag.InvalidInput, d.at.Field("breakdown"), "The insight has %d breakdowns, this value has %d parts", len(d.values), len(wanted))
	}
	row := make([]hogql.Expr, len(wanted))
	for k := range wanted {
		row[k] = x(k)
	}
	if slices.Contains(wanted, any(insight.OtherValue)) && !d.bins() {
		src, err := d.source()
		if err != nil {
			return nil, err
		}
		return d.rest(src, row), nil
	}
	same := make([]hogql.Expr, len(wanted))
	for k, value := range wanted {
		field, text := &d.q.Breakdowns.Fields[k], textOf(value)
		switch {
		case len(field.Cohorts) > 0: // only the cohort asked for is left: see oneCohort
		case text == insight.OtherValue: // beside a histogram: any value
		case field.Bins > 0:
			var err error
			if same[k], err = d.inBin(row[k], text); err != nil {
				return nil, err
			}
		case text == insight.NullValue:
			same[k] = insight.Eq(row[k], insight.Const(""))
		default:
			same[k] = insight.Eq(row[k], insight.Const(text))
		}
	}
	return insight.And(same...), nil
}

// allBins is PostHog's value for all ranges of a histogram together.
const allBins = `["",""]`

// inBin returns the condition that a number is in a range, such as [10,20], without its end; nil for any number. The range does not have to
// be one of the histogram's.
func (d *drill) inBin(x hogql.Expr, text string) (hogql.Expr, error) {
	switch text {
	case allBins:
		return nil, nil
	case insight.NullValue:
		return insight.Eq(x, insight.Const(nil)), nil
	}
	var ends []*float64
	if err := json.Unmarshal([]byte(text), &ends); err != nil || len(ends) != 2 || ends[0] == nil || ends[1] == nil {
		return nil, diag.Field(diag.InvalidInput, d.at.Field("breakdown"), "The value of a histogram's breakdown is a range, such as '[10,20]'")
	}
	return insight.And(insight.Compare(x, hogql.GreaterOrEquals, insight.Const(*ends[0])), insight.Compare(x, hogql.Less, insight.Const(*ends[1]))), nil
}

// source returns the source that has the numbers of the line.
func (d *drill) source() (*source, error) {
	if err := d.series(); err != nil {
		return nil, err
	}
	for _, src := range d.sources {
		if slices.ContainsFunc(src.lanes, func(c column) bool { return c.lane == d.lane }) {
			return src, nil
		}
	}
	panic("BUG: no source has the numbers of a line")
}

// rest returns the condition that a row has none of the values that the chart shows separately.
func (d *drill) rest(src *source, row []hogql.Expr) hogql.Expr {
	place := slices.IndexFunc(src.lanes, func(c column) bool { return c.lane == d.lane })
	shown := &hogql.Select{
		From: insight.From(d.ranked(0, src)),
		Where: insight.And(insight.Eq(insight.Field("lane"), insight.Const(int64(place))),
			insight.Compare(insight.Field("place"), hogql.LessOrEquals, insight.Const(int64(d.limit)))),
	}
	for k := range row {
		shown.Columns = append(shown.Columns, insight.Call("arrayElement", insight.Field("breakdown"), insight.Const(int64(k+1))))
	}
	left := row[0]
	if len(row) > 1 {
		left = &hogql.Tuple{Items: row}
	}
	return insight.Compare(left, hogql.NotIn, &hogql.Subquery{Query: shown})
}
