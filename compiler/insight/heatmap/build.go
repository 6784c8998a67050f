// Package heatmap answers CalendarHeatmapQuery: node ─▶ [build] ─▶ tree, and rows ─▶ [shape] ─▶ results (contract:
// clients-queries.md, section 8).
package heatmap

import (
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// A row of the query has a weekday, an hour and a number. A sum of cells would count people twice, so the sums are rows of their own, with
// 0 in place of the day and allHours in place of the hour.
const (
	ofEvents = `SELECT toDayOfWeek(timestamp) AS day, toHour(timestamp) AS hour, count() AS found FROM {events} WHERE {condition} GROUP BY day, hour`
	ofPeople = `SELECT cell.1 AS day, cell.2 AS hour, uniqExact(visitor) AS found FROM (
		SELECT visitor, arrayJoin([(day, hour), (day, {all}), (0, hour), (0, {all})]) AS cell FROM {visits}
	) GROUP BY cell`
	// bySession has the person and the hour of each session, byEvent those of all events.
	bySession = `SELECT visitor, toDayOfWeek(began) AS day, toHour(began) AS hour FROM {sessions} WHERE {inRange}`
	byEvent   = `SELECT person_id AS visitor, toDayOfWeek(timestamp) AS day, toHour(timestamp) AS hour FROM {events} WHERE {condition}
		GROUP BY visitor, day, hour`
	// sessions has the person and the start of each session: its first event that counts.
	sessions = `SELECT argMin(person_id, timestamp) AS visitor, min(timestamp) AS began FROM {events} WHERE {condition} GROUP BY $session_id`
)

// allHours is the hour of sums over all hours.
const allHours = 24

// longestSession is how long before the range a session that continues in it may have begun.
const longestSession = 3 * 24 * time.Hour

// Build returns the query of a heatmap, and what shapes its rows. The error is a *diag.Error.
func Build(q *Query, w *insight.World) (*insight.Built, error) {
	if len(q.Series) == 0 {
		return nil, diag.Field(diag.InvalidInput, q.Field("series"), "Calendar heatmaps require at least one series.")
	}
	dates, err := insight.ResolveUncut(w, &q.Common, query.Day)
	if err != nil {
		return nil, err
	}
	condition, err := condition(q, w)
	if err != nil {
		return nil, err
	}
	values := map[string]any{"events": insight.Events(&q.Common), "all": int64(allHours)}
	built := &insight.Built{Shape: shape{query: q, dates: dates}.answer}
	if !q.people() || q.EveryHour {
		values["condition"] = insight.And(dates.Bounds(), condition)
		if !q.people() {
			built.Query = insight.Template(ofEvents, values)
			return built, nil
		}
		values["visits"] = insight.Template(byEvent, values)
		built.Query = insight.Template(ofPeople, values)
		return built, nil
	}
	timestamp := insight.Field("timestamp")
	values["condition"] = insight.And(
		insight.Compare(timestamp, hogql.GreaterOrEquals, insight.Const(dates.Lower.Add(-longestSession))),
		insight.Compare(timestamp, hogql.LessOrEquals, insight.Const(dates.To)),
		insight.Call("notEmpty", insight.Field("$session_id")), condition,
	)
	values["sessions"] = insight.Template(sessions, values)
	values["inRange"] = dates.BoundsOf(insight.Field("began"))
	values["visits"] = insight.Template(bySession, values)
	built.Query = insight.Template(ofPeople, values)
	return built, nil
}

// condition returns what events must satisfy besides their time; nil for nothing.
func condition(q *Query, w *insight.World) (hogql.Expr, error) {
	filters, err := w.Conditions(&q.Common)
	if err != nil {
		return nil, err
	}
	named, err := named(q, w)
	if err != nil {
		return nil, err
	}
	own, err := w.Filters(&q.Series[0])
	if err != nil {
		return nil, err
	}
	if q.Sampling != nil && *q.Sampling == 0 {
		own = insight.And(own, insight.Const(false)) // the sample is empty
	}
	return insight.And(named, own, filters), nil
}

// named returns the condition on what events are: the action of the series, else the goal, else the event of the series.
func named(q *Query, w *insight.World) (hogql.Expr, error) {
	series := &q.Series[0]
	switch g := q.Goal; {
	case g == nil || series.Kind == query.ActionsNode:
		return w.Named(series)
	case g.Event != nil:
		return insight.Eq(insight.Field("event"), insight.Const(*g.Event)), nil
	default:
		return w.Action(*g.Action, g.At+".actionId")
	}
}
