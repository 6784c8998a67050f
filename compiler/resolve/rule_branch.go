package resolve

import "github.com/caddy-analytics/caddy-analytics/compiler/resolved"

// ifCall resolves if and multiIf, in which a NULL condition counts as false.
func (s *scope) ifCall(c *calling) resolved.Expr {
	args := make([]resolved.Expr, len(c.args))
	for i, arg := range c.args {
		if i%2 == 0 && i < len(c.args)-1 {
			args[i] = s.condition(arg)
		} else {
			args[i] = s.expr(arg)
		}
	}
	if len(args)%2 == 0 {
		s.r.mistake(c.Pos, "Function '%s' expects an odd number of arguments, found %d", c.f.Name, len(args))
		return &resolved.Const{Pos: c.Pos}
	}
	return choice(c.Pos, args)
}

// coalesce resolves ifNull and coalesce. The result cannot be NULL if one value cannot.
func (s *scope) coalesce(c *calling) resolved.Expr {
	args := s.arguments(c)
	typ := common(args...)
	typ.Nullable = true
	for _, arg := range args {
		typ.Nullable = typ.Nullable && typeOf(arg).MayBeNull()
	}
	return native(typ, c.Pos, c.f.ClickHouse(), args...)
}
