package resolve

import (
	"iter"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// near notes a mistake in a name, with the nearest valid name.
func (r *resolver) near(name string, among iter.Seq[string], at hogql.Span, format string, args ...any) {
	if r.mistakes.Full() {
		return
	}
	e := diag.New(diag.QueryError, at, format, args...)
	e.Hint = schema.Nearest(name, r.spend.Hints(among))
	r.mistakes.Add(e)
}

// missing notes a name that does not exist below the table before it in a chain.
func (r *resolver) missing(name string, at hogql.Span, among iter.Seq[string]) {
	r.near(name, among, at, "Field not found: %s", name)
}

// unresolved notes an unknown field name.
func (r *resolver) unresolved(name string, at hogql.Span, among iter.Seq[string]) {
	r.near(name, among, at, "Unable to resolve field: %s", name)
}

// nameAt returns the place of a name, or whole for a name that is not in the text.
func nameAt(n hogql.Name, whole hogql.Span) hogql.Span {
	if n.Pos.IsZero() {
		return whole
	}
	return n.Pos
}

// chainAt returns the place of a chain of names.
func chainAt(chain []hogql.Name, whole hogql.Span) hogql.Span {
	if len(chain) == 0 {
		return whole
	}
	return nameAt(chain[0], whole).To(nameAt(chain[len(chain)-1], whole))
}

// functionAt returns the place of the function's name in a call.
func functionAt(c *hogql.Call) hogql.Span {
	if c.NamePos.IsZero() {
		return c.Pos
	}
	return c.NamePos
}
