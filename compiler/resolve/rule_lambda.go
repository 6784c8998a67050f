package resolve

import (
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// lambdaCall resolves a function whose first argument may be a lambda over the elements of the arrays after it.
func (s *scope) lambdaCall(c *calling) resolved.Expr {
	l, ok := c.args[0].(*hogql.Lambda)
	if !ok {
		return s.finish(c, s.arguments(c))
	}
	arrays := make([]resolved.Expr, len(c.args)-1)
	types := make([]hogql.Type, len(arrays))
	for i, arg := range c.args[1:] {
		arrays[i] = s.expr(arg)
		types[i] = elementType(typeOf(arrays[i]))
	}
	if c.f.LambdaFolds {
		types = append([]hogql.Type{{}}, types[:max(len(types)-1, 0)]...)
	}
	lambda := s.lambda(l, types)
	typ := resultType(c.f, arrays)
	if c.f.LambdaElems {
		elem := typeOf(lambda.Body)
		typ.Elem = &elem
	}
	if c.f.LambdaValue {
		typ = typeOf(lambda.Body)
		if typ.Kind == hogql.Bool { // a sum of truths is their number
			typ.Kind = hogql.Int
		}
	}
	out := s.finish(c, append([]resolved.Expr{lambda}, arrays...))
	if n, ok := out.(*resolved.Native); ok {
		n.Type = typ
	}
	return out
}

// arrayReduce resolves arrayReduce('aggregate', array, …), which only accepts some aggregates.
func (s *scope) arrayReduce(c *calling) resolved.Expr {
	name, ok := writtenText(c.args[0])
	if !ok {
		s.r.mistake(c.args[0].At(), "Expected constant string as first arg in function '%s'", c.f.Name)
		return &resolved.Const{Pos: c.Pos}
	}
	if !schema.ReducibleBy(name) {
		among := schema.ReducingAggregates()
		s.r.near(name, slices.Values(among), c.args[0].At(), "Invalid parametric function in '%s', '%s' is not supported. It takes one of %s",
			c.f.Name, name, strings.Join(among, ", "))
		return &resolved.Const{Pos: c.Pos}
	}
	return s.finish(c, s.arguments(c))
}
