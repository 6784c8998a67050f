package trends

import (
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// alone adds sources for the user's own aggregate expression. A result that is not a finite number counts as 0.
func (b *builder) alone(series int, m measure, condition hogql.Expr) {
	for _, part := range b.scopes() {
		number := insight.TemplateExpr("ifNull(if(isFinite(toFloat({x})), toFloat({x}), 0), 0)", map[string]any{"x": m.of})
		stage := b.stage(insight.Events(&b.q.Common), insight.And(condition, b.common, part.bounds))
		b.single(series, m, part, stage, number)
	}
}

// nested adds sources for a statistic over the numbers of the actors or sessions in a bucket.
func (b *builder) nested(series int, m measure, condition hogql.Expr) {
	for _, part := range b.scopes() {
		inner := b.stage(insight.Events(&b.q.Common), insight.And(condition, b.common, part.bounds))
		key, number := m.actor, insight.Call("count")
		if m.way == perSession {
			key, number = insight.Field("$session_id"), insight.Call("any", m.of)
		}
		inner.Columns = append(inner.Columns, insight.As(number, "number"))
		if inner.GroupBy == nil {
			inner.GroupBy = insight.GroupBy()
		}
		inner.GroupBy = insight.GroupBy(append(keysOf(inner), key)...)
		b.single(series, m, part, b.over(inner), m.aggregate(insight.Field("number"), nil))
	}
}

func keysOf(s *hogql.Select) []hogql.Expr {
	if s.GroupBy == nil {
		return nil
	}
	return s.GroupBy.Keys
}

// over begins a SELECT over another one, grouped by its bucket and breakdown values.
func (b *builder) over(inner hogql.Query) *hogql.Select {
	s := &hogql.Select{From: insight.From(inner)}
	var keys []hogql.Expr
	if !b.total() {
		keys = append(keys, insight.Field(bucketName))
	}
	for i := range b.values {
		keys = append(keys, insight.Field(valueName(i)))
	}
	s.Columns = append(s.Columns, keys...)
	s.GroupBy = insight.GroupBy(keys...)
	return s
}

// byActor begins a SELECT with one row for each actor and breakdown value; columns are its first columns.
func (b *builder) byActor(m measure, where hogql.Expr, columns ...hogql.Expr) *hogql.Select {
	s := &hogql.Select{From: insight.Events(&b.q.Common), Where: where, Columns: columns}
	keys := []hogql.Expr{m.actor}
	for i, value := range b.values {
		s.Columns = append(s.Columns, insight.As(value, valueName(i)))
		keys = append(keys, insight.Field(valueName(i)))
	}
	s.GroupBy = insight.GroupBy(keys...)
	return s
}

// window adds sources for the actors in the days that end with each bucket. The windows of an actor's events that overlap or touch form a run.
// It adds one to the number at its first step and takes it away after its last; the number in a step is the sum of the changes up to it. So
// the work grows with the events, not with the length of the windows.
func (b *builder) window(series int, m measure, condition hogql.Expr) {
	for i := range b.periods {
		r, part := &b.periods[i], scope{periods: []int{i}}
		if b.total() {
			stage := b.stage(insight.Events(&b.q.Common), insight.And(condition, b.common, r.BoundsFrom(r.To.AddDate(0, 0, -m.days))))
			b.single(series, m, part, stage, m.aggregate(m.of, nil))
			continue
		}
		steps := b.steps(r, m.days)
		sizes := map[string]any{"length": int64(steps.length), "first": int64(steps.first), "end": int64(steps.end), "step": steps.of}
		expr := func(text, name string) hogql.Expr { return insight.As(insight.TemplateExpr(text, sizes), name) }
		actors := b.byActor(m, insight.And(condition, b.common, r.BoundsFrom(steps.lower)), expr("arraySort(groupUniqArray({step}))", "steps"))
		runs := b.outer(actors, expr("arrayJoin(arrayFlatten(arrayMap(run -> [(run[1], 1), (run[-1] + {length}, -1)], "+
			"arraySplit((step, gap) -> gap > {length}, steps, arrayDifference(steps)))))", "change"))
		sums := b.outer(runs, expr("greatest(change.1, {first})", "since"), expr("sum(change.2)", "difference"))
		sums.Where = insight.TemplateExpr("change.1 < {end}", sizes)
		sums.GroupBy = insight.GroupBy(append(b.valueFields(), insight.Field("since"))...)
		changes := b.outer(sums, expr("arraySort(groupArray((since, difference)))", "changes"))
		changes.GroupBy = insight.GroupBy(b.valueFields()...)
		levels := b.outer(changes, expr("arrayJoin(arrayZip(arrayMap(change -> change.1, changes), arrayCumSum(change -> change.2, changes), "+
			"arrayPopFront(arrayPushBack(arrayMap(change -> change.1, changes), {end}))))", "level")) // since when, how many, until when
		// Slices of one constant array, and not a range for each row: the engine limits the elements that range makes at once.
		points := b.outer(levels, expr("level.2", "actors"),
			expr("arrayJoin(arraySlice(range({first}, {end}), level.1 - {first} + 1, level.3 - level.1))", "step"))
		points.Where = insight.TemplateExpr("level.2 > 0", nil)
		stage := b.outer(points, insight.As(steps.bucket, bucketName))
		stage.Where = onAxis(r, insight.Field(bucketName))
		b.single(series, m, part, stage, insight.Field("actors"))
	}
}

// onAxis returns the condition that a day, hour or minute of the range is the key of a bucket of its axis; nil if all are.
func onAxis(r *insight.Range, key hogql.Expr) hogql.Expr {
	if r.Ends && !r.All {
		var ends []hogql.Expr
		for _, start := range r.Buckets() {
			ends = append(ends, insight.Eq(key, r.KeyExpr(start)))
		}
		return insight.Or(ends...)
	}
	switch r.Interval {
	case query.Day:
		return r.Weekdays(key)
	case query.Week:
		return insight.Eq(r.Bucket(key), key)
	default:
		return nil
	}
}

// outer begins a SELECT over another one with some columns, and the breakdown values.
func (b *builder) outer(inner hogql.Query, columns ...hogql.Expr) *hogql.Select {
	return &hogql.Select{From: insight.From(inner), Columns: append(columns, b.valueFields()...)}
}

// valueFields returns the fields of the breakdown values; nil if there are none.
func (b *builder) valueFields() []hogql.Expr {
	var out []hogql.Expr
	for i := range b.values {
		out = append(out, insight.Field(valueName(i)))
	}
	return out
}

// steps divides the time of a range, and of the windows before it, into steps of a day, an hour, a minute or a second, counted from 0.
type steps struct {
	length     int        // of a window
	first, end int        // of the steps that may be shown: the first one, and the one after the last
	lower      time.Time  // of the first event that counts
	of         hogql.Expr // the step of an event
	bucket     hogql.Expr // the bucket of the field step
}

// maxSteps is the maximum number of steps that may be shown: enough for the days of the longest axis of weeks. A range of all time can have
// more, but if there are events before the last ones, it is refused for its length.
const maxSteps = 7 * insight.MaxBuckets

func (b *builder) steps(r *insight.Range, days int) steps {
	start, end := r.Floor(r.From), r.Floor(r.To)
	timestamp, step := insight.Field("timestamp"), insight.Field("step")
	var out steps
	if unit := r.Interval.Clock(); unit == 0 {
		base := start.AddDate(0, 0, -days)
		day := insight.Call("toDate", insight.Const(base.Format(time.DateOnly)))
		out = steps{
			length: days, end: days + int(end.Sub(start).Hours()/24+0.5) + 1, lower: base.AddDate(0, 0, 1),
			of:     insight.Call("dateDiff", insight.Const("day"), day, insight.Call("toDate", timestamp)),
			bucket: insight.Call("addDays", day, step),
		}
	} else {
		length := int(time.Duration(days) * 24 * time.Hour / unit)
		base := start.Add(-time.Duration(length) * unit)
		out = steps{
			length: length, end: length + int(end.Sub(start)/unit) + 1, lower: base.Add(unit),
			of: insight.TemplateExpr("intDiv(toUnixTimestamp({time}) - {base}, {unit})", map[string]any{
				"time": timestamp, "base": base.Unix(), "unit": int64(unit / time.Second),
			}),
			bucket: insight.TemplateExpr("{base} + {step} * {unit}", map[string]any{"base": base.Unix(), "step": step, "unit": int64(unit / time.Second)}),
		}
	}
	out.first = max(out.length, out.end-maxSteps)
	return out
}

// first adds sources that count actors by their first event. With firstEver the first event of the series' name counts, if an event at the
// same time satisfies the filters.
func (b *builder) first(series int, m measure) error {
	for i := range b.periods {
		inner, matches, err := b.firstEvents(series, m, &b.periods[i])
		if err != nil {
			return err
		}
		b.byFirst(series, m, i, inner, insight.And(b.periods[i].BoundsOf(insight.Field("first")), matches))
	}
	return nil
}

// firstEvents returns a SELECT with one row for each actor, and for each of its cohorts if the breakdown is by several. A row has the time
// of the actor's first event up to the end of a range, and its breakdown values. matches is the condition that this event counts; nil if all
// do. The first event that matches is one on a day of the week that counts.
func (b *builder) firstEvents(series int, m measure, r *insight.Range) (inner *hogql.Select, matches hogql.Expr, err error) {
	s := &b.q.Series[series]
	name, err := b.w.Named(s)
	if err != nil {
		return nil, nil, err
	}
	filters, err := b.w.Filters(s)
	if err != nil {
		return nil, nil, err
	}
	filters = insight.And(filters, b.common)
	timestamp := insight.Field("timestamp")
	where := insight.And(name, m.named,
		insight.Compare(timestamp, hogql.GreaterOrEquals, insight.Const(insight.FirstTime)),
		insight.Compare(timestamp, hogql.LessOrEquals, insight.Const(r.To)))
	if m.way == firstMatch {
		where = insight.And(where, filters, r.Weekdays(timestamp))
	}
	inner = &hogql.Select{
		From: insight.Events(&b.q.Common), Where: where, GroupBy: insight.GroupBy(m.actor),
		Columns: []hogql.Expr{insight.As(insight.Call("min", timestamp), "first")},
	}
	if m.way == firstEver && filters != nil {
		inner.Columns = append(inner.Columns, insight.As(insight.Call("minIf", timestamp, filters), "matching"))
		matches = insight.Eq(insight.Field("first"), insight.Field("matching"))
	}
	for i, value := range b.values {
		if insight.Joined(&b.q.Breakdowns.Fields[i]) {
			inner.Columns = append(inner.Columns, insight.As(value, valueName(i)))
			inner.GroupBy.Keys = append(inner.GroupBy.Keys, insight.Field(valueName(i)))
			continue
		}
		inner.Columns = append(inner.Columns, insight.As(insight.Call("argMin", value, timestamp), valueName(i)))
	}
	return inner, matches, nil
}

// firstInRange adds sources that count actors by their first event in the range.
func (b *builder) firstInRange(series int, m measure, condition hogql.Expr) {
	for i := range b.periods {
		inner := b.byActor(m, insight.And(condition, b.common, b.periods[i].Bounds()),
			insight.As(insight.Call("min", insight.Field("timestamp")), "first"))
		b.byFirst(series, m, i, inner, nil)
	}
}

// byFirst adds a source that counts the rows of a SELECT with the times of first events.
func (b *builder) byFirst(series int, m measure, period int, inner *hogql.Select, where hogql.Expr) {
	stage := &hogql.Select{From: insight.From(inner), Where: where}
	var keys []hogql.Expr
	if !b.total() {
		stage.Columns = append(stage.Columns, insight.As(b.periods[period].Bucket(insight.Field("first")), bucketName))
		keys = append(keys, insight.Field(bucketName))
	}
	for i := range b.values {
		stage.Columns = append(stage.Columns, insight.Field(valueName(i)))
		keys = append(keys, insight.Field(valueName(i)))
	}
	stage.GroupBy = insight.GroupBy(keys...)
	b.single(series, m, scope{periods: []int{period}}, stage, insight.Call("count"))
}
