package insight

import (
	"errors"
	"fmt"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/filter"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// Action returns the condition that an event matches an action, for a SELECT over events. attr is the field that has the action's number.
// The error is a *diag.Error.
func (w *World) Action(id int64, attr string) (hogql.Expr, error) {
	if _, mistake := w.action(id); mistake != nil {
		mistake.Attr = attr
		return nil, mistake
	}
	return Call(schema.MatchesAction, Const(id)), nil
}

// ActionWithSteps is like Action, but refuses an action without steps, which would match every event.
func (w *World) ActionWithSteps(id int64, attr string) (hogql.Expr, error) {
	condition, err := w.Action(id, attr)
	if err == nil && len(w.Actions.Get(id).Steps) == 0 {
		err = diag.Field(diag.InvalidInput, attr, "Action does not have any match groups")
	}
	return condition, err
}

// Steps returns the condition that an event matches one of the steps of an action that is not stored, for a SELECT over events. The error is a
// *diag.Error.
func (w *World) Steps(steps []query.ActionStep) (hogql.Expr, error) {
	return matcher{w: w}.steps(steps)
}

// action finds an action by its number; it refuses one that is deleted or unreadable.
func (w *World) action(id int64) (*query.Action, *diag.Error) {
	a := w.Actions.Get(id)
	switch {
	case a == nil:
		return nil, &diag.Error{Code: diag.InvalidInput, Detail: query.NoAction(id)}
	case a.Deleted:
		return nil, &diag.Error{Code: diag.InvalidInput, Detail: query.DeletedAction(id, a.Name)}
	case a.Unreadable != "":
		return nil, unusable(a, &diag.Error{Code: diag.InvalidInput, Detail: a.Unreadable})
	}
	return a, nil
}

// unusable adds to a mistake which action it is in.
func unusable(a *query.Action, wrong *diag.Error) *diag.Error {
	return &diag.Error{Code: wrong.Code, Detail: fmt.Sprintf(`Action "%s" (ID %d) cannot be used: %s`, a.Label(), a.ID, wrong.Detail)}
}

// Matching returns the condition that an event matches an action, which is given by its number, an int64, or its name, a string. The
// condition is an OR of steps, each an AND of conditions, or true. It refers to the events of a table called schema.MatchedEvents; its
// nodes have the position at.
func (w *World) Matching(action any, at diag.Span) (condition hogql.Expr, id int64, mistake *diag.Error) {
	a, mistake := w.named(action)
	if mistake != nil {
		return nil, 0, mistake
	}
	condition, err := matcher{w, at}.steps(a.Steps)
	if err == nil {
		return condition, a.ID, nil
	}
	wrong, ok := errors.AsType[*diag.Error](err)
	if !ok {
		panic("BUG: an action that cannot be read: " + err.Error())
	}
	return nil, a.ID, unusable(a, wrong)
}

// named finds the action that the argument of matchesAction names.
func (w *World) named(action any) (*query.Action, *diag.Error) {
	id, numbered := action.(int64)
	name, _ := action.(string)
	switch found := w.Actions.Named(name); {
	case numbered && w.Actions.Get(id) == nil:
		return nil, diag.New(diag.QueryError, diag.Span{}, "Could not find an action with the ID %d", id)
	case numbered:
		return w.action(id)
	case len(found) > 1:
		return nil, diag.New(diag.QueryError, diag.Span{}, "Found multiple actions with name '%s'", name)
	case len(found) == 1:
		return w.action(found[0].ID)
	}
	mistake := diag.New(diag.QueryError, diag.Span{}, "Could not find an action with the name '%s'", name)
	if near := schema.Nearest(name, w.Spend.Hints(w.Actions.Names)); near != "" {
		mistake.Hint = near
		mistake.Fix = printedCall(schema.MatchesAction, near)
	}
	return nil, mistake
}

// printedCall returns the text of a call with one constant argument.
func printedCall(function string, arg any) string { return hogql.PrintExpr(Call(function, Const(arg))) }

// matcher builds the condition of the steps of one action.
type matcher struct {
	w  *World
	at diag.Span
}

// steps returns the condition that an event satisfies one of the steps.
func (m matcher) steps(of []query.ActionStep) (hogql.Expr, error) {
	steps := make([]hogql.Expr, len(of))
	for i := range of {
		step, err := m.step(&of[i])
		if err != nil {
			return nil, err
		}
		if step == nil {
			return m.constant(true), nil // any event
		}
		steps[i] = step
	}
	if len(steps) == 0 {
		return m.constant(true), nil
	}
	return &hogql.Logic{Pos: m.at, Or: true, Args: steps}, nil
}

// step returns the condition that an event satisfies a step; nil for a step without conditions.
func (m matcher) step(s *query.ActionStep) (hogql.Expr, error) {
	m.w.Spend.Nodes(1)
	var all []hogql.Expr
	if s.Event != "" {
		all = append(all, m.compare(m.field("event"), hogql.Equals, s.Event))
	}
	if s.Event == query.Clicked {
		elements, err := m.elements(s)
		if err != nil {
			return nil, err
		}
		all = append(all, elements...)
	}
	if s.URL != "" {
		all = append(all, m.text(m.url(), s.URL, s.URLMatching, query.Contains, hogql.Like))
	}
	filters, err := m.filters(s.Properties)
	if err != nil {
		return nil, err
	}
	if all = append(all, filters...); len(all) == 0 {
		return nil, nil
	}
	return &hogql.Logic{Pos: m.at, Args: all}, nil
}

// filters returns the conditions of a step's filters, all of which must hold. They stay separate because several may give the same name to
// different values.
func (m matcher) filters(c *query.Condition) ([]hogql.Expr, error) {
	if c == nil {
		return nil, nil
	}
	members := c.All
	if c.Filter != nil || c.Or {
		members = []query.Condition{*c}
	}
	var all []hogql.Expr
	for i := range members {
		condition, err := m.w.condition(&members[i], m.subject)
		if err != nil {
			return nil, err
		}
		if condition != nil {
			all = append(all, condition)
		}
	}
	return all, nil
}

// url returns the URL of an event, as text whatever its declared type is.
func (m matcher) url() hogql.Expr {
	const name = "$current_url"
	property := m.field("properties", name)
	if m.w.Database.Properties.Of(schema.PropertyKey{Scope: schema.EventProperty, Name: name}) == schema.StringProperty {
		return property
	}
	return &hogql.Call{Pos: m.at, Name: "_plainText", Args: []hogql.Expr{property}}
}

// elements returns the conditions on the clicked element.
func (m matcher) elements(s *query.ActionStep) ([]hogql.Expr, error) {
	var all []hogql.Expr
	if s.Href != nil {
		all = append(all, m.text(m.field("elements_chain_href"), *s.Href, s.HrefMatching, query.Exact, hogql.ILike))
	}
	if s.Text != nil {
		const text = "text"
		one := &hogql.Field{Pos: m.at, Chain: []hogql.Name{{Pos: m.at, Text: text}}}
		body := m.text(one, *s.Text, s.TextMatching, query.Exact, hogql.ILike)
		all = append(all, &hogql.Call{Pos: m.at, Name: "arrayExists", Args: []hogql.Expr{
			&hogql.Lambda{Pos: m.at, Params: []string{text}, Body: body}, m.field("elements_chain_texts"),
		}})
	}
	asked := []filter.Property{{Type: "element", Key: "selector", Value: s.Selector}}
	if s.Selector == "" {
		asked = nil
	}
	if s.TagName != nil {
		asked = append(asked, filter.Property{Type: "element", Key: "tag_name", Value: *s.TagName})
	}
	for _, f := range asked {
		element, err := filter.Condition(f, m.subject(s.Field(f.Key)))
		if err != nil {
			return nil, err
		}
		all = append(all, element)
	}
	return all, nil
}

// text compares a text of an event with the text of a step. how is the step's matching, and without the one for steps that do not say. like
// is the operator of Contains; % and _ in the step's text are wildcards.
func (m matcher) text(of hogql.Expr, with string, how, without query.Matching, like hogql.CompareOp) hogql.Expr {
	if how == query.DefaultMatching {
		how = without
	}
	switch how {
	case query.Regex:
		return m.compare(of, hogql.Match, with)
	case query.Contains:
		return m.compare(of, like, "%"+with+"%")
	case query.Exact, query.DefaultMatching:
	}
	return m.compare(of, hogql.Equals, with)
}

func (m matcher) subject(attr string) filter.Subject {
	s := m.w.subject(attr)
	s.At, s.Table = m.at, schema.MatchedEvents
	return s
}

func (m matcher) constant(v any) hogql.Expr { return &hogql.Const{Pos: m.at, Value: v} }

func (m matcher) compare(left hogql.Expr, op hogql.CompareOp, with string) hogql.Expr {
	return &hogql.Compare{Pos: m.at, Op: op, Left: left, Right: m.constant(with)}
}

// field refers to a field of the event, even if an expression in a step gives its name to something else.
func (m matcher) field(chain ...string) hogql.Expr {
	f := &hogql.Field{Pos: m.at, Chain: []hogql.Name{{Pos: m.at, Text: schema.MatchedEvents, Quoted: true}}}
	for _, name := range chain {
		f.Chain = append(f.Chain, hogql.Name{Pos: m.at, Text: name, Quoted: true})
	}
	return f
}
