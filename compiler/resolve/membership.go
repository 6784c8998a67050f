package resolve

import (
	"slices"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
)

// membership resolves IN and NOT IN. With transform_null_in, ClickHouse finds NULL in a set that contains it, so no wrapping is needed.
func (s *scope) membership(n *hogql.Compare) resolved.Expr {
	not := n.Op == hogql.NotIn
	name := "in"
	if not {
		name = "notIn"
	}
	if sub, ok := n.Right.(*hogql.Subquery); ok {
		return s.inSubquery(n, name, sub)
	}
	if list, ok := s.members(n.Right); ok {
		return s.inList(n, name, list)
	}
	left, right := s.expr(n.Left), s.expr(n.Right)
	switch typeOf(right).Kind {
	case hogql.ArrayKind, hogql.Unknown:
		return s.has(n.Pos, right, left, not)
	case hogql.TupleKind:
		if is[*resolved.Native](right) {
			return native(boolType, n.Pos, name, left, right)
		}
		s.r.mistake(n.Right.At(), "IN takes a list, an array or a subquery")
	default:
	}
	op := hogql.Equals
	if not {
		op = hogql.NotEquals
	}
	equal := &hogql.Compare{Pos: n.Pos, Op: op, Left: n.Left, Right: n.Right}
	left, right = s.resolvedSides(equal, left, right)
	return s.compared(equal, left, right, false)
}

// inSubquery resolves a test of whether a subquery returns a value, or a tuple of values in as many columns.
func (s *scope) inSubquery(n *hogql.Compare, name string, sub *hogql.Subquery) resolved.Expr {
	left := s.expr(n.Left)
	s.r.reads.Beyond = true
	rel := s.r.query(sub.Query, s.env)
	columns := len(rel.columns)
	if tuple, ok := left.(*resolved.Tuple); ok {
		if columns > 1 && columns != len(tuple.Items) {
			s.r.mistake(sub.Pos, "The left side of IN is a tuple of %d, the subquery gives %d columns", len(tuple.Items), columns)
		}
	} else if k := typeOf(left).Kind; columns > 1 && k != hogql.TupleKind && k != hogql.Unknown {
		s.r.mistake(sub.Pos, "The left side of IN is one value, the subquery gives %d columns", columns)
	}
	return native(boolType, n.Pos, name, left, &resolved.Subquery{Pos: sub.Pos, Query: rel.tree})
}

// members returns the members of a set that is written out.
func (s *scope) members(e hogql.Expr) ([]hogql.Expr, bool) {
	if t, ok := e.(*hogql.Tuple); ok {
		return t.Items, true
	}
	if a, ok := e.(*hogql.Array); ok {
		return a.Items, true
	}
	c, ok := e.(*hogql.Const)
	if !ok {
		return nil, false
	}
	list, ok := c.Value.([]any)
	if !ok {
		return []hogql.Expr{c}, true
	}
	s.r.spend.Nodes(len(list))
	items := make([]hogql.Expr, len(list))
	for i, v := range list {
		items[i] = &hogql.Const{Pos: c.Pos, Value: v}
	}
	return items, true
}

// inList resolves a test of whether a value is one of several.
func (s *scope) inList(n *hogql.Compare, name string, list []hogql.Expr) resolved.Expr {
	not := name == "notIn"
	var left resolved.Expr
	if words := allWords(list); words {
		left = s.stringProperty(n.Left)
	}
	if left == nil {
		left = s.expr(n.Left)
	}
	items := s.list(list)
	if len(items) == 0 {
		return truthOf(not, n.Pos)
	}
	if oneTuple(left, items) {
		items = []resolved.Expr{&resolved.Tuple{Pos: n.Right.At(), Items: items}}
	}
	if slices.ContainsFunc(items, func(item resolved.Expr) bool { return dateAndClock(left, item) }) {
		left = s.r.instant(left, s.r.zone)
	}
	if typeOf(left).Kind == hogql.DateTime {
		s.r.spend.Nodes(len(items))
		items = s.r.instants(items, s.r.zoneOf(typeOf(left)))
		left = s.fine(bare(left))
	}
	if !allConstant(items) {
		return s.has(n.Pos, &resolved.Array{Pos: n.Right.At(), Items: items}, left, not)
	}
	return native(boolType, n.Pos, name, left, &resolved.Tuple{Pos: n.Right.At(), Items: items})
}

// fine converts a time that may be in whole seconds to microseconds, as the members of a set are: ClickHouse takes no finer ones.
func (s *scope) fine(e resolved.Expr) resolved.Expr {
	if n, ok := e.(*resolved.Native); ok && strings.Contains(n.Name, "64") {
		return e
	}
	if c, ok := e.(*resolved.Column); ok && !s.ofQuery(c) {
		return e
	}
	return native(typeOf(e), e.At(), "toDateTime64", e, literal(int64(6)))
}

// ofQuery reports whether a column is computed by a query in FROM.
func (s *scope) ofQuery(c *resolved.Column) bool {
	return slices.ContainsFunc(s.sources, func(src source) bool { q, ok := src.(*querySource); return ok && q.alias == c.Table })
}

// oneTuple reports whether the members of a set are the elements of a single tuple like the one on the left: (a, b) IN (1, 2).
func oneTuple(left resolved.Expr, items []resolved.Expr) bool {
	tuple, ok := left.(*resolved.Tuple)
	if !ok || len(tuple.Items) != len(items) {
		return false
	}
	return !slices.ContainsFunc(items, func(item resolved.Expr) bool { return typeOf(item).Kind == hogql.TupleKind })
}

// has tests whether an array, unknown at compile time, contains a value. It treats NULL like any other value.
func (s *scope) has(at hogql.Span, array, value resolved.Expr, not bool) resolved.Expr {
	e := native(boolType, at, "has", array, value)
	if not {
		return native(boolType, at, "not", e)
	}
	return e
}

// plainConstants reports whether a list contains nothing to resolve.
func plainConstants(list []hogql.Expr) bool {
	for _, item := range list {
		c, ok := item.(*hogql.Const)
		if !ok {
			return false
		}
		switch c.Value.(type) {
		case nil, bool, int64, uint64, float64, string, time.Time:
		default:
			return false
		}
	}
	return true
}

func allWords(list []hogql.Expr) bool {
	for _, item := range list {
		if !isWord(item) {
			return false
		}
	}
	return len(list) > 0
}
