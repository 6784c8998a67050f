package resolve

import (
	"fmt"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
)

// tag resolves a function that makes a tag for a user interface: a tuple marked as such, with the tag's name and then each attribute's name and
// value.
func (s *scope) tag(c *calling) resolved.Expr {
	items := []resolved.Expr{literal("__hx_tag"), literal(c.f.Extra[0])}
	args := s.arguments(c)
	if len(args) < c.f.MaxArgs && c.f.Missing != "" {
		args = append(args, s.missing(c))
	}
	for i, arg := range args {
		items = append(items, literal(c.f.Extra[i+1]), arg)
	}
	return &resolved.Tuple{Pos: c.Pos, Items: items}
}

// missing returns the default of a call's last argument: a field, or NULL if there is no such field.
func (s *scope) missing(c *calling) resolved.Expr {
	e, err := hogql.ParseExpr(c.f.Missing)
	if err != nil {
		panic(fmt.Sprintf("BUG: the last argument of %s: %v", c.f.Name, err))
	}
	field := &hogql.Field{Pos: c.Pos, Chain: e.(*hogql.Field).Chain}
	for i := range field.Chain {
		field.Chain[i].Pos = c.Pos
	}
	if found, ok := s.lookup(field, s.frame); ok {
		return found
	}
	return literal(nil)
}
