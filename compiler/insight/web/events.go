package web

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// seen is the condition on events that show a page or a screen.
const seen = `event IN ('$pageview', '$screen')`

// Seen returns the condition that an event shows a page or a screen.
func Seen() hogql.Expr { return insight.TemplateExpr(seen, nil) }

// Reached returns the condition that an event is the goal; nil without a goal. The error is a *diag.Error.
func (q *Query) Reached(w *insight.World) (hogql.Expr, error) {
	switch {
	case q.Goal == nil:
		return nil, nil
	case q.Goal.Action != nil:
		return w.Action(*q.Goal.Action, q.Goal.At+".actionId")
	}
	return insight.Eq(insight.Field("event"), insight.Const(*q.Goal.Event)), nil
}

// Counted returns the condition that an event is in one of the periods and counts: it shows a page or a screen, or is the goal. reached is
// the result of Reached.
func (q *Query) Counted(p *Periods, reached hogql.Expr) hogql.Expr {
	kinds := Seen()
	if reached != nil {
		kinds = insight.Or(kinds, reached)
	}
	return insight.And(p.Events(), kinds, q.Sampled())
}

// Sampled returns false if the sample is empty; nil otherwise.
func (q *Query) Sampled() hogql.Expr {
	if q.Sampling != nil && *q.Sampling == 0 {
		return insight.Const(false)
	}
	return nil
}
