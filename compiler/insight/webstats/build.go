// Package webstats answers WebStatsTableQuery: node ─▶ [build] ─▶ tree, and rows ─▶ [shape] ─▶ results (contract:
// clients-queries.md, section 8).
package webstats

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/bind"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/web"
)

// The queries for sessions by a value of their events. Events without a session count together as one visit without a start.
const (
	visits = `SELECT {value} AS value, session.session_id AS visit, min(session.$start_timestamp) AS started, min(person_id) AS visitor,
		count() AS seen FROM {events} WHERE {condition} GROUP BY value, visit`
	bounces = `SELECT {value} AS value, session.session_id AS visit, min(session.$start_timestamp) AS started, min(person_id) AS visitor,
		count() AS seen, any(toInt(session.$is_bounce)) AS bounced FROM {events} WHERE {condition} GROUP BY value, visit`
	goals = `SELECT {value} AS value, session.session_id AS visit, min(session.$start_timestamp) AS started, min(person_id) AS visitor,
		countIf({reached}) AS conversions, min(if({reached}, person_id, NULL)) AS converted FROM {events} WHERE {condition} GROUP BY value, visit`
)

// Rows of languages name the region of most of their visits; of several, the first by name.
const (
	ofLanguage         = `arrayElement(splitByChar('-', ifNull(value, '')), 1)`
	ofRegion           = `arrayElement(splitByChar('-', ifNull(value, '')), 2)`
	mostFrequentRegion = `arrayElement(tupleElement(regions, 1), indexOf(tupleElement(regions, 2), arrayMax(tupleElement(regions, 2))))`
)

// builder holds what the parts of one query share.
type builder struct {
	query   *Query
	world   *insight.World
	periods web.Periods
	by      breakdown
	reached hogql.Expr                  // nil without a goal
	clean   func(hogql.Expr) hogql.Expr // cleans a path; nil leaves it as it is
}

// Build returns the query of a table, and what shapes its rows. The error is a *diag.Error.
func Build(q *Query, w *insight.World) (*insight.Built, error) {
	b := &builder{query: q, world: w, by: breakdowns[q.Breakdown]}
	var err error
	if b.periods, err = web.PeriodsOf(&q.Query, w); err != nil {
		return nil, err
	}
	if b.reached, err = q.Reached(w); err != nil {
		return nil, err
	}
	if q.CleanPaths {
		b.clean = insight.Cleaner(w.PathCleaning)
	}
	rows, err := b.rows()
	if err != nil {
		return nil, err
	}
	limit := q.limit()
	return &insight.Built{
		Query: b.numbered(rows, limit), Shape: shape{query: q, periods: b.periods, columns: q.columns(), typ: b.by.typ, limit: limit}.answer,
	}, nil
}

// limit returns the maximum number of rows in the answer.
func (q *Query) limit() int {
	if q.Limit == 0 {
		return bind.DefaultRows
	}
	return min(q.Limit, bind.MaxRows)
}

// rows returns the query for the rows of the answer, in no order: the value, and the columns of both periods.
func (b *builder) rows() (hogql.Query, error) {
	if b.query.pages() {
		return b.pages()
	}
	filters, err := b.world.Conditions(&b.query.Common)
	if err != nil {
		return nil, err
	}
	sessions := visits
	switch {
	case b.reached != nil:
		sessions = goals
	case b.query.Bounces:
		sessions = bounces
	}
	s := &hogql.Select{From: b.sessions(sessions, b.value(b.by), filters), Where: b.by.condition()}
	s.Columns = []hogql.Expr{insight.Field("value")}
	if b.query.Breakdown == language {
		s.Columns = []hogql.Expr{insight.As(insight.TemplateExpr(ofLanguage, nil), "language"), insight.As(insight.Call("sumMap",
			&hogql.Array{Items: []hogql.Expr{insight.TemplateExpr(ofRegion, nil)}}, &hogql.Array{Items: []hogql.Expr{insight.Const(int64(1))}}), "regions")}
		s.GroupBy = insight.GroupBy(insight.Field("language"))
	} else {
		s.GroupBy = insight.GroupBy(insight.Field("value"))
	}
	for _, c := range b.query.columns() {
		if c.function != "" {
			s.Columns = append(s.Columns, insight.As(b.now(c), c.name), insight.As(b.before(c), c.previous()))
		}
	}
	return s, nil
}

// sessions returns the sessions by a value of their events, for the events that satisfy filters.
func (b *builder) sessions(text string, value, filters hogql.Expr) hogql.Table {
	return insight.From(insight.Template(text, map[string]any{
		"value": value, "reached": insight.OrTrue(b.reached), "events": insight.Events(&b.query.Common),
		"condition": insight.And(b.query.Counted(&b.periods, b.reached), filters),
	}))
}

// now returns a column over the sessions of the current period. Without a comparison, all sessions with an event in it count.
func (b *builder) now(c column) hogql.Expr {
	if b.periods.Previous == nil {
		return insight.Call(c.function, insight.Field(c.of))
	}
	return insight.Call(c.function+"If", insight.Field(c.of), b.periods.Now())
}

// before returns a column over the sessions of the previous period; null without a comparison.
func (b *builder) before(c column) hogql.Expr {
	if b.periods.Previous == nil {
		return insight.Const(nil)
	}
	return insight.Call(c.function+"If", insight.Field(c.of), b.periods.Before())
}

// numbered sorts the rows and adds the share of the whole that each has.
func (b *builder) numbered(rows hogql.Query, limit int) hogql.Query {
	s := &hogql.Select{From: insight.From(rows)}
	s.Columns = []hogql.Expr{insight.As(insight.Field("value"), "value")}
	value := insight.Field("value")
	if b.query.Breakdown == language {
		value = insight.Field("language")
		s.Columns = []hogql.Expr{insight.As(insight.TemplateExpr(`concat(language, '-', `+mostFrequentRegion+`)`, nil), "value")}
	}
	for _, c := range b.query.columns() {
		s.Columns = append(s.Columns, c.value(c.name, ""), c.value(c.previous(), before))
	}
	order := b.query.order()
	s.Columns = append(s.Columns, insight.As(order[0].fill(), "fill"), insight.As(b.periods.Earliest(), "earliest"))
	for _, c := range order {
		for _, name := range []string{c.name, c.previous()} {
			s.OrderBy = append(s.OrderBy, &hogql.Order{X: insight.Field(name), Desc: !b.query.Order.Ascending})
		}
	}
	s.OrderBy = append(s.OrderBy, &hogql.Order{X: value})
	s.Limit = &hogql.Limit{N: insight.Const(int64(limit) + 1)}
	if b.query.Offset > 0 {
		s.Limit.Offset = insight.Const(int64(b.query.Offset))
	}
	return s
}
