package lifecycle

import (
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// with keeps the actors that have some of the statuses.
const with = `SELECT DISTINCT actor_id FROM {changes} WHERE {condition}`

// Actors returns the query for the actors that have a status in a bucket of a lifecycle (contract: lifecycle.md, section 7). Without a
// status it includes all statuses, and without a day the whole range. The error is a *diag.Error.
func Actors(q *Query, at *query.InsightActors, w *insight.World) (*insight.People, error) {
	dates, err := rangeOf(q, w)
	if err != nil {
		return nil, err
	}
	changed, err := transitions(q, w, &dates)
	if err != nil {
		return nil, err
	}
	if at.Compare != nil && *at.Compare == "previous" {
		return nil, diag.Field(diag.InvalidInput, at.Field("compare"), "A lifecycle is not compared with a previous period")
	}
	changed.Columns = append(changed.Columns, insight.As(insight.Field("seen", "actor"), insight.ActorID))
	bucket := &hogql.Element{X: insight.Field("transition"), N: 2}
	condition := insight.And(
		insight.Compare(bucket, hogql.GreaterOrEquals, insight.Const(numberOf(q.Interval, dates.Floor(dates.From)))),
		insight.Compare(bucket, hogql.LessOrEquals, insight.Const(numberOf(q.Interval, dates.Floor(dates.To)))),
	)
	if at.Day != nil {
		day, err := insight.ReadDay(w, *at.Day, at.Field("day"))
		if err != nil {
			return nil, err
		}
		condition = insight.And(condition, insight.Eq(bucket, insight.Const(numberOf(q.Interval, dates.Floor(day)))))
	}
	if at.Status != "" {
		status := int64(slices.Index(query.Statuses, at.Status))
		condition = insight.And(condition, insight.Eq(&hogql.Element{X: insight.Field("transition"), N: 1}, insight.Const(status)))
	}
	return &insight.People{
		Query: insight.Template(with, map[string]any{"changes": insight.From(changed), "condition": condition}), Group: q.Group,
	}, nil
}
