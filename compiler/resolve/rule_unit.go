package resolve

import (
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// unit reads the name of a unit of time. It must be a constant, and ok must accept the unit.
func (s *scope) unit(c *calling, ok func(schema.Unit) bool) (schema.Unit, bool) {
	name, constant := writtenText(c.args[0])
	if !constant {
		s.r.mistake(c.args[0].At(), "The unit of '%s' must be a constant text, such as 'day'", c.f.Name)
		return schema.Unit{}, false
	}
	unit, known := schema.LookupUnit(name)
	if !known || !ok(unit) {
		s.r.near(name, schema.UnitNames(ok), c.args[0].At(), "Unknown unit of time for '%s': %s", c.f.Name, name)
		return schema.Unit{}, false
	}
	return unit, true
}

// unitCall resolves a function whose first argument names a unit: dateDiff, dateTrunc, age, dateName.
func (s *scope) unitCall(c *calling) resolved.Expr {
	unit, ok := s.unit(c, func(u schema.Unit) bool { return u.Name != "" })
	args := s.arguments(c)
	if !ok {
		return &resolved.Const{Pos: c.Pos}
	}
	args[0] = &resolved.Const{Pos: args[0].At(), Value: unit.Name}
	if c.f.Rule == schema.RuleTruncate {
		return s.truncated(c, args, args[1], unit)
	}
	return s.finish(c, args)
}

// truncated finishes a call that rounds x down to a unit: a long one gives a date. A date rounded to a shorter unit becomes a time in the server's zone.
// Its type is unknown, so that toDateTime reads its text in the project's zone.
func (s *scope) truncated(c *calling, args []resolved.Expr, x resolved.Expr, unit schema.Unit) resolved.Expr {
	out := s.finish(c, args)
	switch {
	case unit.Long:
		return ofKind(out, hogql.Date)
	case typeOf(x).Kind == hogql.Date:
		return ofKind(out, hogql.Unknown)
	}
	return out
}

// startOfInterval resolves toStartOfInterval(time, interval[, zone or origin]). From an origin on, the result has the type of the time.
func (s *scope) startOfInterval(c *calling) resolved.Expr {
	args := s.arguments(c)
	if len(args) > 2 && isTime(typeOf(args[2]).Kind) {
		return ofKind(s.finish(c, args), typeOf(args[0]).Kind)
	}
	if unit, ok := unitOfInterval(args[1]); ok {
		return s.truncated(c, args, args[0], unit)
	}
	return ofKind(s.finish(c, args), hogql.Unknown)
}

// unitOfInterval returns the unit of an interval that is written out.
func unitOfInterval(e resolved.Expr) (schema.Unit, bool) {
	if a, ok := e.(*resolved.Alias); ok {
		return unitOfInterval(a.X)
	}
	n, ok := e.(*resolved.Native)
	if !ok || n.Type.Kind != hogql.IntervalKind {
		return schema.Unit{}, false
	}
	return schema.LookupUnit(strings.TrimPrefix(n.Name, "toInterval"))
}

// datePart resolves date_part('unit', x), for which each unit has its own function.
func (s *scope) datePart(c *calling) resolved.Expr {
	unit, ok := s.unit(c, func(u schema.Unit) bool { return u.Part != "" })
	args := s.arguments(c)
	if !ok {
		return &resolved.Const{Pos: c.Pos}
	}
	return native(resultType(c.f, args), c.Pos, unit.Part, args[1])
}

// dateAdd resolves dateAdd(time, interval) and dateAdd('unit', n, time).
func (s *scope) dateAdd(c *calling) resolved.Expr {
	args := s.arguments(c)
	if len(args) == 2 {
		return s.r.arithmetic(c.Pos, c.f.ClickHouse(), args[0], args[1])
	}
	unit, ok := s.unit(c, func(u schema.Unit) bool { return u.Interval != "" })
	if !ok {
		return &resolved.Const{Pos: c.Pos}
	}
	interval := native(hogql.Type{Kind: hogql.IntervalKind, Nullable: typeOf(args[1]).MayBeNull()}, args[1].At(), unit.Interval, args[1])
	return s.r.arithmetic(c.Pos, c.f.ClickHouse(), args[2], interval)
}
