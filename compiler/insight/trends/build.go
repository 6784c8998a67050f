// Package trends builds and shapes TrendsQuery (contract: trends.md).
//
// All series that simply aggregate events share one scan of the events, with a column each. A math that needs more, such as the first event
// of each person, has a SELECT of its own. With a breakdown, the points of each value become arrays, so that ranking the values and merging
// the rest takes one row for each value. Zeros, running sums, formulas and labels are computed from the rows, in shape.go.
package trends

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// The number of breakdown values that a chart shows: the default, that of world maps, and the maximum.
const (
	defaultValues = 25
	mapValues     = 250
	maxValues     = 1000
)

// everyValue is a limit that no breakdown reaches.
const everyValue = 1 << 40

// builder is the state of one Build.
type builder struct {
	q       *Query
	w       *insight.World
	periods []insight.Range // the current one, and the one it is compared with
	common  hogql.Expr      // the condition on all events
	values  []hogql.Expr    // the values of the breakdowns
	whole   []hogql.Expr    // the same before they are cut
	limit   int
	sources []*source
	part    *scope // the part of time to query; nil for the whole periods
}

// lane is one line of the chart, or one number: a series in a period.
type lane struct{ series, period int }

// source is a SELECT that returns the numbers of some lanes, by bucket and breakdown values.
type source struct {
	stage *hogql.Select
	lanes []column
	merge merging
	// keyed reports whether the SELECT has a column of buckets.
	keyed bool
	// uncut reports whether the SELECT groups by values that are cut only later. Their points must add up for that.
	uncut bool
}

// column says where a source has the numbers of a lane.
type column struct {
	lane  lane
	index int
	// seen reports whether another column counts the events behind the number.
	seen bool
}

// Build returns the query of a trend. Its errors are mistakes of the author: *diag.Error.
func Build(q *Query, w *insight.World) (*insight.Built, error) {
	if q.Display == BoxPlot {
		return boxPlot(q, w)
	}
	b, s, err := plan(q, w)
	if err != nil {
		return nil, err
	}
	return &insight.Built{Query: b.final(), Shape: s.shape, Pieces: b.inPieces(), ByClock: q.Display == Slope}, nil
}

// plan returns what builds the query of a trend, and what shapes its rows.
func plan(q *Query, w *insight.World) (*builder, *shaper, error) {
	b := &builder{q: q, w: w}
	if err := b.prepare(); err != nil {
		return nil, nil, err
	}
	formulas, err := parseFormulas(q)
	if err != nil {
		return nil, nil, err
	}
	if err := b.series(); err != nil {
		return nil, nil, err
	}
	s := &shaper{
		q: q, periods: b.periods, limit: b.limit, formulas: formulas, total: b.total(), scale: insight.Scale(&q.Common), several: b.several(),
		cohort: w.CohortName, series: w.Counted, plain: w.PlainValues,
	}
	for _, source := range b.sources {
		s.lanes = append(s.lanes, source.lanes)
	}
	for i := range q.Series {
		m, err := b.measureOf(&q.Series[i])
		if err != nil {
			return nil, nil, err
		}
		s.scaled = append(s.scaled, m.counts)
	}
	return b, s, nil
}

// total reports whether the display shows one number for the whole range.
func (b *builder) total() bool { return b.q.Display.Total() }

// split reports whether the query has a breakdown.
func (b *builder) split() bool { return b.q.Breakdowns != nil }

// bins reports whether one of the breakdowns is a histogram.
func (b *builder) bins() bool {
	return b.split() && slices.ContainsFunc(b.q.Breakdowns.Fields, func(f query.Breakdown) bool { return f.Bins > 0 })
}

// several reports whether the rows say which source they are from, since there can be more than one.
func (b *builder) several() bool { return len(b.sources) != 1 || b.periods[0].All }

