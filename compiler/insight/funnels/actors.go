package funnels

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// Actors returns the query for the actors of a funnel. For steps, these are the actors that reached a step, those that reached the step
// before it but not the step, or those whose furthest step is one of several; for trends, those that entered in a period and converted or
// did not. If the funnel counts sessions, they are the people of these sessions. The error is a *diag.Error.
func Actors(q *Query, at *ActorsQuery, w *insight.World) (*insight.People, error) {
	q = q.listed()
	b, err := newBuilder(q, w)
	if err != nil {
		return nil, err
	}
	if b.text && strings.TrimSpace(q.AggregateBy) != sessions {
		return nil, diag.Field(diag.InvalidInput, q.Field("funnelsFilter.funnelAggregateByHogQL"), "This funnel counts neither people nor groups, so its actors cannot be listed")
	}
	var s stage
	var condition hogql.Expr
	if q.Viz == VizTrends {
		s = b.entries()
		condition, err = b.entered(at)
	} else {
		s = b.attempts()
		condition, err = b.reached(at)
	}
	if err != nil {
		return nil, err
	}
	value, err := b.valued(s, at)
	if err != nil {
		return nil, err
	}
	people := &hogql.Select{
		Distinct: true, From: insight.From(s.query), Where: insight.And(condition, value),
		Columns: []hogql.Expr{insight.As(insight.Field(actorName), insight.ActorID)},
	}
	if b.text {
		return &insight.People{Query: b.peopleOf(people)}, nil
	}
	return &insight.People{Query: people, Group: q.Group}, nil
}

// listed returns the funnel whose actors a drill-down lists: for times to convert, that of the steps.
func (q *Query) listed() *Query {
	if q.Viz != VizTimeToConvert {
		return q
	}
	plain := *q
	plain.Viz = VizSteps
	return &plain
}

// sessions is the expression of a funnel that counts sessions.
const sessions = "properties.$session_id"

// peopleOf returns the query for the people of sessions: one for each session, even if several have events in it.
func (b *builder) peopleOf(found hogql.Query) hogql.Query {
	where := insight.And(b.where, insight.Compare(b.actor, hogql.In, &hogql.Subquery{Query: found}))
	if !b.strict() {
		where = insight.And(where, b.anySource())
	}
	return &hogql.Select{
		Distinct: true, From: insight.Events(&b.q.Common), Where: where, GroupBy: insight.GroupBy(b.actor),
		Columns: []hogql.Expr{insight.As(insight.Call("min", insight.Field("person_id")), insight.ActorID)},
	}
}

// reached returns the condition on the steps of an attempt.
func (b *builder) reached(at *ActorsQuery) (hogql.Expr, error) {
	n := b.marks.steps
	if len(at.FunnelCustomSteps) > 0 {
		list := &hogql.Array{}
		for _, k := range at.FunnelCustomSteps {
			if k < 1 || k > n {
				return nil, diag.Field(diag.InvalidInput, at.Field("funnelCustomSteps"), "The funnel has no step %d", k)
			}
			list.Items = append(list.Items, insight.Const(int64(k)))
		}
		return expr("has({list}, arrayLastIndex(t -> t > 0, times))", values{"list": list}), nil
	}
	if at.FunnelStep == nil {
		return nil, diag.Field(diag.InvalidInput, at.Field("funnelStep"), "The actors of a funnel need the number of a step, from 1, or that of one they did not reach, below -1")
	}
	k := *at.FunnelStep
	switch {
	case k == 0:
		return nil, diag.Field(diag.InvalidInput, at.Field("funnelStep"), "Funnel steps are 1-indexed, so step 0 doesn't exist")
	case k >= 1 && k <= n:
		return expr("times[{k}] > 0", values{"k": int64(k)}), nil
	case k <= -2 && k >= -n:
		return expr("times[{before}] > 0 and times[{k}] = 0", values{"before": int64(b.required(-k)), "k": int64(-k)}), nil
	}
	return nil, diag.Field(diag.InvalidInput, at.Field("funnelStep"), "The funnel has no step %d: steps count from 1, and those that were not reached from -2 down", k)
}

