package funnels

import (
	"encoding/json"
	"strconv"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// ActorsQuery asks for the actors of a step of a funnel.
type ActorsQuery struct {
	query.Drill
	Source *Query `json:"-"`
	// FunnelStep is the step that actors reached, from 1; negative for those that left before it; nil if it is not given.
	FunnelStep *int `json:"funnelStep,omitempty"`
	// FunnelCustomSteps are the steps that were the furthest of an actor, from 1; they take precedence over FunnelStep.
	FunnelCustomSteps []int `json:"funnelCustomSteps,omitempty"`
	// FunnelStepBreakdown is a value of the breakdown: a string, a json.Number, or a []any of these; nil for any.
	FunnelStepBreakdown any `json:"funnelStepBreakdown,omitempty"`
	// FunnelTrendsDropOff asks, in a funnel over time, for the actors that left instead of those that converted; nil if it is not given.
	FunnelTrendsDropOff *bool `json:"funnelTrendsDropOff,omitempty"`
	// FunnelTrendsEntrancePeriodStart is the start of the bucket in which the actors entered a funnel over time.
	FunnelTrendsEntrancePeriodStart *string `json:"funnelTrendsEntrancePeriodStart,omitempty"`
}

// Kind returns FunnelsActorsQuery.
func (*ActorsQuery) Kind() string { return "FunnelsActorsQuery" }

// Behind returns the funnel.
func (q *ActorsQuery) Behind() query.Insight { return q.Source }

// Overridden applies the overrides to the funnel.
func (q *ActorsQuery) Overridden(ov *query.Overrides) (query.Node, error) {
	out := *q
	out.Source = ov.Apply(q.Source).(*Query)
	return &out, nil
}

// Canonical leaves out what only changes how the insight is shown.
func (q *ActorsQuery) Canonical() []byte { return query.CanonicalOver(q.Kind(), q.Source, q) }

// ReadActors reads a FunnelsActorsQuery.
func ReadActors(r *query.Reader, o *query.Object, d query.Drill, behind query.Insight) query.PeopleSource {
	q := &ActorsQuery{Drill: d, Source: behind.(*Query), FunnelStepBreakdown: r.BreakdownValue(o, "funnelStepBreakdown")}
	if n, ok := o.Integer("funnelStep"); ok {
		q.FunnelStep = &n
	}
	for i, item := range o.List("funnelCustomSteps") {
		number, _ := item.(json.Number)
		n, ok := query.Whole(number)
		if !ok {
			r.Add(o.Field("funnelCustomSteps").Below(strconv.Itoa(i), true), "int_type", "Input should be a valid integer")
		}
		q.FunnelCustomSteps = append(q.FunnelCustomSteps, int(n))
	}
	q.FunnelTrendsDropOff = o.FlagOrNil("funnelTrendsDropOff")
	if start := o.Text("funnelTrendsEntrancePeriodStart"); start != "" {
		q.FunnelTrendsEntrancePeriodStart = &start
	}
	if period := o.Period(); period != nil && *period == "previous" {
		r.Refuse(o.Field("compare"), "A funnel is not compared with a previous period")
	}
	return q
}