func (b *builder) prepare() error {
	if days := len(b.q.DateRange.DaysOfWeek); b.q.Smoothing > 1 && 0 < days && days < 7 {
		return diag.Field(smoothingCode, b.q.Field("trendsFilter.smoothingIntervals"), "Smoothing is not supported together with daysOfWeek")
	}
	interval := b.q.Interval
	if b.total() {
		interval = query.Day
	}
	current, err := insight.Resolve(b.w, &b.q.Common, interval)
	if err != nil {
		return err
	}
	current.Ends = b.q.Display == Slope
	b.periods = []insight.Range{current}
	if b.q.Compare != nil && !current.All {
		previous, err := b.previous(&current)
		if err != nil {
			return err
		}
		b.periods = append(b.periods, previous)
	}
	if b.common, err = b.w.Conditions(&b.q.Common); err != nil {
		return err
	}
	if !b.split() {
		return nil
	}
	b.limit = cmp.Or(b.q.Breakdowns.Limit, defaultValues)
	if b.q.Display == WorldMap { // shows all countries, whatever the limit
		b.limit = mapValues
	}
	b.limit = min(b.limit, maxValues)
	if b.w.AllValues {
		b.limit = everyValue
	}
	members, err := b.w.Cohorts(b.q.Breakdowns)
	if err != nil {
		return err
	}
	b.common = insight.And(b.common, members)
	for i := range b.q.Breakdowns.Fields {
		field := &b.q.Breakdowns.Fields[i]
		whole, err := b.w.WholeBreakdown(field)
		if err != nil {
			return err
		}
		b.whole = append(b.whole, whole)
		if field.Bins == 0 && len(field.Cohorts) == 0 {
			whole = insight.CutBreakdown(whole)
		}
		b.values = append(b.values, whole)
		if insight.Joined(field) { // all cohorts are shown: a rest would count people several times
			b.limit = len(field.Cohorts)
		}
	}
	return nil
}

// previous returns the range that the current one is compared with.
func (b *builder) previous(current *insight.Range) (insight.Range, error) {
	if b.total() {
		return current.PreviousDays(b.w, &b.q.Common, b.q.Interval, b.q.Compare)
	}
	return current.Previous(b.q.Compare)
}

// scope is a part of time that one SELECT covers.
type scope struct {
	bounds  hogql.Expr
	periods []int
}

// scopes returns the parts of time to query. Periods share a part if the bucket of an event shows which of them it counts in, unless each has
// a histogram with ranges of its own.
func (b *builder) scopes() []scope {
	if b.part != nil {
		return []scope{*b.part}
	}
	if len(b.periods) == 1 || !b.bins() && !b.total() && b.periods[0].Whole() && b.periods[1].Whole() {
		bounds := make([]hogql.Expr, len(b.periods))
		all := make([]int, len(b.periods))
		for i := range b.periods {
			bounds[i], all[i] = b.periods[i].Bounds(), i
		}
		return []scope{{insight.Or(bounds...), all}}
	}
	return b.eachPeriod()
}

func (b *builder) eachPeriod() []scope {
	out := make([]scope, len(b.periods))
	for i := range b.periods {
		out[i] = scope{b.periods[i].Bounds(), []int{i}}
	}
	return out
}

// series builds the sources of all series.
func (b *builder) series() error {
	var shared []plain
	for i := range b.q.Series {
		s := &b.q.Series[i]
		m, err := b.measureOf(s)
		if err != nil {
			return err
		}
		condition, err := b.w.Series(s)
		if err != nil {
			return err
		}
		condition = insight.And(condition, m.named)
		switch m.way {
		case direct:
			if b.bins() {
				b.shared([]plain{{i, m, condition}})
			} else {
				shared = append(shared, plain{i, m, condition})
			}
		case alone:
			b.alone(i, m, condition)
		case perActor, perSession:
			b.nested(i, m, condition)
		case window:
			b.window(i, m, condition)
		case firstEver, firstMatch:
			if err := b.first(i, m); err != nil {
				return err
			}
		case firstInRange:
			b.firstInRange(i, m, condition)
		}
	}
	for len(shared) > 0 { // with a breakdown, a SELECT can only have series whose points are merged in the same way
		together := func(p plain) bool { return !b.split() || p.measure.merge == shared[0].measure.merge }
		var now, later []plain
		for _, p := range shared {
			if together(p) {
				now = append(now, p)
			} else {
				later = append(later, p)
			}
		}
		b.shared(now)
		shared = later
	}
	return nil
}

// plain is a series whose number is an aggregate over the events of a bucket.
type plain struct {
	series    int
	measure   measure
	condition hogql.Expr
}

// shared adds one SELECT for several series and both periods; with a histogram, each scope has a SELECT of its own.
func (b *builder) shared(all []plain) {
	parts := b.scopes()
	if b.bins() && len(parts) > 1 {
		for _, part := range parts {
			b.scan(all, []scope{part})
		}
		return
	}
	b.scan(all, parts)
}

