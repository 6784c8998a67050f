package funnels

import (
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// stage is a query with the names of its columns. Each stage reads the one before, so that an expression can be named once
// and used often.
type stage struct {
	query hogql.Query
	names []string
}

// column is an expression with its name.
type column struct {
	name string
	x    hogql.Expr
}

// then adds columns, which may use those that are there and one another; one of the same name takes the place of the old
// one, for the other columns too.
func (s stage) then(columns ...column) stage {
	q := &hogql.Select{From: insight.From(s.query)}
	out := stage{query: q}
	for _, name := range s.names {
		if !slices.ContainsFunc(columns, func(c column) bool { return c.name == name }) {
			q.Columns, out.names = append(q.Columns, insight.Field(name)), append(out.names, name)
		}
	}
	for _, c := range columns {
		q.Columns, out.names = append(q.Columns, insight.As(c.x, c.name)), append(out.names, c.name)
	}
	return out
}

// where keeps the rows that satisfy a condition.
func (s stage) where(condition hogql.Expr) stage {
	q := &hogql.Select{From: insight.From(s.query), Where: condition}
	for _, name := range s.names {
		q.Columns = append(q.Columns, insight.Field(name))
	}
	return stage{query: q, names: s.names}
}

// without drops columns.
func (s stage) without(names ...string) stage {
	q := &hogql.Select{From: insight.From(s.query)}
	out := stage{query: q}
	for _, name := range s.names {
		if !slices.Contains(names, name) {
			q.Columns, out.names = append(q.Columns, insight.Field(name)), append(out.names, name)
		}
	}
	return out
}

// each makes a row of every element of an array, under another name.
func (s stage) each(array hogql.Expr, name string) stage {
	q := &hogql.Select{
		From:      insight.From(s.query),
		ArrayJoin: &hogql.ArrayJoin{Arrays: []*hogql.Alias{{X: array, Name: hogql.Name{Text: name}}}},
	}
	for _, n := range append(slices.Clone(s.names), name) {
		q.Columns = append(q.Columns, insight.Field(n))
	}
	return stage{query: q, names: append(slices.Clone(s.names), name)}
}

// has tells whether there is a column of that name.
func (s stage) has(name string) bool { return slices.Contains(s.names, name) }

// values are the placeholders of a template.
type values = map[string]any

// expr is an expression with placeholders.
func expr(text string, v values) hogql.Expr { return insight.TemplateExpr(text, v) }
