package resolve

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// channelLookup resolves a search in a dictionary of channels: NULL for a name that is not in it.
func (s *scope) channelLookup(c *calling) hogql.Expr {
	x := s.expr(c.args[0])
	if typeOf(x).Kind != hogql.String {
		x = native(hogql.Type{Kind: hogql.String, Nullable: typeOf(x).MayBeNull()}, c.Pos, "toString", x)
	}
	if typeOf(x).MayBeNull() {
		x = native(stringType, c.Pos, "ifNull", x, literal(""))
	}
	in := c.f.Lookup.In
	if c.f.Lookup.Kind {
		x = s.once(c.Pos, func(first, again []hogql.Expr) hogql.Expr { return s.sourceKind(c.Pos, first[0], again[0]) }, x)
	}
	if in == nil {
		return native(nullableString, c.Pos, "nullIf", x, literal(""))
	}
	return native(nullableString, c.Pos, "transform", x, &hogql.Const{Value: in.Names}, &hogql.Const{Value: in.Meanings}, literal(nil))
}

// sourceKind looks up the kind of a source: by its whole name, by the site that the name is a domain of, and by the name of
// that site in any country. It is ” for an unknown source.
func (s *scope) sourceKind(at hogql.Span, name, again hogql.Expr) hogql.Expr {
	str := func(function string, args ...hogql.Expr) hogql.Expr { return native(stringType, at, function, args...) }
	names := &hogql.Array{Pos: at, Items: []hogql.Expr{
		name, str("cutToFirstSignificantSubdomain", again), str("concat", str("firstSignificantSubdomain", again), literal(".*")),
	}}
	each := &hogql.LambdaParam{Pos: at, Name: s.unique("name"), Type: stringType}
	kind := str("transform", each, &hogql.Const{Value: schema.Sources.Names}, &hogql.Const{Value: schema.Sources.Meanings}, literal(""))
	kinds := native(hogql.Type{Kind: hogql.ArrayKind, Elem: &stringType}, at, "arrayMap",
		&hogql.Lambda{Pos: at, Params: []string{each.Name}, Body: kind}, names)
	known := &hogql.LambdaParam{Pos: at, Name: s.unique("kind"), Type: stringType}
	return str("arrayFirst", &hogql.Lambda{
		Pos: at, Params: []string{known.Name}, Body: native(boolType, at, "notEmpty", known),
	}, kinds)
}