// scan adds one SELECT with a column for each series in each part of time.
func (b *builder) scan(all []plain, parts []scope) {
	bounds := make([]hogql.Expr, len(parts))
	for i, part := range parts {
		bounds[i] = part.bounds
	}
	alike := sameCondition(all)
	where := all[0].condition
	if !alike {
		where = anyOf(all)
	}
	src := &source{merge: all[0].measure.merge, keyed: !b.total()}
	values, names := b.values, valueName
	if src.uncut = b.split() && !b.bins() && isAdditive(all); src.uncut {
		values, names = b.whole, wholeName
	}
	src.stage = b.stageBy(insight.Events(&b.q.Common), insight.And(where, b.common, insight.Or(bounds...)), values, names)
	for _, p := range all {
		for _, part := range parts {
			var condition hogql.Expr
			if !alike {
				condition = p.condition
			}
			if len(parts) > 1 {
				condition = insight.And(condition, part.bounds)
			}
			index := b.addColumn(src, p.measure.aggregate(p.measure.of, condition))
			seen := b.split() && !p.measure.present
			if seen {
				b.addSeen(src, index, condition)
			}
			for _, period := range part.periods {
				src.lanes = append(src.lanes, column{lane{p.series, period}, index, seen})
			}
		}
	}
	b.add(src)
}

// isAdditive reports whether the points of two values add up to the points of both. Those of unique actors do not.
func isAdditive(all []plain) bool {
	return !slices.ContainsFunc(all, func(p plain) bool { return p.measure.function != "count" && p.measure.function != "sum" })
}

func sameCondition(all []plain) bool {
	text := func(e hogql.Expr) string { return hogql.PrintExpr(insight.OrTrue(e)) }
	first := text(all[0].condition)
	return !slices.ContainsFunc(all[1:], func(p plain) bool { return text(p.condition) != first })
}

// anyOf returns the condition that an event counts in one of the series; nil if all events do.
func anyOf(all []plain) hogql.Expr {
	var conditions []hogql.Expr
	seen := map[string]bool{}
	for _, p := range all {
		if p.condition == nil {
			return nil
		}
		if text := hogql.PrintExpr(p.condition); !seen[text] {
			seen[text] = true
			conditions = append(conditions, p.condition)
		}
	}
	return insight.Or(conditions...)
}

// stage begins a SELECT over events that is grouped by their bucket and their breakdown values.
func (b *builder) stage(from hogql.Table, where hogql.Expr) *hogql.Select {
	return b.stageBy(from, where, b.values, valueName)
}

func (b *builder) stageBy(from hogql.Table, where hogql.Expr, values []hogql.Expr, names func(int) string) *hogql.Select {
	s := &hogql.Select{From: from, Where: where}
	var keys []hogql.Expr
	if !b.total() {
		s.Columns = append(s.Columns, insight.As(b.periods[0].Bucket(insight.Field("timestamp")), bucketName))
		keys = append(keys, insight.Field(bucketName))
	}
	for i, value := range values {
		s.Columns = append(s.Columns, insight.As(value, names(i)))
		keys = append(keys, insight.Field(names(i)))
	}
	s.GroupBy = insight.GroupBy(keys...)
	return s
}

const bucketName = "bucket"

func valueName(i int) string  { return "breakdown_" + strconv.Itoa(i) }
func wholeName(i int) string  { return "whole_" + strconv.Itoa(i) }
func numberName(i int) string { return "value_" + strconv.Itoa(i) }
func seenName(i int) string   { return "events_" + strconv.Itoa(i) }

// addColumn adds a number to a source and returns its index.
func (b *builder) addColumn(src *source, number hogql.Expr) int {
	index := 0
	for _, c := range src.lanes {
		index = max(index, c.index+1)
	}
	src.stage.Columns = append(src.stage.Columns, insight.As(number, numberName(index)))
	return index
}

// addSeen adds the count of the events behind a number, so that a value that has events but no number is not lost.
func (b *builder) addSeen(src *source, index int, condition hogql.Expr) {
	count := measure{function: "count", present: true}
	src.stage.Columns = append(src.stage.Columns, insight.As(count.aggregate(nil, condition), seenName(index)))
}

func (b *builder) add(src *source) { b.sources = append(b.sources, src) }

// single adds a source for one series and one part of time.
func (b *builder) single(series int, m measure, part scope, stage *hogql.Select, number hogql.Expr) {
	src := &source{stage: stage, merge: m.merge, keyed: !b.total()}
	index := b.addColumn(src, number)
	seen := b.split() && !m.present
	if seen {
		b.addSeen(src, index, nil)
	}
	for _, period := range part.periods {
		src.lanes = append(src.lanes, column{lane{series, period}, index, seen})
	}
	b.add(src)
}

// unsupported returns the mistake of a field that cannot be used.
func unsupported(attr, format string, args ...any) error {
	return diag.Field(diag.InvalidInput, attr, format, args...)
}
