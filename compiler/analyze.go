package compiler

import (
	"errors"
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/bind"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolve"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// analysis is what the stages after the parser found out about a query.
type analysis struct {
	bound    hogql.Query // with its placeholders filled in
	limited  hogql.Query // bound, with its limit
	cut      bind.Cut
	resolved resolved.Query
	outputs  []resolve.Output
	reads    schema.Reads
	uses     []resolve.PropertyUse // only when asked for
}

// analyze binds and resolves a tree. A stage with mistakes does not end the work: the next one runs on what there is, so that the author sees
// all mistakes at once. With an error, it also returns as much of the analysis as it could make. uses asks for the uses of properties.
func analyze(t tree, env Env, uses bool) (*analysis, error) {
	if t.text == nil {
		return resolveWhole(t.query, env)
	}
	values, err := valuesOf(t.text, env)
	if err != nil {
		return nil, err
	}
	var (
		found    analysis
		mistakes diag.List
		open     []diag.Span // placeholders without a value
	)
	found.bound, err = bind.Placeholders(t.query, values)
	if err != nil {
		if !note(&mistakes, err, nil) {
			return nil, err
		}
		if found.bound, open = withoutPlaceholders(found.bound); found.bound == nil {
			return &found, mistakes.Err()
		}
	}
	found.limited, found.cut, err = bind.Limit(found.bound, bind.Limits{Max: env.MaxRows, Mode: env.Mode})
	if err != nil {
		if !note(&mistakes, err, open) {
			return nil, err
		}
		found.limited = found.bound
	}
	if uses {
		found.resolved, found.outputs, found.uses, err = resolve.Survey(found.limited, env.resolving())
	} else {
		found.resolved, found.outputs, found.reads, err = resolve.Query(found.limited, env.resolving())
	}
	if err != nil && !note(&mistakes, err, open) {
		return nil, err
	}
	return &found, mistakes.Err()
}

// resolveWhole resolves a tree that has no placeholders and sets its own limit.
func resolveWhole(q hogql.Query, env Env) (*analysis, error) {
	found := &analysis{bound: q, limited: q}
	var err error
	found.resolved, found.outputs, found.reads, err = resolve.Query(q, env.resolving())
	return found, unplaced(err)
}

// unplaced removes the spans from mistakes: they point into the program's own text, or into an expression inside the JSON. Mistakes that are then
// equal are merged: a selected expression may also be grouped and ordered by.
func unplaced(err error) error {
	all := Mistakes(err)
	if all == nil {
		return err
	}
	var out diag.Errors
	for _, e := range all {
		bare := *e
		bare.Span = diag.Span{}
		if !slices.ContainsFunc(out, func(o *diag.Error) bool { return *o == bare }) {
			out = append(out, &bare)
		}
	}
	return out
}

// note adds the mistakes in err to list, except those at the given spans. It returns false for any other kind of error.
func note(list *diag.List, err error, without []diag.Span) bool {
	all, ok := errors.AsType[diag.Errors](err)
	if !ok {
		return false
	}
	for _, e := range all {
		if !slices.Contains(without, e.Span) {
			list.Add(e)
		}
	}
	return true
}

// withoutPlaceholders replaces the placeholders left in a query by NULL, which fits nearly everywhere, and returns their spans. If one stands for
// a table or a query, the query makes no sense without it, and the result is nil.
func withoutPlaceholders(q hogql.Query) (hogql.Query, []diag.Span) {
	var open []diag.Span
	whole := true
	r := hogql.Rewriter{
		Expr: func(e hogql.Expr) hogql.Expr {
			p, ok := e.(*hogql.Placeholder)
			if !ok {
				return e
			}
			open = append(open, p.Pos)
			return &hogql.Const{Pos: p.Pos}
		},
		Query: func(q hogql.Query) hogql.Query {
			if _, ok := q.(*hogql.QueryPlaceholder); ok {
				whole = false
			}
			return q
		},
		Table: func(t hogql.Table) hogql.Table {
			if _, ok := t.(*hogql.TablePlaceholder); ok {
				whole = false
			}
			return t
		},
	}
	out := r.RewriteQuery(q)
	if !whole {
		return nil, nil
	}
	return out, open
}
