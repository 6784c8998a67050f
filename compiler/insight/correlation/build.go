// Package correlation answers FunnelCorrelationQuery: node ─▶ [build] ─▶ tree, and rows ─▶ [shape] ─▶ results (contract:
// clients-queries.md, section 8).
package correlation

import (
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/funnels"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// What actors did or are becomes signs: tuples of is_sign, event, property and value. Each actor has one more sign, which counts all
// actors, so that the funnel runs only once. Only the signs that the answer shows leave the database, since there may be as many signs as
// values.
const (
	// eventSigns has the signs of events, personSigns the signs of people, and groupSigns the signs of groups.
	eventSigns  = `SELECT {actor} AS bearer, _toMicroseconds(timestamp) AS clock, {signs} AS signs FROM events WHERE {condition}`
	personSigns = `SELECT id AS bearer, {signs} AS signs FROM persons`
	groupSigns  = `SELECT key AS bearer, {signs} AS signs FROM groups WHERE index = {group}`
	// spread has a row for each sign of an actor. An actor without signs keeps the one that every actor has.
	spread = `SELECT passed.actor_id AS actor_id, passed.converted AS converted, arrayJoin(arrayPushBack({own}, (0, '', '', ''))) AS sign
		FROM {bearers} AS bearers RIGHT JOIN {passed} AS passed ON bearers.bearer = passed.actor_id`
	counted = `SELECT sign.1 AS is_sign, sign.2 AS event, sign.3 AS property, sign.4 AS text,
		uniqExactIf(actor_id, converted = 1) AS success, uniqExactIf(actor_id, converted = 0) AS failure FROM {spread} GROUP BY sign
		HAVING is_sign = 0 OR success + failure > {rare}`
	compared = `SELECT is_sign, event, property, text, success, failure,
		max(if(is_sign = 0, success, 0)) OVER () AS successes, max(if(is_sign = 0, failure, 0)) OVER () AS failures FROM {counted}`
	rated = `SELECT is_sign, event, property, text, success, failure,
		(success + 1) * (failures - failure + 1) AS likely, (successes - success + 1) * (failure + 1) AS unlikely FROM {compared}
		WHERE is_sign = 0 OR successes > 0 AND failures > 0 AND success + failure >= least({least}, {share} * (successes + failures))`
	shown = `SELECT is_sign, event, property, text, success, failure, multiIf(is_sign = 0, 0, likely > unlikely, 1, 2) AS side FROM {rated}
		ORDER BY side, if(side = 1, -1, 1) * likely / unlikely, event, property, text LIMIT {most} BY side`
)

// The number of signs of each kind that are shown, and how many actors must have a sign: minFound, or minShare of all actors if that is
// fewer (contract: clients-queries.md, section 8).
const (
	maxShown = 10
	minFound = 25
	minShare = 0.02
	maxRare  = 2 // that many actors are too few for a property of events, whatever their share
)

// longest is the number of characters of a value that count, longestChain the number for a chain of elements.
const (
	longest      = 400
	longestChain = 10_000
)

// Autocaptured events are distinguished by their elements and the kind of the click.
const (
	autocapture   = "$autocapture"
	eventType     = "$event_type"
	elementsChain = "elements_chain"
	divider       = "__~~__"
)

// builder is the state of one Build.
type builder struct {
	query  *Query
	world  *insight.World
	passed *funnels.Passages
}

// Build returns the query of a correlation, and what shapes its rows. The error is a *diag.Error.
func Build(q *Query, w *insight.World) (*insight.Built, error) {
	if err := check(q); err != nil {
		return nil, err
	}
	passed, err := funnels.PassagesOf(q.Source, w)
	if err != nil {
		return nil, err
	}
	b := builder{query: q, world: w, passed: passed}
	v := map[string]any{
		"passed": passed.Query, "rare": int64(0), "least": int64(minFound), "share": minShare, "most": int64(maxShown),
		"own": insight.TemplateExpr("if(clock > entered AND clock < ended, signs, [])", nil),
	}
	switch q.Type {
	case Events:
		v["bearers"] = b.did(insight.TemplateExpr("[(1, event, '', '')]", nil), insight.And(b.exceptSteps(), notIn(insight.Field("event"), q.ExcludeEvents)))
	case EventProperties:
		v["bearers"], v["rare"] = b.did(b.ofEvents(), insight.And(b.exceptSteps(), in(insight.Field("event"), q.EventNames))), int64(maxRare)
	case Properties:
		v["bearers"], v["own"] = b.were(), b.own()
	}
	for _, stage := range []struct{ name, text string }{{"spread", spread}, {"counted", counted}, {"compared", compared}, {"rated", rated}} {
		v[stage.name] = insight.Template(stage.text, v)
	}
	return &insight.Built{Query: insight.Template(shown, v), Shape: shape{}.answer}, nil
}

// check refuses a query that does not name what to look at.
func check(q *Query) error {
	switch {
	case q.Type == Properties && len(q.ActorProperties) == 0:
		return diag.Field(diag.InvalidInput, q.Field("funnelCorrelationNames"), "Property Correlation expects atleast one Property to run correlation on")
	case q.Type == EventProperties && len(q.EventNames) == 0:
		return diag.Field(diag.InvalidInput, q.Field("funnelCorrelationEventNames"), "Event Property Correlation expects atleast one event name to run correlation on")
	}
	return nil
}

// did returns the query for events, with the signs of each.
func (b *builder) did(signs, condition hogql.Expr) hogql.Query {
	return insight.Template(eventSigns, map[string]any{
		"actor": b.passed.Actor, "signs": signs, "condition": insight.And(b.passed.Bounds, b.passed.Named, condition),
	})
}

// exceptSteps returns the condition that an event does not have the name of a step; nil for all events.
func (b *builder) exceptSteps() hogql.Expr { return notIn(insight.Field("event"), b.passed.Steps) }

// ofEvents returns the signs of an event by its properties; only by its elements if the query asks for autocaptured events.
func (b *builder) ofEvents() hogql.Expr {
	v := map[string]any{"longest": int64(longest), "counts": insight.OrTrue(notIn(insight.TemplateExpr("p.1", nil), b.query.ExcludeEventProperties))}
	if !slices.Contains(b.query.EventNames, autocapture) {
		return insight.TemplateExpr(`arrayMap(p -> (1, event, p.1, left(p.2, {longest})),
			arrayFilter(p -> {counts}, JSONExtractKeysAndValues(properties, 'String')))`, v)
	}
	if slices.Contains(b.query.ExcludeEventProperties, elementsChain) {
		return insight.TemplateExpr("arrayFilter(s -> 0, [(1, event, '', '')])", nil)
	}
	v["kind"], v["longest"] = insight.Call("ifNull", insight.Call("_plainText", insight.Field("properties", eventType)), insight.Const("")), int64(longestChain)
	v["divider"], v["chain"] = divider, elementsChain
	return insight.TemplateExpr("[(1, event, {chain}, concat({kind}, {divider}, left(elements_chain, {longest})))]", v)
}

// were returns the query for people or groups, with the signs of each.
func (b *builder) were() hogql.Query {
	v := map[string]any{"signs": b.ofActors()}
	group := b.query.Source.Source.Group
	if group == nil {
		return insight.Template(personSigns, v)
	}
	v["group"] = int64(*group)
	return insight.Template(groupSigns, v)
}

// ofActors returns the signs of a person or a group by its properties.
func (b *builder) ofActors() hogql.Expr {
	if b.all() {
		return insight.TemplateExpr(`arrayMap(p -> (1, '', p.1, left(p.2, {longest})), arrayFilter(p -> {counts}, JSONExtractKeysAndValues(properties, 'String')))`,
			map[string]any{"longest": int64(longest), "counts": insight.OrTrue(notIn(insight.TemplateExpr("p.1", nil), b.query.ExcludeActorProperties))})
	}
	return b.named(func(name string) hogql.Expr {
		return b.world.BreakdownText(insight.Field("properties", name), &query.Breakdown{})
	})
}

// own returns the signs of an actor. For a group of which nothing is known, the properties asked for by name are missing.
func (b *builder) own() hogql.Expr {
	if b.all() || b.query.Source.Source.Group == nil {
		return insight.Field("signs")
	}
	return insight.TemplateExpr("if(empty(signs), {missing}, signs)", map[string]any{
		"missing": b.named(func(string) hogql.Expr { return insight.Const("") }),
	})
}

// all reports whether all properties of actors count.
func (b *builder) all() bool { return slices.Contains(b.query.ActorProperties, All) }

// named returns a sign for each property of actors that is asked for by name. value returns its value.
func (b *builder) named(value func(name string) hogql.Expr) hogql.Expr {
	out := &hogql.Array{}
	seen := map[string]bool{}
	for _, name := range b.query.ActorProperties {
		if !seen[name] && !slices.Contains(b.query.ExcludeActorProperties, name) {
			seen[name] = true
			out.Items = append(out.Items, &hogql.Tuple{Items: []hogql.Expr{insight.Const(int64(1)), insight.Const(""), insight.Const(name), value(name)}})
		}
	}
	if len(out.Items) == 0 {
		return insight.TemplateExpr("arrayFilter(s -> 0, [(1, '', '', '')])", nil)
	}
	return out
}

// in returns the condition that a text is one of texts, notIn the condition that it is none of them; nil if there are none.
func in(x hogql.Expr, texts []string) hogql.Expr { return among(x, hogql.In, texts) }

func notIn(x hogql.Expr, texts []string) hogql.Expr { return among(x, hogql.NotIn, texts) }

func among(x hogql.Expr, op hogql.CompareOp, texts []string) hogql.Expr {
	if len(texts) == 0 {
		return nil
	}
	set := &hogql.Tuple{}
	for _, text := range texts {
		set.Items = append(set.Items, insight.Const(text))
	}
	return insight.Compare(x, op, set)
}