// entered returns the condition on the period and the furthest step of an entry.
func (b *builder) entered(at *ActorsQuery) (hogql.Expr, error) {
	if at.FunnelTrendsDropOff == nil {
		return nil, diag.Field(diag.InvalidInput, at.Field("funnelTrendsDropOff"), "Actors parameter `funnelTrendsDropOff` must be provided for funnel trends persons!")
	}
	if at.FunnelTrendsEntrancePeriodStart == nil {
		return nil, diag.Field(diag.InvalidInput, at.Field("funnelTrendsEntrancePeriodStart"), "The actors of a funnel over time need the period in which they entered it")
	}
	start, err := insight.ReadDay(b.w, *at.FunnelTrendsEntrancePeriodStart, at.Field("funnelTrendsEntrancePeriodStart"))
	if err != nil {
		return nil, err
	}
	v := values{"start": b.dates.KeyExpr(b.dates.Floor(start)), "first": int64(b.q.FromStep() + 1), "last": int64(b.q.ToStep() + 1)}
	if *at.FunnelTrendsDropOff {
		return expr("period = {start} and level >= {first} and level < {last}", v), nil
	}
	return expr("period = {start} and level >= {last}", v), nil
}

// valued returns the condition that an attempt has a breakdown value; nil for any value. "Other" stands for the values that have no row of
// their own.
func (b *builder) valued(s stage, at *ActorsQuery) (hogql.Expr, error) {
	if at.FunnelStepBreakdown == nil {
		return nil, nil
	}
	if b.value == nil {
		return nil, diag.Field(diag.InvalidInput, at.Field("funnelStepBreakdown"), "The funnel has no breakdown")
	}
	texts := textsOf(at.FunnelStepBreakdown)
	if len(texts) == 1 && texts[0] == other && b.q.Viz != VizTrends {
		if most, rest := b.limit(); rest {
			kept := &hogql.Select{
				From: insight.From(b.ranking(s)), Columns: []hogql.Expr{insight.Field(valueName)}, Where: expr("rank <= {most}", values{"most": int64(most)}),
			}
			return insight.Compare(insight.Field(valueName), hogql.NotIn, &hogql.Subquery{Query: kept}), nil
		}
	}
	if len(texts) != len(b.value.members) {
		return nil, diag.Field(diag.InvalidInput, at.Field("funnelStepBreakdown"), "The funnel's breakdown has %d properties, not %d", len(b.value.members), len(texts))
	}
	wanted := make([]hogql.Expr, len(texts))
	for i, text := range texts {
		if field := &b.q.Breakdowns.Fields[i]; len(field.Cohorts) > 0 && (!b.value.outsiders || text != outsiderValue) {
			var err error
			if text, err = insight.CohortValue(field, text, at.Field("funnelStepBreakdown")); err != nil {
				return nil, err
			}
		}
		wanted[i] = insight.Const(text)
	}
	if len(wanted) == 1 {
		return insight.Eq(insight.Field(valueName), wanted[0]), nil
	}
	return insight.Eq(insight.Field(valueName), insight.Call("array", wanted...)), nil
}

// textsOf returns the texts of a breakdown value: a string, a json.Number, or a list of these.
func textsOf(value any) []string {
	switch v := value.(type) {
	case string:
		return []string{v}
	case json.Number:
		return []string{v.String()}
	case []any:
		var out []string
		for _, one := range v {
			out = slices.Concat(out, textsOf(one))
		}
		return out
	}
	return nil
}

// Steps returns a query for the steps of a funnel, whatever the funnel shows: a row for each actor that counts, with the columns actor_id
// (see Actor) and times. These are the times of all steps of the actor's attempt, in microseconds since 1970, 0 for a step that it did not
// take. The error is a *diag.Error.
func Steps(q *Query, w *insight.World) (hogql.Query, error) {
	plain := *q
	plain.Viz, plain.Breakdowns = VizSteps, nil
	b, err := newBuilder(&plain, w)
	if err != nil {
		return nil, err
	}
	attempts := b.attempts()
	return &hogql.Select{From: insight.From(attempts.query), Where: expr("times[1] > 0", nil), Columns: []hogql.Expr{
		insight.As(insight.Field(actorName), insight.ActorID),
		insight.As(expr("arrayMap(t -> if(t > 0, _toInt64(t - {shift}), 0), times)", values{"shift": b.marks.shift}), timesName),
	}}, nil
}
