package funnels

import (
	"cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// How many values of a breakdown have a row: by default, at most, and of those that are not summed up in another row.
const (
	defaultValues = 25
	mostValues    = 1000
	looseValues   = 100
)

// attempts has a row for each actor, and value, that counts, with the times of its steps.
func (b *builder) attempts() stage {
	s := b.journeys()
	if b.q.Order == query.Unordered {
		return b.unorderedTimes(b.runs(s))
	}
	n := b.marks.steps
	s = b.outcome(b.slots(b.runs(b.ties(s)), n), n)
	return b.times(s.where(kept(s)))
}

// timed tells that a step has a time: the first has none, nor has one that may be passed over (contract: section 7).
func (b *builder) timed(k int) bool { return k > 1 && !b.optional(k) }

// gap is the time from the step before to step k in microseconds, 0 or less when there is none; nil for a step without.
func (b *builder) gap(k int) hogql.Expr {
	if !b.timed(k) {
		return nil
	}
	return expr("if(times[{k}] > 0, times[{k}] - times[{before}], 0)", values{"k": int64(k), "before": int64(b.required(k))})
}

// steps makes the query of the funnel's steps: in each row of the result stand, for each step, how many reached it, and
// the average and the median of the seconds that they took.
func (b *builder) steps() (*insight.Built, error) {
	attempts := b.attempts()
	built := &insight.Built{Shape: b.shapeSteps}
	if b.value != nil {
		built.Query = b.ranked(attempts)
		return built, nil
	}
	q := &hogql.Select{From: insight.From(attempts.query)}
	for k := 1; k <= b.marks.steps; k++ {
		q.Columns = append(q.Columns, insight.As(expr("countIf(times[{k}] > 0)", values{"k": int64(k)}), nameOf("count", k)))
		if gap := b.gap(k); gap != nil {
			v := values{"gap": gap}
			q.Columns = append(q.Columns,
				insight.As(expr("avgIf({gap}, {gap} > 0) / 1000000", v), nameOf("average", k)),
				insight.As(expr("_quantileInclusiveIf(0.5)({gap}, {gap} > 0) / 1000000", v), nameOf("median", k)))
		}
	}
	q.Columns = append(q.Columns, b.earliest()...)
	built.Query = q
	return built, nil
}

// ranked counts by value. The values with most actors in the last steps keep a row of their own, all others share one.
func (b *builder) ranked(attempts stage) *hogql.Select {
	most, rest := b.limit()
	v := values{"most": int64(most), "missing": b.value.missing()}
	out := &hogql.Select{From: insight.From(b.ranking(attempts)), GroupBy: insight.GroupBy(insight.Field("shown"), insight.Field("rest"))}
	out.Columns = []hogql.Expr{
		insight.As(expr("if(rank > {most}, {missing}, value)", v), "shown"), insight.As(expr("rank > {most}", v), "rest"),
	}
	for k := 1; k <= b.marks.steps; k++ {
		out.Columns = append(out.Columns, insight.As(insight.Call("sum", fieldOf("count", k)), nameOf("total", k)))
		if b.timed(k) {
			v := values{"gaps": fieldOf("gaps", k)}
			out.Columns = append(out.Columns,
				insight.As(expr("avgArray({gaps}) / 1000000", v), nameOf("average", k)),
				insight.As(expr("_quantileInclusiveArray(0.5)({gaps}) / 1000000", v), nameOf("median", k)))
		}
	}
	out.Columns = append(out.Columns, b.earliest()...)
	if !rest {
		out.Where = expr("rank <= {most}", v)
	}
	return out
}

// ranking has a row for each value, with its numbers and its rank.
func (b *builder) ranking(attempts stage) *hogql.Select {
	counted := &hogql.Select{From: insight.From(attempts.query), Columns: []hogql.Expr{insight.Field(valueName)}, GroupBy: insight.GroupBy(insight.Field(valueName))}
	out := &hogql.Select{From: insight.From(counted), Columns: []hogql.Expr{insight.Field(valueName)}}
	order := []*hogql.Order{{X: insight.Field(valueName)}}
	for k := 1; k <= b.marks.steps; k++ {
		counted.Columns = append(counted.Columns, insight.As(expr("countIf(times[{k}] > 0)", values{"k": int64(k)}), nameOf("count", k)))
		out.Columns = append(out.Columns, fieldOf("count", k))
		order = append([]*hogql.Order{{X: fieldOf("count", k), Desc: true}}, order...)
		if gap := b.gap(k); gap != nil {
			counted.Columns = append(counted.Columns, insight.As(expr("groupArrayIf({gap}, {gap} > 0)", values{"gap": gap}), nameOf("gaps", k)))
			out.Columns = append(out.Columns, fieldOf("gaps", k))
		}
	}
	out.Columns = append(out.Columns, insight.As(&hogql.Call{Name: "row_number", Over: &hogql.Window{OrderBy: order}}, "rank"))
	return out
}

// limit is how many values have a row of their own, and whether the rest share one (contract: section 9).
func (b *builder) limit() (most int, rest bool) {
	for _, f := range b.q.Breakdowns.Fields {
		switch f.Type {
		case "person", "event", "group":
		default:
			return looseValues, false
		}
	}
	return min(cmp.Or(b.q.Breakdowns.Limit, defaultValues), mostValues), true
}
