package resolve

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
)

// interpolate resolves INTERPOLATE. Its names are columns of the select list: an added row has no others.
func (s *scope) interpolate(n *hogql.Interpolate, order []*hogql.Order) *resolved.Interpolate {
	if n == nil {
		return nil
	}
	filled := false
	for _, o := range order {
		filled = filled || o.Fill != nil
	}
	if !filled {
		s.r.mistake(n.Pos, "INTERPOLATE needs a key of ORDER BY with WITH FILL")
		return nil
	}
	apart := &scope{r: s.r, env: s.env, tree: &resolved.Select{}, clause: "INTERPOLATE"}
	apart.frame = &apart.aliases
	for _, c := range s.outputs {
		if apart.aliases.alias(c.name) == nil {
			apart.put(&apart.aliases, &alias{name: c.name, printed: c.printed, typ: c.typ, state: aliasDefined})
		}
	}
	out := &resolved.Interpolate{}
	for _, c := range n.Columns {
		a := apart.aliases.alias(c.Name.Text)
		if a == nil {
			s.r.near(c.Name.Text, s.outputNames, c.Name.Pos, "INTERPOLATE names a column of the select list, which %s is not", c.Name.Text)
			continue
		}
		column := &resolved.InterpolatedColumn{Name: a.printed}
		if c.X != nil {
			column.X = apart.expr(c.X)
		}
		out.Columns = append(out.Columns, column)
	}
	return out
}

// outputNames yields the names of the columns of the select list.
func (s *scope) outputNames(yield func(string) bool) {
	for _, c := range s.outputs {
		if !yield(c.name) {
			return
		}
	}
}
