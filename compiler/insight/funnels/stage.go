package funnels

import (
	"maps"
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// stage is a query with the names of its columns. New columns refer to the existing ones by name, so that an expression is written once and
// used often.
type stage struct {
	query hogql.Query
	names []string
	// open is the query while it can take more columns. written has the size of each of its columns, including dropped ones, with the names
	// in them written out.
	open    *hogql.Select
	written map[string]int
}

// maxColumnNodes is the maximum number of nodes of a column when it is written out, which is how the engine plans it. Up to this size, that is
// less work than to plan one more query around the existing one.
const maxColumnNodes = 150

// column is an expression with its name.
type column struct {
	name string
	x    hogql.Expr
}

// then adds columns, which may use the existing ones and the new ones before them. A column replaces an existing one of the same name, for
// the other columns too.
func (s stage) then(columns ...column) stage {
	if !s.takes(columns) {
		s = s.around(func(name string) bool {
			return !slices.ContainsFunc(columns, func(c column) bool { return c.name == name })
		})
	}
	q := *s.open
	q.Columns = slices.Clone(q.Columns)
	out := stage{query: &q, names: slices.Clone(s.names), open: &q, written: s.sizes(columns)}
	for _, c := range columns {
		q.Columns, out.names = append(q.Columns, insight.As(c.x, c.name)), append(out.names, c.name)
		if windowed(c.x) {
			out.open = nil // a condition would change the rows that it is computed over
		}
	}
	return out
}

// where keeps the rows that satisfy a condition.
func (s stage) where(condition hogql.Expr) stage {
	if s.open == nil || s.size(condition) > maxColumnNodes {
		s = s.around(func(string) bool { return true })
	}
	q := *s.open
	q.Where = insight.And(q.Where, condition)
	s.query, s.open = &q, &q
	return s
}

// without drops columns.
func (s stage) without(names ...string) stage {
	s.names = slices.DeleteFunc(slices.Clone(s.names), func(name string) bool { return slices.Contains(names, name) })
	return s
}

// each turns every element of an array into a row, in a new column.
func (s stage) each(array hogql.Expr, name string) stage {
	s = s.around(func(string) bool { return true })
	s.open.ArrayJoin = &hogql.ArrayJoin{Arrays: []*hogql.Alias{{X: array, Name: hogql.Name{Text: name}}}}
	s.open.Columns, s.names = append(s.open.Columns, insight.Field(name)), append(s.names, name)
	s.written[name] = 1
	return s
}

// has reports whether the stage has a column of that name.
func (s stage) has(name string) bool { return slices.Contains(s.names, name) }

// around builds a query around the existing one, with the columns that keep selects.
func (s stage) around(keep func(name string) bool) stage {
	q := &hogql.Select{From: insight.From(s.query)}
	out := stage{query: q, open: q, written: map[string]int{}}
	for _, name := range s.names {
		if keep(name) {
			q.Columns, out.names, out.written[name] = append(q.Columns, insight.Field(name)), append(out.names, name), 1
		}
	}
	return out
}

// takes reports whether the open query can take these columns.
func (s stage) takes(columns []column) bool {
	if s.open == nil || slices.ContainsFunc(columns, func(c column) bool { return s.written[c.name] > 0 }) {
		return false
	}
	sizes := s.sizes(columns)
	return !slices.ContainsFunc(columns, func(c column) bool { return sizes[c.name] > maxColumnNodes })
}

// sizes returns written with more columns.
func (s stage) sizes(columns []column) map[string]int {
	s.written = maps.Clone(s.written)
	for _, c := range columns {
		s.written[c.name] = s.size(c.x)
	}
	return s.written
}

// size returns the number of nodes of an expression when the columns in it are written out.
func (s stage) size(x hogql.Expr) int {
	size := 0
	hogql.WalkExpr(x, func(e hogql.Expr) bool {
		size++
		if f, ok := e.(*hogql.Field); ok {
			size += max(s.written[f.Chain[0].Text]-1, 0)
		}
		return true
	})
	return size
}

// windowed reports whether an expression is computed over several rows.
func windowed(x hogql.Expr) bool {
	found := false
	hogql.WalkExpr(x, func(e hogql.Expr) bool {
		call, ok := e.(*hogql.Call)
		found = found || ok && call.Over != nil
		return true
	})
	return found
}

// values are the placeholders of a template.
type values = map[string]any

// expr parses an expression with placeholders.
func expr(text string, v values) hogql.Expr { return insight.TemplateExpr(text, v) }
