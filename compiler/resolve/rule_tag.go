package resolve

import "github.com/caddy-analytics/caddy-analytics/compiler/resolved"

// tag resolves a function that makes a tag for a user interface: a tuple that says so, holding the tag's name and then each
// attribute by its name.
func (s *scope) tag(c *calling) resolved.Expr {
	items := []resolved.Expr{literal("__hx_tag"), literal(c.f.Extra[0])}
	for i, arg := range s.arguments(c) {
		items = append(items, literal(c.f.Extra[i+1]), arg)
	}
	return &resolved.Tuple{Pos: c.Pos, Items: items}
}
