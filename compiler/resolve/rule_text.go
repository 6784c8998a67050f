package resolve

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
)

// concat resolves concat and ||: NULL counts as ”, and other types go through toString.
func (s *scope) concat(c *calling) resolved.Expr {
	args := make([]resolved.Expr, len(c.args))
	for i, arg := range c.args {
		e := s.expr(arg)
		typ := typeOf(e)
		switch {
		case isNull(e):
			e = &resolved.Const{Pos: e.At(), Value: ""}
		case typ.Kind != hogql.String && typ.Kind != hogql.JSON:
			e = native(hogql.Type{Kind: hogql.String, Nullable: typ.MayBeNull()}, e.At(), "toString", e)
		}
		if typ.MayBeNull() && !is[*resolved.Const](e) {
			e = native(stringType, e.At(), "ifNull", e, literal(""))
		}
		args[i] = e
	}
	return s.finish(c, args)
}
