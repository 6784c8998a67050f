// Package paths answers PathsQuery: node ─▶ [build] ─▶ tree, and rows ─▶ [shape] ─▶ results (contract: paths.md).
package paths

import (
	"maps"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// The steps from events to edges. Each person's events become two parallel arrays, names and times, in the order of time. They are split
// into sessions only after runs of equal names are gone, so that events are sorted and copied no more often than needed.
const (
	people = `SELECT person_id, groupArray(name) AS names, groupArray(moment) AS moments FROM {steps} GROUP BY person_id`
	sorted = `SELECT person_id, arraySort((name, moment) -> moment, names, moments) AS names, arraySort(moments) AS times FROM {people}`
	// visits numbers the sessions: a new one begins after a gap.
	visits = `SELECT person_id, names, times, arrayCumSum(gap -> gap >= {gap}, arrayDifference({clock})) AS visits FROM {sorted}`
	// runs keeps the last event of each run of equal names. The name after a session's last one counts as empty, so that a run of empty
	// names at its end is removed entirely (contract: paths.md, section 5).
	runs = `SELECT person_id, names, times, visits, arrayMap(
		(name, visit, next, later) -> name != if(visit = later, next, ''),
		names, visits, arrayPopFront(arrayPushBack(names, '')), arrayPopFront(arrayPushBack(visits, 0))
	) AS kept FROM {visits}`
	compact = `SELECT person_id, arrayFilter((name, keep) -> keep, names, kept) AS names, arrayFilter((moment, keep) -> keep, times, kept) AS times,
		arrayFilter((visit, keep) -> keep, visits, kept) AS visits FROM {runs}`
	split = `SELECT person_id, arrayJoin(arraySplit(
		(step, first) -> first, arrayZip(names, times), arrayMap((visit, previous) -> visit != previous, visits, arrayPopBack(arrayPushFront(visits, 0)))
	)) AS session FROM {compact}`
	sessions = `SELECT person_id, tupleElement(session, 1) AS names, tupleElement(session, 2) AS times FROM {split}`
)

// The parts of a session that are kept (contract: paths.md, section 5).
const (
	first = `SELECT person_id, arraySlice(names, 1, {most}) AS names, arraySlice(times, 1, {most}) AS times FROM {sessions}`
	from  = `SELECT person_id, arraySlice(names, place, {most}) AS names, arraySlice(times, place, {most}) AS times FROM (
		SELECT person_id, names, times, indexOf(names, {begin}) AS place FROM {sessions}
	) WHERE place > 0`
	to = `SELECT person_id, arraySlice(names, greatest(place - {most} + 1, 1), least(place, {most})) AS names,
		arraySlice(times, greatest(place - {most} + 1, 1), least(place, {most})) AS times FROM (
		SELECT person_id, names, times, indexOf(names, {finish}) AS place FROM {sessions}
	) WHERE place > 0`
	between = `SELECT person_id, arraySlice(names, 1, place) AS names, arraySlice(times, 1, place) AS times FROM (
		SELECT person_id, names, times, indexOf(names, {finish}) AS place FROM (
			SELECT person_id, arraySlice(names, place) AS names, arraySlice(times, place) AS times FROM (
				SELECT person_id, names, times, indexOf(names, {begin}) AS place FROM {sessions}
			) WHERE place > 0
		)
	) WHERE place > 0`
	// shortened leaves out the middle of a long path.
	shortened = `SELECT person_id,
		if(length(names) > {most}, arrayConcat(arraySlice(names, 1, {half}), [{skipped}], arraySlice(names, length(names) - {half} + 1)), names) AS names,
		if(length(times) > {most}, arrayConcat(arraySlice(times, 1, {half} + 1), arraySlice(times, length(times) - {half} + 1)), times) AS times
		FROM {limited}`
)

// The answer: the heaviest edges between the steps of paths.
const (
	edges = `SELECT arrayJoin(arrayPopFront(arrayZip(
		arrayEnumerate(names), arrayPopBack(arrayPushFront(names, '')), names, arrayDifference(times)
	))) AS edge FROM {paths}`
	totals = `SELECT tupleElement(edge, 1) AS step, tupleElement(edge, 2) AS previous, tupleElement(edge, 3) AS name,
		count() AS value, avg(tupleElement(edge, 4)) / 1000 AS average_conversion_time FROM {edges} GROUP BY step, previous, name`
	heaviest = `SELECT concat(toString(step - 1), '_', previous) AS source, concat(toString(step), '_', name) AS target,
		value, average_conversion_time FROM {totals} WHERE {weight} ORDER BY value DESC, source, target LIMIT {most}`
	// since finds the earliest event, in seconds since 1970.
	since = `SELECT '' AS source, '' AS target, toUnixTimestamp(min(timestamp)) AS value, 0. AS average_conversion_time FROM {events} WHERE {condition}`
)

// pause is the time without an event after which a person's next event begins a new session.
const pause = 30 * time.Minute

// skipped is the name of the step that stands for the middle of a long path.
const skipped = "..."

// builder holds what the parts of one query share.
type builder struct {
	query   *Query
	world   *insight.World
	dates   insight.Range
	filters hogql.Expr // the filters of the insight
}

// newBuilder reads what all parts need. The error is a *diag.Error.
func newBuilder(q *Query, w *insight.World) (*builder, error) {
	b := &builder{query: q, world: w}
	var err error
	if b.filters, err = w.Conditions(&q.Common); err != nil {
		return nil, err
	}
	// Paths have no buckets. With months the range has whole days, no matter how many.
	if b.dates, err = insight.Resolve(w, &q.Common, query.Month); err != nil {
		return nil, err
	}
	if !b.dates.All { // they begin at midnight, even with explicit dates
		b.dates.Lower = filter.StartOfDay(b.dates.Lower, 0)
	}
	return b, nil
}

// Build returns the query of paths, and what shapes its rows. The error is a *diag.Error.
func Build(q *Query, w *insight.World) (*insight.Built, error) {
	b, err := newBuilder(q, w)
	if err != nil {
		return nil, err
	}
	paths, err := b.paths(insight.Call("_toMicroseconds", insight.Field("timestamp")), insight.Field("times"))
	if err != nil {
		return nil, err
	}
	tree := over(heaviest, "totals", over(totals, "edges", over(edges, "paths", paths, nil), nil), map[string]any{
		"weight": b.weight(), "most": int64(q.Edges),
	})
	if b.dates.All {
		tree = insight.Union(over("SELECT * FROM {edges}", "edges", tree, nil), insight.Template(since, map[string]any{
			"events": insight.Events(&q.Common), "condition": b.counted(),
		}))
	}
	return &insight.Built{Query: tree, Shape: shape{scale: insight.Scale(&q.Common), dates: b.dates}.answer}, nil
}

// over parses a template over the rows of another query, for the placeholder of the given name.
func over(text, name string, below hogql.Query, values map[string]any) hogql.Query {
	all := map[string]any{name: insight.From(below)}
	maps.Copy(all, values)
	return insight.Template(text, all)
}

// weight returns the condition on the value of an edge.
func (b *builder) weight() hogql.Expr {
	var low, high hogql.Expr
	if n := b.query.MinWeight; n > 0 {
		low = insight.Compare(insight.Field("value"), hogql.GreaterOrEquals, insight.Const(int64(n)))
	}
	if n := b.query.MaxWeight; n > 0 {
		high = insight.Compare(insight.Field("value"), hogql.LessOrEquals, insight.Const(int64(n)))
	}
	return insight.OrTrue(insight.And(low, high))
}

// paths returns the query for the paths kept of all sessions. Its columns are person_id and the arrays names and times, which have the same
// length. moment is the expression for an element of times; it begins with the event's time. clock is the array of these times, in
// microseconds, as an expression over times.
func (b *builder) paths(moment, clock hogql.Expr) (hogql.Query, error) {
	steps, err := b.steps(moment)
	if err != nil {
		return nil, err
	}
	tree := over(sorted, "people", over(people, "steps", steps, nil), nil)
	tree = over(visits, "sorted", tree, map[string]any{"gap": b.pause().Microseconds(), "clock": clock})
	tree = over(compact, "runs", over(runs, "visits", tree, nil), nil)
	return b.limited(over(sessions, "split", over(split, "compact", tree, nil), nil)), nil
}

// pause returns the time that ends a session; around a step of a funnel it is the funnel's window.
func (b *builder) pause() time.Duration {
	if f := b.query.Funnel; f != nil {
		return f.Source.Window.Duration()
	}
	return pause
}

// limited cuts sessions down to the paths between their start and end points.
func (b *builder) limited(tree hogql.Query) hogql.Query {
	start, end, limit := b.query.Start, b.query.End, int64(b.query.Steps)
	values := map[string]any{"begin": start, "finish": end, "most": limit, "half": limit / 2, "skipped": skipped}
	switch {
	case start == "" && end == "":
		return over(first, "sessions", tree, values)
	case end == "":
		values["begin"] = point(start)
		return over(from, "sessions", tree, values)
	case start == "":
		values["finish"] = point(end)
		return over(to, "sessions", tree, values)
	}
	return over(shortened, "limited", over(between, "sessions", tree, values), values)
}

// point returns a start or end point that is the only one, without a slash at its end, like the addresses of pages.
func point(name string) string {
	if len(name) > 1 {
		return strings.TrimSuffix(name, "/")
	}
	return name
}
