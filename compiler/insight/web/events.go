package web

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// seen is the condition on events that show a page or a screen.
const seen = `event IN ('$pageview', '$screen')`

// Seen is the condition that an event shows a page or a screen.
func Seen() hogql.Expr { return insight.TemplateExpr(seen, nil) }

// Reached is the condition that an event is what visitors are meant to do; nil without a goal. The error is a *diag.Error.
func (q *Query) Reached(w *insight.World) (hogql.Expr, error) {
	switch {
	case q.Goal == nil:
		return nil, nil
	case q.Goal.Action != nil:
		return w.Action(*q.Goal.Action, q.Goal.At+".actionId")
	}
	return insight.Eq(insight.Field("event"), insight.Const(*q.Goal.Event)), nil
}

// Counted is the condition that an event lies in one of the periods and is one of those that count: it shows a page or a screen,
// or is what visitors are meant to do. reached is that of Reached.
func (q *Query) Counted(p *Periods, reached hogql.Expr) hogql.Expr {
	kinds := Seen()
	if reached != nil {
		kinds = insight.Or(kinds, reached)
	}
	return insight.And(p.Events(), kinds, q.Sampled())
}

// Sampled is false where nobody is looked at; nil otherwise.
func (q *Query) Sampled() hogql.Expr {
	if q.Sampling != nil && *q.Sampling == 0 {
		return insight.Const(false)
	}
	return nil
}
