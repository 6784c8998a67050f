// Package weboverview answers WebOverviewQuery: node ─▶ [build] ─▶ tree, and rows ─▶ [shape] ─▶ results (contract:
// clients-queries.md, section 8).
package weboverview

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/web"
)

// The queries that turn events into sessions, each with its person and its numbers.
const (
	visits = `SELECT min(person_id) AS visitor, session.session_id AS visit, min(session.$start_timestamp) AS started,
		countIf({seen}) AS views, any(session.$session_duration) AS duration, any(toInt(session.$is_bounce)) AS bounced
		FROM {events} WHERE {condition} GROUP BY visit HAVING {within}`
	goals = `SELECT min(person_id) AS visitor, session.session_id AS visit, min(session.$start_timestamp) AS started,
		countIf({reached}) AS conversions, min(if({reached}, person_id, NULL)) AS converted
		FROM {events} WHERE {condition} GROUP BY visit HAVING {within}`
)

// The aggregates of sessions, in the order of the answer. With a comparison, each number counts only sessions of its period.
const (
	numbers = `SELECT {earliest} AS earliest, uniq(visitor) AS visitors, sum(views) AS seen, uniq(visit) AS sessions,
		avg(duration) AS mean_duration, avg(bounced) AS bounce_rate FROM {visits}`
	both = `SELECT {earliest} AS earliest, uniqIf(visitor, {now}) AS visitors, sumIf(views, {now}) AS seen, uniqIf(visit, {now}) AS sessions,
		avgIf(duration, {now}) AS mean_duration, avgIf(bounced, {now}) AS bounce_rate,
		uniqIf(visitor, {before}) AS visitors_before, sumIf(views, {before}) AS seen_before, uniqIf(visit, {before}) AS sessions_before,
		avgIf(duration, {before}) AS mean_duration_before, avgIf(bounced, {before}) AS bounce_rate_before FROM {visits}`
	reaching     = `SELECT {earliest} AS earliest, uniq(visitor) AS visitors, sum(conversions) AS total, uniq(converted) AS people FROM {visits}`
	reachingBoth = `SELECT {earliest} AS earliest, uniqIf(visitor, {now}) AS visitors, sumIf(conversions, {now}) AS total, uniqIf(converted, {now}) AS people,
		uniqIf(visitor, {before}) AS visitors_before, sumIf(conversions, {before}) AS total_before, uniqIf(converted, {before}) AS people_before
		FROM {visits}`
)

// Build returns the query of an overview, and what shapes its row. The error is a *diag.Error.
func Build(q *Query, w *insight.World) (*insight.Built, error) {
	periods, err := web.PeriodsOf(&q.Query, w)
	if err != nil {
		return nil, err
	}
	filters, err := w.Conditions(&q.Common)
	if err != nil {
		return nil, err
	}
	reached, err := q.Reached(w)
	if err != nil {
		return nil, err
	}
	sessions, text := visits, numbers
	switch compared := periods.Previous != nil; {
	case reached != nil && compared:
		sessions, text = goals, reachingBoth
	case reached != nil:
		sessions, text = goals, reaching
	case compared:
		text = both
	}
	tree := insight.Template(text, map[string]any{
		"earliest": periods.Earliest(), "now": periods.Now(), "before": periods.Before(),
		"visits": insight.From(insight.Template(sessions, map[string]any{
			"seen": web.Seen(), "reached": insight.OrTrue(reached), "events": insight.Events(&q.Common),
			"condition": q.inSession(insight.And(q.Counted(&periods, reached), filters)), "within": periods.Either(insight.Field("started")),
		})),
	})
	return &insight.Built{Query: tree, Shape: shape{query: q, periods: periods}.answer}, nil
}

// inSession keeps only events that name a session.
func (q *Query) inSession(condition hogql.Expr) hogql.Expr {
	return insight.And(insight.TemplateExpr(`$session_id != ''`, nil), condition)
}
