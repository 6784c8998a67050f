package resolve

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
)

// once returns an expression that uses values several times but computes each only once, so that nested expressions of this kind stay small.
// body receives the values for their first use, and for all later uses.
//
// A value gets an alias at its first use. Inside a lambda, an alias would have the same value for all elements, so there the values become
// parameters of another lambda.
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
			a = named(v, s.made("value"))
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
		name := s.made("value")
		lambda.Params = append(lambda.Params, name)
		params[i] = &resolved.LambdaParam{Pos: v.At(), Name: name, Type: typeOf(v)}
		args = append(args, &resolved.Array{Pos: v.At(), Items: []resolved.Expr{v}})
	}
	lambda.Body = body(params, params)
	typ := typeOf(lambda.Body)
	mapped := native(hogql.Type{Kind: hogql.ArrayKind, Elem: &typ}, at, "arrayMap", args...)
	return native(typ, at, "arrayElement", mapped, literal(int64(1)))
}
