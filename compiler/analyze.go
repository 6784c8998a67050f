package compiler

import (
	"errors"
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/bind"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolve"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
)

// analysis is what the stages after the parser make of a query.
type analysis struct {
	bound    hogql.Query // with its placeholders filled in
	limited  hogql.Query // and with its limit
	cut      bind.Cut
	resolved resolved.Query
	outputs  []resolve.Output
	needs    resolve.Needs
	uses     []resolve.PropertyUse // only for those who ask
}

// analyze binds and resolves a tree. A stage with mistakes does not end the work: the next one looks at what there is, so
// that the author sees everything at once. Beside mistakes, it returns what it could make. Uses reports whether the uses
// of properties are asked for.
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
		open     []diag.Span // placeholders that stand for nothing
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
		found.resolved, found.outputs, found.needs, err = resolve.WithNeeds(found.limited, env.resolving())
	}
	if err != nil && !note(&mistakes, err, open) {
		return nil, err
	}
	return &found, mistakes.Err()
}

// resolveWhole resolves a tree that has no placeholders, and bounds its rows by itself.
func resolveWhole(q hogql.Query, env Env) (*analysis, error) {
	found := &analysis{bound: q, limited: q}
	var err error
	found.resolved, found.outputs, found.needs, err = resolve.WithNeeds(q, env.resolving())
	return found, unplaced(err)
}

// unplaced removes the places from mistakes: they are in the program's own text, or in an expression inside the JSON. It leaves out those
// that are the same then: what is selected may be grouped and ordered by too.
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

// note adds the mistakes that an error holds, without those at the given places, and returns false for an error of any
// other kind.
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

// withoutPlaceholders puts NULL, which fits nearly everywhere, in place of the placeholders that are left in a query,
// and gives their places. A query in which one stands for a table or a query makes no sense without it: then it is nil.
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
