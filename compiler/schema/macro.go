package schema

import (
	"fmt"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

// Expand returns the expression that replaces a call of a macro: its text with the arguments in place of {a}, {b}, {c} and so on. Their number must
// be allowed by CheckArity. Each is used at most once and never inside a lambda, so that a call costs no more than it appears to, and a name in an
// argument never means a parameter of the macro. The new nodes have the place at, so that mistakes point at the call. each may change the calls of the
// macro itself, those in the arguments not among them; nil changes nothing.
func (f *Function) Expand(at hogql.Span, args []hogql.Expr, each func(*hogql.Call)) hogql.Expr {
	body, err := hogql.ParseExpr(f.Macro)
	if err != nil {
		panic(fmt.Sprintf("BUG: macro of %s: %v", f.Name, err))
	}
	return hogql.RewriteExpr(body, func(e hogql.Expr) hogql.Expr {
		if hole, ok := e.(*hogql.Placeholder); ok {
			return args[hole.X.(*hogql.Field).Chain[0].Text[0]-'a']
		}
		out := moved(e, at)
		if c, ok := out.(*hogql.Call); ok && each != nil {
			each(c)
		}
		return out
	})
}

// moved returns a copy of a node with another place. It knows the nodes that occur in macros.
func moved(e hogql.Expr, at hogql.Span) hogql.Expr {
	if n, ok := e.(*hogql.Call); ok {
		c := *n
		c.Pos, c.NamePos = at, at
		return &c
	}
	if n, ok := e.(*hogql.Const); ok {
		return &hogql.Const{Pos: at, Value: n.Value}
	}
	if n, ok := e.(*hogql.Binary); ok {
		return &hogql.Binary{Pos: at, Op: n.Op, Left: n.Left, Right: n.Right}
	}
	if n, ok := e.(*hogql.Lambda); ok {
		return &hogql.Lambda{Pos: at, Params: n.Params, Body: n.Body}
	}
	if n, ok := e.(*hogql.Field); ok {
		chain := make([]hogql.Name, len(n.Chain))
		for i, name := range n.Chain {
			name.Pos = at
			chain[i] = name
		}
		return &hogql.Field{Pos: at, Chain: chain}
	}
	panic(fmt.Sprintf("BUG: a macro holds a %T", e))
}
