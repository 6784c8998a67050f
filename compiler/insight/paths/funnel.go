package paths

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/funnels"
)

// The events around a step of a funnel. Each is joined with its actor in the funnel, which does not have to be a person (contract: paths.md, section
// 8).
const (
	rawOfActors = `SELECT person_id, {moment} AS moment, event, {own} AS own, {page} AS page, {screen} AS screen,
		{actor} AS actor, _toMicroseconds(timestamp) AS clock FROM {events} WHERE {condition}`
	around = `SELECT each.person_id AS person_id, each.moment AS moment, each.event AS event, each.own AS own, each.page AS page, each.screen AS screen
		FROM {raw} AS each INNER JOIN {passed} AS passed ON each.actor = passed.actor_id WHERE {span}`
	// reached has the actors that came to the step, with the times of the step and of the one before. left has those that were at the step
	// before and did not come.
	reached = `SELECT actor_id, {before} AS previous, arrayElement(times, {step}) AS reached FROM {funnel} WHERE reached > 0`
	left    = `SELECT actor_id, {before} AS reached FROM {funnel} WHERE reached > 0 AND arrayElement(times, {step}) = 0`
)

// around returns the query for the events that count because of the step of a funnel. The error is a *diag.Error.
func (b *builder) around(values map[string]any) (hogql.Query, error) {
	f := b.query.Funnel
	actor, err := funnels.Actor(f.Source, b.world)
	if err != nil {
		return nil, err
	}
	funnel, err := funnels.Steps(f.Source, b.world)
	if err != nil {
		return nil, err
	}
	values["actor"] = actor
	text, step := reached, f.Step
	if step < 0 {
		text, step = left, -step
	}
	before := step - 1
	for before > 1 && f.Source.Series[before-1].Optional {
		before--
	}
	previous := insight.Const(int64(0)) // there is no step before the first
	if before > 0 {
		previous = insight.TemplateExpr("arrayElement(times, {before})", map[string]any{"before": int64(before)})
	}
	return insight.Template(around, map[string]any{
		"raw": insight.Template(rawOfActors, values), "span": span(f),
		"passed": over(text, "funnel", funnel, map[string]any{"step": int64(step), "before": previous}),
	}), nil
}

// span returns the condition on the time of an event. Actors that left a funnel did so when their window was over.
func span(f *Funnel) hogql.Expr {
	values := map[string]any{"window": f.Source.Window.Duration().Microseconds()}
	switch f.Type {
	case BeforeStep:
		return insight.TemplateExpr("each.clock <= passed.reached", nil)
	case BetweenSteps:
		return insight.TemplateExpr("each.clock >= passed.previous AND each.clock <= passed.reached", nil)
	case AfterStep:
		if f.Step < 0 {
			return insight.TemplateExpr("each.clock >= passed.reached + {window}", values)
		}
		return insight.TemplateExpr("each.clock >= passed.reached", nil)
	}
	panic("BUG: paths of the type " + string(f.Type))
}
