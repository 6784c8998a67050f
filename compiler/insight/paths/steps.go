package paths

import (
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// The queries that turn events into steps: a person, a moment and a name. The parts of a name have their own columns, so that each is read
// once.
const (
	raw     = `SELECT person_id, {moment} AS moment, event, {own} AS own, {page} AS page, {screen} AS screen FROM {events} WHERE {condition}`
	named   = `SELECT person_id, moment, {name} AS name FROM {raw}`
	renamed = `SELECT person_id, moment, {name} AS name FROM {steps}`
	chosen  = `SELECT person_id, moment, name FROM {steps} WHERE name NOT IN {excluded}`
	// address is the address of a page, without a slash at its end.
	address = `if(endsWith(page, '/') AND length(page) > 1, substring(page, 1, length(page) - 1), page)`
)

// counted returns the condition that an event counts in paths (contract: paths.md, section 2).
func (b *builder) counted() hogql.Expr {
	return insight.And(b.dates.Bounds(), b.filters, b.included())
}

func (b *builder) included() hogql.Expr {
	var kinds []hogql.Expr
	for _, kind := range b.query.Include {
		switch kind {
		case Pageviews, Screens:
			kinds = append(kinds, insight.Eq(insight.Field("event"), insight.Const(string(kind))))
		case Custom:
			kinds = append(kinds, insight.TemplateExpr("NOT startsWith(event, '$')", nil))
		case Named: // names steps, but selects no events
		}
	}
	if len(kinds) == 0 {
		return nil
	}
	return insight.Or(kinds...)
}

// on reports whether steps take their names from a kind of events (contract: paths.md, section 3).
func (b *builder) on(kind EventKind) bool {
	if len(b.query.Include) == 0 {
		return !slices.Contains(b.query.Exclude, string(kind))
	}
	return slices.Contains(b.query.Include, kind)
}

// steps returns the query for the steps of all people, in no order. The error is a *diag.Error.
func (b *builder) steps(moment hogql.Expr) (hogql.Query, error) {
	own, err := b.own()
	if err != nil {
		return nil, err
	}
	tree, err := b.raw(map[string]any{
		"moment": moment, "own": own, "page": textOf("$current_url"), "screen": textOf("$screen_name"),
		"events": insight.Events(&b.query.Common), "condition": b.counted(),
	})
	if err != nil {
		return nil, err
	}
	tree = over(named, "raw", tree, map[string]any{"name": b.name()})
	if cleaned := b.cleaned(insight.Field("name")); cleaned != nil {
		tree = over(renamed, "steps", tree, map[string]any{"name": cleaned})
	}
	if len(b.query.Groupings) > 0 {
		tree = over(renamed, "steps", tree, map[string]any{"name": grouped(insight.Field("name"), b.query.Groupings)})
	}
	if len(b.query.Include) > 0 && len(b.query.Exclude) > 0 {
		tree = over(chosen, "steps", tree, map[string]any{"excluded": constants(b.query.Exclude)})
	}
	return tree, nil
}

// raw returns the query for the events that count. The error is a *diag.Error.
func (b *builder) raw(values map[string]any) (hogql.Query, error) {
	if b.query.Funnel != nil {
		return b.around(values)
	}
	return insight.Template(raw, values), nil
}

// own returns the name of a step that is neither a page nor a screen, as text.
func (b *builder) own() (hogql.Expr, error) {
	if !b.on(Named) || strings.TrimSpace(b.query.Expression) == "" {
		return insight.Call("toString", insight.Field("event")), nil
	}
	attr := b.query.Field("pathsFilter.pathsHogQLExpression")
	e, mistake := filter.UserExpr(b.query.Expression, b.world.Spend)
	if mistake != nil {
		return nil, diag.Field(mistake.Code, attr, "The HogQL expression of a path %s", mistake.Detail)
	}
	if insight.Aggregates(e) {
		return nil, diag.Field(diag.QueryError, attr, "The HogQL expression of a path names the step of one event, and cannot aggregate")
	}
	return text(insight.Bare(e)), b.world.Known(e, attr)
}

// name returns the name of a step before it is cleaned.
func (b *builder) name() hogql.Expr {
	name := insight.Field("own")
	if b.on(Screens) {
		name = whenEvent(Screens, insight.Field("screen"), name)
	}
	if b.on(Pageviews) {
		name = whenEvent(Pageviews, insight.TemplateExpr(address, nil), name)
	}
	return name
}

func whenEvent(kind EventKind, then, otherwise hogql.Expr) hogql.Expr {
	return insight.Call("if", insight.Eq(insight.Field("event"), insight.Const(string(kind))), then, otherwise)
}

// textOf returns a property of an event as text.
func textOf(property string) hogql.Expr { return text(insight.Field("properties", property)) }

// text converts a value to text, empty for none.
func text(x hogql.Expr) hogql.Expr {
	return insight.Call("ifNull", insight.Call("_plainText", x), insight.Const(""))
}

// constants returns a list of texts.
func constants(texts []string) hogql.Expr {
	set := &hogql.Tuple{}
	for _, text := range texts {
		set.Items = append(set.Items, insight.Const(text))
	}
	return set
}
