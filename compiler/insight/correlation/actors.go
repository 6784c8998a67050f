package correlation

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/funnels"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// ActorsQuery asks for the actors behind a number of a correlation.
type ActorsQuery struct {
	query.Drill
	Source *Query `json:"-"`
	// Converted keeps the actors that took the last step, or those that did not; nil for both.
	Converted *bool `json:"converted,omitempty"`
	// Entity is what the actors did between the first step and the last; nil for properties of actors.
	Entity *query.Series `json:"entity,omitempty"`
	// Values is the condition on the properties of the actors; nil for events.
	Values *query.Condition `json:"values,omitempty"`
}

// Kind returns FunnelCorrelationActorsQuery.
func (*ActorsQuery) Kind() string { return "FunnelCorrelationActorsQuery" }

// Behind returns the funnel.
func (q *ActorsQuery) Behind() query.Insight { return q.Source.Source.Source }

// OwnModifiers returns the modifiers of the node and of the nodes between it and the funnel; inner ones override outer ones.
func (q *ActorsQuery) OwnModifiers() query.Modifiers {
	return q.Source.Source.OwnModifiers().Over(q.Source.Modifiers).Over(q.Modifiers)
}

// Overridden applies the overrides to the funnel.
func (q *ActorsQuery) Overridden(ov *query.Overrides) (query.Node, error) {
	source, err := q.Source.Overridden(ov)
	if err != nil {
		return nil, err
	}
	out := *q
	out.Source = source.(*Query)
	return &out, nil
}

// Canonical leaves out what only changes how the funnel is shown.
func (q *ActorsQuery) Canonical() []byte { return query.CanonicalOver(q.Kind(), q.Source, q) }

// ReadActors reads a FunnelCorrelationActorsQuery.
func ReadActors(r *query.Reader, o *query.Object) query.Node {
	o.Required("source")
	q := &ActorsQuery{
		Drill:     query.Drill{At: o.At.Attr, Recordings: o.Flag("includeRecordings"), Modifiers: r.Modifiers(o)},
		Converted: o.FlagOrNil("funnelCorrelationPersonConverted"), Values: r.Properties(o, "funnelCorrelationPropertyValues"),
	}
	if given, ok := o.Take("funnelCorrelationPersonEntity"); ok {
		entity := r.SeriesNode(given, o.Field("funnelCorrelationPersonEntity"), true)
		q.Entity = &entity
	}
	source, ok := r.EndWithSource(o, "FunnelCorrelationQuery").(*Query)
	if !ok {
		return nil
	}
	q.Source = source
	return q
}

// The queries for the actors of a funnel, and for those of them that did something in it.
const (
	passing = `SELECT DISTINCT actor_id FROM {passed} AS passed WHERE {converted}`
	doing   = `SELECT DISTINCT passed.actor_id AS actor_id FROM {bearers} AS bearers INNER JOIN {passed} AS passed ON bearers.bearer = passed.actor_id
		WHERE clock > entered AND clock < ended AND {converted}`
)

// Actors returns the query for the actors behind a number of a correlation. The error is a *diag.Error.
func Actors(at *ActorsQuery, w *insight.World) (*insight.People, error) {
	q := at.Source
	source := *q.Source
	if q.Type == Properties {
		if at.Values == nil {
			return nil, diag.Field(diag.InvalidInput, at.Field("funnelCorrelationPropertyValues"), "Property Correlation expects atleast one Property to get persons for")
		}
		source.Source = filtered(source.Source, at.Values)
	} else if at.Entity == nil {
		return nil, diag.Field(diag.InvalidInput, at.Field("funnelCorrelationPersonEntity"), "No entity for persons specified")
	}
	passed, err := funnels.PassagesOf(&source, w)
	if err != nil {
		return nil, err
	}
	v := map[string]any{"passed": passed.Query, "converted": converted(at.Converted)}
	out := &insight.People{Group: source.Source.Group}
	if q.Type == Properties {
		out.Query = insight.Template(passing, v)
		return out, nil
	}
	condition, err := w.Series(at.Entity)
	if err != nil {
		return nil, err
	}
	b := builder{query: q, world: w, passed: passed}
	v["bearers"] = b.did(&hogql.Array{}, insight.And(b.exceptSteps(), condition))
	out.Query = insight.Template(doing, v)
	return out, nil
}

// filtered adds a condition to the events of a funnel. As in PostHog, each event must satisfy the condition on its actor.
func filtered(q *funnels.Query, values *query.Condition) *funnels.Query {
	out := *q
	out.Properties = values
	if q.Properties != nil {
		out.Properties = &query.Condition{At: values.At, All: []query.Condition{*q.Properties, *values}}
	}
	return &out
}

// converted returns the condition on whether actors took the last step.
func converted(which *bool) hogql.Expr {
	switch {
	case which == nil:
		return insight.Const(true)
	case *which:
		return insight.TemplateExpr("converted = 1", nil)
	}
	return insight.TemplateExpr("converted = 0", nil)
}
