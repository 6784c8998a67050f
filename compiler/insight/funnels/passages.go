package funnels

import (
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// Passages says when the actors of a funnel went through it.
type Passages struct {
	// Query returns a row for each actor, or for each of its breakdown values, with the columns actor_id (see Actor), entered, ended and
	// converted. entered is when it took the first step. ended is when it took the last step or, if it did not, when its window was over.
	// Both are in microseconds since 1970. converted is 1 for actors that took the last step, and 0 for all others.
	Query hogql.Query
	// Actor is what is counted on an event, and Named the condition that the event has one; nil for people.
	Actor, Named hogql.Expr
	// Bounds is the condition that an event is in the range of the funnel.
	Bounds hogql.Expr
	// Steps are the event names of the funnel's steps, sorted, without those of steps that allow any name.
	Steps []string
}

// PassagesOf returns the passages, whatever the funnel shows, of the actors in a drill-down. Without a step, these are the actors that took
// the first step. The error is a *diag.Error.
func PassagesOf(at *ActorsQuery, w *insight.World) (*Passages, error) {
	plain, asked := *at.Source, *at
	plain.Viz = VizSteps
	if asked.FunnelStep == nil {
		first := 1
		asked.FunnelStep = &first
	}
	b, err := newBuilder(&plain, w)
	if err != nil {
		return nil, err
	}
	if b.text {
		return nil, diag.Field(diag.InvalidInput, plain.Field("funnelsFilter.funnelAggregateByHogQL"), "This funnel counts neither people nor groups, so its actors cannot be told apart by what they did or are")
	}
	reached, err := b.reached(&asked)
	if err != nil {
		return nil, err
	}
	attempts := b.attempts()
	value, err := b.valued(attempts, &asked)
	if err != nil {
		return nil, err
	}
	out := &Passages{Bounds: b.dates.Bounds(), Steps: b.stepNames()}
	out.Actor, out.Named = insight.Actor(plain.Group)
	v := values{"shift": b.marks.shift, "window": b.marks.window, "last": int64(b.marks.steps)}
	out.Query = &hogql.Select{
		From: insight.From(attempts.query), Where: insight.And(reached, value),
		Columns: []hogql.Expr{
			insight.As(insight.Field(actorName), insight.ActorID),
			insight.As(expr("_toInt64(times[1] - {shift})", v), "entered"),
			insight.As(expr("_toInt64(if(times[{last}] > 0, times[{last}], times[1] + {window}) - {shift})", v), "ended"),
			insight.As(expr("if(times[{last}] > 0, 1, 0)", v), "converted"),
		},
	}
	return out, nil
}

// stepNames returns the event names of the steps, sorted, each once.
func (b *builder) stepNames() []string {
	var out []string
	var add func(s *query.Series)
	add = func(s *query.Series) {
		if s.Event != nil {
			out = append(out, *s.Event)
		}
		if a := b.w.Actions.Get(s.Action); a != nil && s.Kind == query.ActionsNode {
			for i := range a.Steps {
				if name := a.Steps[i].Event; name != "" {
					out = append(out, name)
				}
			}
		}
		for i := range s.Members {
			add(&s.Members[i])
		}
	}
	for i := range b.q.Series {
		add(&b.q.Series[i])
	}
	slices.Sort(out)
	return slices.Compact(out)
}
