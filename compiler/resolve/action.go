package resolve

import (
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// Actions are the actions of a project.
type Actions interface {
	// Matching returns the condition on events that match an action, and the action's number. The condition is over a table of events with the name
	// schema.MatchedEvents. The action is given by its number, an int64, or its name, a string. All nodes of the condition have the place at. It
	// is an OR of steps, each of them an AND of conditions with their own aliases; or a single condition.
	Matching(action any, at diag.Span) (condition hogql.Expr, id int64, mistake *diag.Error)
}

// matching is an action that the query refers to.
type matching struct {
	named     any // the action, as an int64 or a string
	condition hogql.Expr
	id        int64
	mistake   *diag.Error
	open      bool // its condition is being resolved
}

// matchingOf returns the action that a call of matchesAction refers to; nil for any other expression, and for an invalid call.
func (r *resolver) matchingOf(e hogql.Expr) *matching {
	c, ok := e.(*hogql.Call)
	if !ok || c.Name != schema.MatchesAction || len(c.Args) != 1 || r.actions == nil {
		return nil
	}
	named, ok := c.Args[0].(*hogql.Const)
	if !ok {
		return nil
	}
	switch named.Value.(type) {
	case int64, string:
	default:
		return nil
	}
	if i := slices.IndexFunc(r.matching, func(m *matching) bool { return m.named == named.Value }); i >= 0 {
		return r.matching[i]
	}
	m := &matching{named: named.Value}
	m.condition, m.id, m.mistake = r.actions.Matching(named.Value, c.Pos)
	r.matching = append(r.matching, m)
	return m
}

// matchesAction resolves matchesAction(x): the condition on the events that the SELECT reads. Names in it mean fields of these events, whatever else
// has these names in the SELECT or the query. In a condition NULL counts as false; the value is never NULL.
func (s *scope) matchesAction(c *hogql.Call, condition bool) resolved.Expr {
	never := truthOf(false, c.Pos)
	if !s.placed(c, &schema.Function{Name: c.Name}) {
		return never
	}
	if wrong := wrongAction(c); wrong != "" {
		s.r.mistake(c.Pos, "%s", wrong)
		return never
	}
	m := s.r.matchingOf(c)
	switch {
	case m == nil:
		return never
	case m.mistake != nil:
		mistake := *m.mistake // a copy, since there may be other calls
		mistake.Span = c.Pos
		s.r.mistakes.Add(&mistake)
		return never
	case m.open:
		s.r.mistake(c.Pos, "Action ID %d cannot use itself", m.id)
		return never
	}
	events := s.events()
	if events == nil {
		s.r.mistake(c.Pos, "matchesAction needs the events table in FROM of the same SELECT")
		return never
	}
	outer := s.r.survey
	m.open, s.r.survey = true, nil // what the action uses is not written in the query
	defer func() { m.open, s.r.survey = false, outer }()
	return s.apart(events).steps(m.condition, condition)
}

// wrongAction returns what is wrong with the arguments of a call; empty if nothing is.
func wrongAction(c *hogql.Call) string {
	const one = "action() takes exactly one string or integer argument"
	if len(c.Args) != 1 || c.Params != nil {
		return one
	}
	named, ok := c.Args[0].(*hogql.Const)
	if !ok {
		return "action() takes only constant arguments"
	}
	switch named.Value.(type) {
	case int64, string:
		return ""
	}
	return one
}

// events returns the first table of events in FROM; nil if there is none.
func (s *scope) events() *tableSource {
	for _, src := range s.sources {
		if m, ok := src.(matched); ok {
			return m.tableSource
		}
		if t := stored(src); t != nil && t.table.IsEvents() {
			return t
		}
	}
	return nil
}

// matched is a table of events, as the conditions of actions name it.
type matched struct{ *tableSource }

func (matched) called() string { return schema.MatchedEvents }

// apart returns a scope, for an expression in the same SELECT, in which names only mean fields of one table.
func (s *scope) apart(t *tableSource) *scope {
	if s.names == nil {
		s.names = new(names)
	}
	inner := &scope{r: s.r, tree: s.tree, sources: []source{matched{t}}, names: s.names, clause: "an action", aggregate: s.aggregate, byProperty: s.byProperty}
	inner.frame = &inner.aliases
	return inner
}

// steps resolves the steps of an action.
func (s *scope) steps(e hogql.Expr, condition bool) resolved.Expr {
	whole := func(e hogql.Expr) resolved.Expr { return s.own(e, condition) }
	steps, ok := e.(*hogql.Logic)
	if !ok {
		return whole(e)
	}
	return s.logic(steps.Pos, steps.Or, steps.Args, func(e hogql.Expr) resolved.Expr {
		step, ok := e.(*hogql.Logic)
		if !ok {
			return whole(e)
		}
		return s.logic(step.Pos, step.Or, step.Args, whole)
	})
}

// own resolves a condition in a frame of its own for aliases. NULL counts as false.
func (s *scope) own(e hogql.Expr, condition bool) resolved.Expr {
	outer := s.frame
	s.frame = new(frame)
	defer func() { s.frame = outer }()
	s.aliasVisitor(s.frame).WalkExpr(e)
	if condition {
		return s.condition(e)
	}
	value := s.expr(e)
	if typeOf(value).MayBeNull() {
		return native(boolType, e.At(), "ifNull", value, literal(false))
	}
	return value
}
