package resolve

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// bot resolves a function about a user agent, its first argument. The second, an address, adds nothing.
func (s *scope) bot(c *calling) resolved.Expr {
	args := s.arguments(c)
	agent := s.wholeText(args[0])
	matched := native(intType, c.Pos, c.f.ClickHouse(), agent, &resolved.Const{Value: schema.Bots.Patterns}) // 0 for no match
	if c.f.Bot == schema.BotLikely {
		return native(boolType, c.Pos, "toBool", native(boolType, c.Pos, "greater", matched, literal(int64(0))))
	}
	place := native(intType, c.Pos, "plus", matched, literal(int64(1)))
	return native(stringType, c.Pos, "arrayElement", &resolved.Const{Value: schema.Bots.Meanings[c.f.Bot]}, place)
}

// wholeText converts a value to text, which is empty for NULL.
func (s *scope) wholeText(x resolved.Expr) resolved.Expr {
	if typeOf(x).Kind != hogql.String {
		x = native(hogql.Type{Kind: hogql.String, Nullable: typeOf(x).MayBeNull()}, x.At(), "toString", x)
	}
	if typeOf(x).MayBeNull() {
		x = native(stringType, x.At(), "ifNull", x, literal(""))
	}
	return x
}

// noAddress is an address that is in no range except the one of all addresses.
const noAddress = "::"

// inRange resolves isIPAddressInRange(address, range), which fails in ClickHouse for a text that is not an address.
func (s *scope) inRange(c *calling) resolved.Expr {
	args := s.arguments(c)
	args[0] = s.once(c.Pos, func(first, again []resolved.Expr) resolved.Expr {
		is := &resolved.Logic{Pos: c.Pos, Or: true, Args: []resolved.Expr{
			native(boolType, c.Pos, "isIPv4String", first[0]), native(boolType, c.Pos, "isIPv6String", again[0]),
		}}
		return native(stringType, c.Pos, "if", is, again[0], literal(noAddress))
	}, s.wholeText(args[0]))
	return s.finish(c, args)
}

// exists resolves exists(query).
func (s *scope) exists(c *calling) resolved.Expr {
	q, ok := c.args[0].(*hogql.Subquery)
	if !ok {
		s.r.mistake(c.args[0].At(), "'exists' takes a query, as in exists(SELECT 1 FROM events)")
		return &resolved.Const{Pos: c.Pos}
	}
	rows := &hogql.Select{
		Pos: q.Pos, Columns: []hogql.Expr{&hogql.Call{Pos: c.Pos, NamePos: c.Pos, Name: "count"}},
		From: &hogql.Derived{Pos: q.Pos, Query: q.Query},
	}
	return s.expr(&hogql.Compare{
		Pos: c.Pos, Op: hogql.Greater, Left: &hogql.Subquery{Pos: q.Pos, Query: rows}, Right: &hogql.Const{Pos: c.Pos, Value: int64(0)},
	})
}
