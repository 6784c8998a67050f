package resolve

import (
	"strconv"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
)

// maxScale is the most decimals of a Decimal64.
const maxScale = 18

// decimal resolves toDecimal(x, scale).
func (s *scope) decimal(c *calling) resolved.Expr {
	x := s.expr(c.args[0])
	scale, ok := s.expr(c.args[1]).(*resolved.Const)
	if ok {
		if n, whole := scale.Value.(int64); whole && n >= 0 && n <= maxScale {
			typ := hogql.Type{Kind: hogql.Decimal, Nullable: true}
			return native(typ, c.Pos, c.f.ClickHouse(), x, literal("Decimal64("+strconv.FormatInt(n, 10)+")"))
		}
	}
	s.r.mistake(c.args[1].At(), "The scale of '%s' must be a constant from 0 to %d", c.f.Name, maxScale)
	return &resolved.Const{Pos: c.Pos}
}
