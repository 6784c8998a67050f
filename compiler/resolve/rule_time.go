package resolve

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
)

// toDateTimeCall resolves toDateTime(x[, zone]).
func (s *scope) toDateTimeCall(c *calling) resolved.Expr {
	zone := resolved.Expr(literal(s.r.zone))
	x := s.expr(c.args[0])
	if len(c.args) > 1 {
		zone = s.zoneName(c.f, s.expr(c.args[1]))
	}
	return s.toDateTime(c.Pos, x, zone)
}

// toDateTime converts a value to a time (contract: hogql.md, section 11). An invalid constant text is a mistake; an invalid value in the data gives
// NULL.
func (s *scope) toDateTime(at hogql.Span, x, zone resolved.Expr) resolved.Expr {
	typ := typeOf(x)
	result := s.r.inZone(hogql.Type{Kind: hogql.DateTime, Nullable: typ.MayBeNull()}, zone)
	if value, ok := text(x); ok {
		switch {
		case plainTime.MatchString(value):
			return native(result, at, "toDateTime", x, zone)
		case fineTime.MatchString(value):
			return native(result, at, "toDateTime64", x, literal(int64(6)), zone)
		}
		return native(result, at, "parseDateTime64BestEffort", x, literal(int64(6)), zone)
	}
	switch {
	case typ.Kind == hogql.String || typ.Kind == hogql.JSON:
		return native(nullable(result), at, "parseDateTime64BestEffortOrNull", x, literal(int64(6)), zone)
	case typ.Kind == hogql.Unknown && !typ.Time: // the text of a time in the project's zone converts back to it
		x = native(nullable(stringType), at, "toString", x)
		return native(nullable(result), at, "parseDateTime64BestEffortOrNull", x, literal(int64(6)), zone)
	default:
		return native(result, at, "toDateTime", bare(x), zone)
	}
}

// toDate resolves toDate(x): the day of a time; NULL for a text without one.
func (s *scope) toDate(c *calling) resolved.Expr {
	x := s.expr(c.args[0])
	typ := typeOf(x)
	result := hogql.Type{Kind: hogql.Date, Nullable: typ.MayBeNull()}
	if value, ok := text(x); ok && plainDate.MatchString(value) {
		return native(result, c.Pos, "toDate", x)
	}
	switch typ.Kind {
	case hogql.String, hogql.JSON:
		return native(nullable(result), c.Pos, "toDateOrNull", x)
	case hogql.Unknown:
		return native(nullable(result), c.Pos, "toDateOrNull", native(nullable(stringType), c.Pos, "toString", x))
	default:
		return native(result, c.Pos, "toDate", x)
	}
}

// now resolves now([zone]): the time of the query, in microseconds.
func (s *scope) now(c *calling) resolved.Expr {
	zone := resolved.Expr(literal(s.r.zone))
	if len(c.args) > 0 {
		zone = s.zoneName(c.f, s.expr(c.args[0]))
	}
	return native(s.r.inZone(timeType, zone), c.Pos, c.f.ClickHouse(), literal(int64(6)), zone)
}

// The modes of ClickHouse's week functions for weeks that start on Sunday and on Monday.
const (
	sundayMode = 0
	mondayMode = 3
)

// startOfWeek resolves toStartOfWeek(x[, mode]), by default with the project's week.
func (s *scope) startOfWeek(c *calling) resolved.Expr {
	args := s.arguments(c)
	if len(args) == 1 {
		mode := int64(sundayMode)
		if s.r.db.WeekStart == 1 {
			mode = mondayMode
		}
		args = append(args, literal(mode))
	}
	return s.finish(c, args)
}

// tumble resolves the functions of time windows. Their first argument is a plain time, in whose zone the windows begin, or, if it is the only one, a
// window. The type of a window's bounds is known only where the window is written.
func (s *scope) tumble(c *calling) resolved.Expr {
	args := s.arguments(c)
	if len(args) == 1 {
		out := s.finish(c, args)
		bound, ok := out.(*resolved.Native)
		if !ok {
			return out
		}
		window, ok := args[0].(*resolved.Native)
		if !ok || window.Name != "tumble" && window.Name != "hop" {
			bound.Type = hogql.Type{Nullable: bound.Type.Nullable, Time: true}
			return bound
		}
		bound.Type.Zone = typeOf(window.Args[0]).Zone
		return ofWindow(bound, window.Args[1])
	}
	typ := typeOf(args[0])
	zone := literal(s.r.zoneOf(typ))
	args[0] = native(s.r.inZone(hogql.Type{Kind: hogql.DateTime, Nullable: typ.MayBeNull()}, zone), args[0].At(), "toDateTime", bare(args[0]), zone)
	return ofWindow(s.finish(c, args), args[1])
}

// ofWindow makes the bound of a window of weeks or longer a date.
func ofWindow(bound, interval resolved.Expr) resolved.Expr {
	if unit, ok := unitOfInterval(interval); ok && unit.Long && typeOf(bound).Kind == hogql.DateTime {
		return ofKind(bound, hogql.Date)
	}
	return bound
}

// dateTime64 resolves toDateTime64(x[, scale[, zone]]).
func (s *scope) dateTime64(c *calling) resolved.Expr {
	args := s.arguments(c)
	if len(args) == 1 {
		args = append(args, literal(int64(6)))
	}
	return s.finish(c, args)
}

// parseTime resolves f(x[, zone]), which is f(x, scale, zone) in ClickHouse.
func (s *scope) parseTime(c *calling) resolved.Expr {
	args := s.arguments(c)
	zone := resolved.Expr(literal(s.r.zone))
	if len(args) > 1 {
		zone = s.zoneName(c.f, args[1])
	}
	return native(nullable(s.r.inZone(timeType, zone)), c.Pos, c.f.ClickHouse(), args[0], literal(int64(6)), zone)
}
