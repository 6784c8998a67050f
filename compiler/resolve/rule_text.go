package resolve

import "github.com/caddy-analytics/caddy-analytics/compiler/hogql"

// concat resolves concat and ||: NULL counts as ”, and other types go through toString.
func (s *scope) concat(c *calling) hogql.Expr {
	args := make([]hogql.Expr, len(c.args))
	for i, arg := range c.args {
		e := s.expr(arg)
		typ := typeOf(e)
		switch {
		case isNull(e):
			e = &hogql.Const{Pos: e.At(), Value: ""}
		case typ.Kind != hogql.String && typ.Kind != hogql.JSON:
			e = native(hogql.Type{Kind: hogql.String, Nullable: typ.MayBeNull()}, e.At(), "toString", e)
		}
		if typ.MayBeNull() && !is[*hogql.Const](e) {
			e = native(stringType, e.At(), "ifNull", e, literal(""))
		}
		args[i] = e
	}
	return s.finish(c, args)
}
