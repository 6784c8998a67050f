package compiler

import (
	"fmt"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/funnels"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/lifecycle"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/paths"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/retention"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/stickiness"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/trends"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolve"
	"github.com/caddy-analytics/caddy-analytics/compiler/sql"
)

// compileInsight builds the tree of an insight, which then goes the way of any other query. It needs no limit: its buckets
// and values are bounded where it is built.
func compileInsight(q query.Insight, env Env) (*Compiled, error) {
	env.Database = modified(env.Database, q.Parts().Modifiers)
	built, err := buildInsight(q, env.world())
	if err != nil {
		return nil, err
	}
	resolved, outputs, err := resolve.Query(built.Query, env.Database, env.Now, env.spend)
	if err != nil {
		return nil, unplaced(err)
	}
	text, params, err := sql.Print(resolved, env.Database, env.spend)
	if err != nil {
		return nil, err
	}
	compiled := &Compiled{SQL: text, Params: params, HogQL: hogql.PrintWithin(built.Query, env.spend), Columns: make([]string, len(outputs)), Shape: built.Shape}
	for i, output := range outputs {
		compiled.Columns[i] = output.Name
	}
	return compiled, nil
}

func buildInsight(q query.Insight, w *insight.World) (*insight.Built, error) {
	switch q := q.(type) {
	case *query.Trends:
		return trends.Build(q, w)
	case *query.Lifecycle:
		return lifecycle.Build(q, w)
	case *query.Stickiness:
		return stickiness.Build(q, w)
	case *query.Funnels:
		return funnels.Build(q, w)
	case *query.Paths:
		return paths.Build(q, w)
	case *query.Retention:
		return retention.Build(q, w)
	default:
		return nil, fmt.Errorf("BUG: no way to build an insight of type %T", q)
	}
}

// unplaced takes the places off mistakes: they are in the program's own text, or in an expression inside the JSON.
func unplaced(err error) error {
	all := Mistakes(err)
	if all == nil {
		return err
	}
	out := make(diag.Errors, len(all))
	for i, e := range all {
		bare := *e
		bare.Span = diag.Span{}
		out[i] = &bare
	}
	return out
}
