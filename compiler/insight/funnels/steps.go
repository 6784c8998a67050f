package funnels

import (
	"cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// The number of breakdown values with a row of their own: the default, the maximum, and the number if no row sums up the rest.
const (
	defaultValues     = 25
	maxValues         = 1000
	valuesWithoutRest = 100
)

// attempts has a row for each actor and breakdown value, with the times of its steps. If an actor that does not count has a row, its times
// are 0.
func (b *builder) attempts() stage {
	s := b.journeys()
	if b.q.Order == Unordered {
		return b.unorderedTimes(b.runs(s))
	}
	n := b.marks.steps
	return b.times(b.kept(b.outcome(b.slots(b.runs(b.ties(s)), n), n)))
}

// timed reports whether a step has a time: the first step and optional ones have none (contract: funnels.md, section 7).
func (b *builder) timed(k int) bool { return k > 1 && !b.optional(k) }

// gaps adds the time, in microseconds, that the attempt took for each step; 0 or less for none.
func (b *builder) gaps(s stage) stage {
	gaps := expr("arrayDifference(times)", nil)
	if b.free() {
		all := &hogql.Array{}
		for k := 1; k <= b.marks.steps; k++ {
			gap := insight.Const(int64(0))
			if b.timed(k) {
				gap = expr("times[{k}] - times[{before}]", values{"k": int64(k), "before": int64(b.required(k))})
			}
			all.Items = append(all.Items, gap)
		}
		gaps = all
	}
	return s.then(column{"gaps", gaps})
}

// Each of these columns is an array with a number for each step.
const (
	reachedName = "reached" // how many actors reached it
	averageName = "average" // mean of the microseconds that they took
	medianName  = "median"  // median of the same
)

// reached is the aggregate that counts the actors that reached each step.
const reached = "sumForEach(arrayMap(t -> t > 0, times))"

// steps builds the query for the funnel's steps, a row for each row of the result.
func (b *builder) steps() (*insight.Built, error) {
	attempts := b.attempts()
	built := &insight.Built{Shape: b.shapeSteps}
	if b.value != nil {
		built.Query = b.ranked(attempts)
		return built, nil
	}
	q := &hogql.Select{From: insight.From(b.gaps(attempts).query), Columns: []hogql.Expr{
		insight.As(expr(reached, nil), reachedName),
		insight.As(expr("_avgIfForEach(gaps, arrayMap(g -> g > 0, gaps))", nil), averageName),
		insight.As(expr("_quantileInclusiveIfForEach(0.5)(gaps, arrayMap(g -> g > 0, gaps))", nil), medianName),
	}}
	q.Columns = append(q.Columns, b.earliest()...)
	built.Query = q
	return built, nil
}

// ranked counts by breakdown value. The values with the most actors in the last steps have a row of their own, all others share one.
func (b *builder) ranked(attempts stage) *hogql.Select {
	most, rest := b.limit()
	v := values{"most": int64(most), "missing": b.value.missing()}
	out := &hogql.Select{From: insight.From(b.ranking(attempts)), GroupBy: insight.GroupBy(insight.Field("shown"), insight.Field("rest"))}
	out.Columns = []hogql.Expr{
		insight.As(expr("if(rank > {most}, {missing}, value)", v), "shown"), insight.As(expr("rank > {most}", v), "rest"),
		insight.As(expr("sumForEach(counts)", nil), reachedName),
		insight.As(expr("_avgArrayForEach(took)", nil), averageName),
		insight.As(expr("_quantileInclusiveArrayForEach(0.5)(took)", nil), medianName),
	}
	out.Columns = append(out.Columns, b.earliest()...)
	if !rest {
		out.Where = expr("rank <= {most}", v)
	}
	return out
}

// ranking has a row for each value, with its numbers and its rank.
func (b *builder) ranking(attempts stage) *hogql.Select {
	counted := insight.Template("SELECT value, "+reached+" AS counts, _groupArrayIfForEach(gaps, arrayMap(g -> g > 0, gaps)) AS took FROM {attempts} GROUP BY value",
		values{"attempts": &hogql.Derived{Query: b.gaps(attempts).query}})
	ranking, ok := insight.Template("SELECT value, counts, took, row_number() OVER (ORDER BY arrayReverse(counts) DESC, value) AS rank FROM {counted}",
		values{"counted": &hogql.Derived{Query: counted}}).(*hogql.Select)
	if !ok {
		panic("BUG: a ranking is not a SELECT")
	}
	return ranking
}

// limit returns how many values have a row of their own, and whether the rest share one (contract: funnels.md, section 9).
func (b *builder) limit() (most int, rest bool) {
	for _, f := range b.q.Breakdowns.Fields {
		switch f.Type {
		case "person", "event", "group":
		default:
			return valuesWithoutRest, false
		}
	}
	return min(cmp.Or(b.q.Breakdowns.Limit, defaultValues), maxValues), true
}
