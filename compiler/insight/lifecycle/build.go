// Package lifecycle answers LifecycleQuery: node ─▶ [build] ─▶ tree, and rows ─▶ [shape] ─▶ results (contract: lifecycle.md).
package lifecycle

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// The numbers of the statuses in rows. new, returning and so on are the indexes in query.Statuses.
const (
	isNew = iota
	isReturning
	isResurrecting
	isDormant
	statuses // the number of statuses
	earliest // marks the row of the earliest event, not a status
)

// changes returns one row for each status that an actor has in a bucket. The active buckets of an actor become a sorted list. Each bucket
// is compared with the one before in the list, which says how the actor came, and with the one after, which says whether it left. noBucket
// stands before the first and after the last one; it is next to no bucket.
//
// Only actors created within the range can be new, so the join reads only these. Without a match born is 0, which is not the number of any
// bucket in a range.
const changes = `SELECT arrayJoin(arrayConcat(
		arrayMap((b, before) -> (multiIf(before = b - 1, {returning}, before = {nowhere} AND {fresh}, {new}, {resurrecting}), b),
			active, arrayPushFront(arrayPopBack(active), {nowhere})),
		arrayMap(b -> ({dormant}, b + 1),
			arrayFilter((b, after) -> after != b + 1, active, arrayPushBack(arrayPopFront(active), {nowhere})))
	)) AS transition
	FROM (
		SELECT {actor} AS actor, arrayMap(b -> {number}, arraySort(groupUniqArray({bucket}))) AS active
		FROM {events} WHERE {condition} GROUP BY actor
	) AS seen LEFT JOIN {made} AS made ON seen.actor = made.actor`

// count counts actors by status and bucket.
const count = `SELECT transition.1 AS status, transition.2 AS bucket, count() AS actors FROM {changes}
	WHERE bucket >= {first} AND bucket <= {last} GROUP BY status, bucket`

const noBucket = -1

// targetCode is PostHog's code for counting something other than people or groups.
const targetCode diag.Code = "lifecycle_custom_aggregation_target_requires_data_warehouse_series"

// The actors that were created in a span of time, with the number of their bucket.
const (
	people = `SELECT id AS actor, {born} AS born FROM persons WHERE created_at >= {lower} AND created_at < {upper}`
	groups = `SELECT key AS actor, {born} AS born FROM groups WHERE index = {group} AND created_at >= {lower} AND created_at < {upper}`
)

// since finds the earliest event of the project, in seconds since 1970.
const since = `SELECT {earliest} AS status, toUnixTimestamp(min(timestamp)) AS bucket, 0 AS actors FROM events WHERE timestamp >= {first}`

// withPerson excludes events that were sent without a person.
const withPerson = `toString(properties.$process_person_profile) != 'false'`

// Build returns the query of a lifecycle, and what shapes its rows. The error is a *diag.Error.
func Build(q *Query, w *insight.World) (*insight.Built, error) {
	dates, err := rangeOf(q, w)
	if err != nil {
		return nil, err
	}
	changed, err := transitions(q, w, &dates)
	if err != nil {
		return nil, err
	}
	counted := insight.Template(count, map[string]any{
		"changes": insight.From(changed),
		"first":   numberOf(q.Interval, dates.Floor(dates.From)), "last": numberOf(q.Interval, dates.Floor(dates.To)),
	})
	built := &insight.Built{Query: counted, Shape: shape{q, dates, w.Counted(&q.Series[0])}.answer, Pieces: inPieces(q, w, &dates)}
	if dates.All {
		built.Query = insight.Union(counted, insight.Template(since, map[string]any{"earliest": earliest, "first": insight.FirstTime}))
	}
	return built, nil
}

func rangeOf(q *Query, w *insight.World) (insight.Range, error) {
	if len(q.Series) == 0 {
		return insight.Range{}, diag.Field(insight.NoSeriesCode, q.Field("series"), "Lifecycle insights require at least one series.")
	}
	if q.CustomTarget {
		return insight.Range{}, diag.Field(targetCode, q.Field("customAggregationTarget"),
			"Custom entity aggregation target is not supported for lifecycle insights without a data warehouse series.")
	}
	common := q.Common
	common.DateRange.DaysOfWeek = nil // contract: api.md, section 2.1
	return insight.Resolve(w, &common, q.Interval)
}

// transitions builds the query for the statuses of actors. It reads whole buckets, and unless only the range counts, the bucket before it,
// which decides who returns in the first.
func transitions(q *Query, w *insight.World, dates *insight.Range) (*hogql.Select, error) {
	condition, err := conditions(q, w)
	if err != nil {
		return nil, err
	}
	first, end := dates.Floor(dates.From), dates.Next(dates.Floor(dates.To))
	before, fresh := dates.Step(first, -1), insight.TemplateExpr("b = born", nil)
	if dates.All || q.InRange {
		before = first
	}
	if q.InRange {
		fresh = insight.TemplateExpr("(b = born OR b = {first})", map[string]any{"first": numberOf(q.Interval, first)})
	}
	actor, named := insight.Actor(q.Group)
	made, timestamp := people, insight.Field("timestamp")
	values := map[string]any{
		"born": number(q.Interval, dates.Bucket(insight.Field("created_at"))), "lower": first, "upper": end,
	}
	if q.Group != nil {
		made, values["group"] = groups, int64(*q.Group)
	}
	s, ok := insight.Template(changes, map[string]any{
		"new": isNew, "returning": isReturning, "resurrecting": isResurrecting, "dormant": isDormant, "nowhere": noBucket, "fresh": fresh,
		"actor": actor, "number": number(q.Interval, insight.Field("b")), "bucket": dates.Bucket(timestamp),
		"events": insight.Events(&q.Common), "made": insight.Template(made, values),
		"condition": insight.And(
			insight.Compare(timestamp, hogql.GreaterOrEquals, insight.Const(before)),
			insight.Compare(timestamp, hogql.Less, insight.Const(end)),
			condition, named,
		),
	}).(*hogql.Select)
	if !ok {
		panic("BUG: the statuses of actors are not a SELECT")
	}
	return s, nil
}

// conditions returns what events must satisfy besides their time: the filters of the insight, and every series.
func conditions(q *Query, w *insight.World) (hogql.Expr, error) {
	filters, err := w.Conditions(&q.Common)
	if err != nil {
		return nil, err
	}
	all := make([]hogql.Expr, 0, len(q.Series)+3)
	for i := range q.Series {
		condition, err := w.Series(&q.Series[i])
		if err != nil {
			return nil, err
		}
		all = append(all, condition)
	}
	all = append(all, filters, insight.TemplateExpr(withPerson, nil))
	if q.Sampling != nil && *q.Sampling == 0 {
		all = append(all, insight.Const(false)) // the sample is empty
	}
	return insight.And(all...), nil
}
