package trends

import (
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
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

// window adds sources for the actors in the days that end with each bucket. It puts each actor into all buckets whose window has one of its
// events, so that counting the actors needs no sets.
func (b *builder) window(series int, m measure, condition hogql.Expr) {
	for i := range b.periods {
		r, part := &b.periods[i], scope{periods: []int{i}}
		if b.total() {
			stage := b.stage(insight.Events(&b.q.Common), insight.And(condition, b.common, r.BoundsFrom(r.To.AddDate(0, 0, -m.days))))
			b.single(series, m, part, stage, m.aggregate(m.of, nil))
			continue
		}
		steps := b.steps(r, m.days)
		inner := b.byActor(m, insight.And(condition, b.common, r.BoundsFrom(steps.lower)),
			insight.As(insight.TemplateExpr(
				"arrayJoin(arrayDistinct(arrayFlatten(arrayMap(step -> range(greatest(step, {length}), least(step + {length}, {end})), groupUniqArray({step})))))",
				map[string]any{"length": int64(steps.length), "end": int64(steps.length + steps.count), "step": steps.of},
			), "step"))
		middle := &hogql.Select{From: insight.From(inner), Columns: []hogql.Expr{insight.As(steps.bucket, bucketName)}}
		for i := range b.values {
			middle.Columns = append(middle.Columns, insight.Field(valueName(i)))
		}
		b.single(series, m, part, b.over(middle), insight.Call("count"))
	}
}

// steps divides the time of a range, and of the windows before it, into steps of a day, an hour, a minute or a second, counted from 0.
type steps struct {
	length, count int        // of a window, and of the range, in steps
	lower         time.Time  // of the first event that counts
	of            hogql.Expr // the step of an event
	bucket        hogql.Expr // the bucket of the field step
}

func (b *builder) steps(r *insight.Range, days int) steps {
	start, end := r.Floor(r.From), r.Floor(r.To)
	timestamp, step := insight.Field("timestamp"), insight.Field("step")
	unit := r.Interval.Clock()
	if unit == 0 {
		base := start.AddDate(0, 0, -days)
		day := insight.Call("toDate", insight.Const(base.Format(time.DateOnly)))
		return steps{
			length: days, count: int(end.Sub(start).Hours()/24+0.5) + 1, lower: base.AddDate(0, 0, 1),
			of:     insight.Call("dateDiff", insight.Const("day"), day, insight.Call("toDate", timestamp)),
			bucket: insight.Call("addDays", day, step),
		}
	}
	length := int(time.Duration(days) * 24 * time.Hour / unit)
	base := start.Add(-time.Duration(length) * unit)
	return steps{
		length: length, count: int(end.Sub(start)/unit) + 1, lower: base.Add(unit),
		of: insight.TemplateExpr("intDiv(toUnixTimestamp({time}) - {base}, {unit})", map[string]any{
			"time": timestamp, "base": base.Unix(), "unit": int64(unit / time.Second),
		}),
		bucket: insight.TemplateExpr("{base} + {step} * {unit}", map[string]any{"base": base.Unix(), "step": step, "unit": int64(unit / time.Second)}),
	}
}

// first adds sources that count actors by their first event. With firstEver the first event of the series' name counts, if an event at the
// same time satisfies the filters.
func (b *builder) first(series int, m measure) error {
	for i := range b.periods {
		inner, matches, err := b.firstEvents(series, m, b.periods[i].To)
		if err != nil {
			return err
		}
		b.byFirst(series, m, i, inner, insight.And(b.periods[i].BoundsOf(insight.Field("first")), matches))
	}
	return nil
}

// firstEvents returns a SELECT with one row for each actor, and for each of its cohorts if the breakdown is by several. A row has the time
// of the actor's first event up to a time, and its breakdown values. matches is the condition that this event counts; nil if all do.
func (b *builder) firstEvents(series int, m measure, to time.Time) (inner *hogql.Select, matches hogql.Expr, err error) {
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
		insight.Compare(timestamp, hogql.LessOrEquals, insight.Const(to)))
	if m.way == firstMatch {
		where = insight.And(where, filters)
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
