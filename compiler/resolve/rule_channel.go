package resolve

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// dictionaryLookup resolves a dictionary lookup. For an unknown name it returns NULL, or the function's default.
func (s *scope) dictionaryLookup(c *calling) resolved.Expr {
	x := s.expr(c.args[0])
	if typeOf(x).Kind != hogql.String {
		x = native(hogql.Type{Kind: hogql.String, Nullable: typeOf(x).MayBeNull()}, c.Pos, "toString", x)
	}
	if typeOf(x).MayBeNull() {
		x = native(stringType, c.Pos, "ifNull", x, literal(""))
	}
	in := c.f.Lookup.In
	if c.f.Lookup.Kind {
		x = s.once(c.Pos, func(first, again []resolved.Expr) resolved.Expr { return s.sourceKind(c.Pos, first[0], again[0]) }, x)
	}
	if in == nil {
		return native(nullableString, c.Pos, "nullIf", x, literal(""))
	}
	typ, otherwise := nullableString, literal(nil)
	if c.f.Lookup.Otherwise != "" {
		typ, otherwise = stringType, literal(c.f.Lookup.Otherwise)
	}
	return native(typ, c.Pos, "transform", x, &resolved.Const{Value: in.Names}, &resolved.Const{Value: in.Meanings}, otherwise)
}

// sourceKind looks up the kind of a source: by its whole name, by the site that this is a domain of, and by the name of that site in any country. It
// is ” for an unknown source.
func (s *scope) sourceKind(at hogql.Span, name, again resolved.Expr) resolved.Expr {
	str := func(function string, args ...resolved.Expr) resolved.Expr {
		return native(stringType, at, function, args...)
	}
	names := &resolved.Array{Pos: at, Items: []resolved.Expr{
		name, str("cutToFirstSignificantSubdomain", again), str("concat", str("firstSignificantSubdomain", again), literal(".*")),
	}}
	each := &resolved.LambdaParam{Pos: at, Name: s.made("name"), Type: stringType}
	kind := str("transform", each, &resolved.Const{Value: schema.Sources.Names}, &resolved.Const{Value: schema.Sources.Meanings}, literal(""))
	kinds := native(hogql.Type{Kind: hogql.ArrayKind, Elem: &stringType}, at, "arrayMap",
		&resolved.Lambda{Pos: at, Params: []string{each.Name}, Body: kind}, names)
	known := &resolved.LambdaParam{Pos: at, Name: s.made("kind"), Type: stringType}
	return str("arrayFirst", &resolved.Lambda{
		Pos: at, Params: []string{known.Name}, Body: native(boolType, at, "notEmpty", known),
	}, kinds)
}
