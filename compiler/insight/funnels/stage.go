package funnels

import (
	"maps"
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// stage is a query with the names of its columns. What is added reads the columns that are there by their names, so that
// an expression can be named once and used often.
type stage struct {
	query hogql.Query
	names []string
	// open is the query while it takes more columns. written are its columns, those that were dropped included, and how
	// large each is when the names in it are written out.
	open    *hogql.Select
	written map[string]int
}

// mostWritten is how many nodes a column may have when it is written out, which is how the engine plans it. Up to this,
// that is less work than to plan one more query around the one that is there.
const mostWritten = 150

// column is an expression with its name.
type column struct {
	name string
	x    hogql.Expr
}

// then adds columns, which may use those that are there and those before them; one of the same name takes the place of the
// old one, for the other columns too.
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
			out.open = nil // a condition would change what it is computed over
		}
	}
	return out
}

// where keeps the rows that satisfy a condition.
func (s stage) where(condition hogql.Expr) stage {
	if s.open == nil || s.size(condition) > mostWritten {
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

// each turns every element of an array into a row, under another name.
func (s stage) each(array hogql.Expr, name string) stage {
	s = s.around(func(string) bool { return true })
	s.open.ArrayJoin = &hogql.ArrayJoin{Arrays: []*hogql.Alias{{X: array, Name: hogql.Name{Text: name}}}}
	s.open.Columns, s.names = append(s.open.Columns, insight.Field(name)), append(s.names, name)
	s.written[name] = 1
	return s
}

// has reports whether there is a column of that name.
func (s stage) has(name string) bool { return slices.Contains(s.names, name) }

// around builds a query around the one that is there, with those of its columns that are to be kept.
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

// takes reports whether the open query takes these columns.
func (s stage) takes(columns []column) bool {
	if s.open == nil || slices.ContainsFunc(columns, func(c column) bool { return s.written[c.name] > 0 }) {
		return false
	}
	sizes := s.sizes(columns)
	return !slices.ContainsFunc(columns, func(c column) bool { return sizes[c.name] > mostWritten })
}

// sizes is written with more columns.
func (s stage) sizes(columns []column) map[string]int {
	s.written = maps.Clone(s.written)
	for _, c := range columns {
		s.written[c.name] = s.size(c.x)
	}
	return s.written
}

// size is how many nodes an expression has when the columns in it are written out.
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

// expr is an expression with placeholders.
func expr(text string, v values) hogql.Expr { return insight.TemplateExpr(text, v) }
