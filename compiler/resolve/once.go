package resolve

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
)

// once returns an expression that needs values more than once and computes each but once, so that no nesting of such
// expressions can blow up. Body gets the values for their first use and for those after it.
//
// A value is given an alias where it is first used. Inside a lambda, where an alias would be the same for all elements,
// the values become parameters of a lambda of their own.
func (s *scope) once(at hogql.Span, body func(first, again []resolved.Expr) resolved.Expr, values ...resolved.Expr) resolved.Expr {
	leaves := true
	for _, v := range values {
		leaves = leaves && isLeaf(bare(v))
	}
	if leaves {
		return body(values, values)
	}
	if s.frame != &s.aliases {
		return s.bound(at, body, values)
	}
	first, again := make([]resolved.Expr, len(values)), make([]resolved.Expr, len(values))
	for i, v := range values {
		first[i], again[i] = v, v
		if isLeaf(bare(v)) {
			continue
		}
		a, ok := v.(*resolved.Alias)
		if !ok {
			a = named(v, s.unique("value"))
		}
		first[i], again[i] = a, &resolved.AliasRef{Pos: v.At(), Name: a.Name, Type: typeOf(v)}
	}
	return body(first, again)
}

// bound puts the values into arrays of one element, and the body into a lambda over them.
func (s *scope) bound(at hogql.Span, body func(first, again []resolved.Expr) resolved.Expr, values []resolved.Expr) resolved.Expr {
	lambda := &resolved.Lambda{Pos: at}
	args := []resolved.Expr{lambda}
	params := make([]resolved.Expr, len(values))
	for i, v := range values {
		name := s.unique("value")
		lambda.Params = append(lambda.Params, name)
		params[i] = &resolved.LambdaParam{Pos: v.At(), Name: name, Type: typeOf(v)}
		args = append(args, &resolved.Array{Pos: v.At(), Items: []resolved.Expr{v}})
	}
	lambda.Body = body(params, params)
	typ := typeOf(lambda.Body)
	mapped := native(hogql.Type{Kind: hogql.ArrayKind, Elem: &typ}, at, "arrayMap", args...)
	return native(typ, at, "arrayElement", mapped, literal(int64(1)))
}
