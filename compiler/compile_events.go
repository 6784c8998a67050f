package compiler

import (
	"cmp"
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/bind"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/events"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolve"
	"github.com/caddy-analytics/caddy-analytics/compiler/sql"
)

// compileEvents builds the tree of a list of events, which then goes the way of any other query. It has a limit of its
// own, and reports it as a query without one does.
func compileEvents(q *query.Events, env Env) (*Compiled, error) {
	env.Database = modified(env.Database, q.Modifiers)
	w := &insight.World{Database: env.Database, Now: env.Now, TestAccounts: env.TestAccounts}
	built, err := events.Build(q, w, cmp.Or(env.MaxRows, bind.MaxRows))
	if err != nil {
		return nil, err
	}
	resolved, _, err := resolve.Query(built.Query, env.Database, env.Now)
	if err != nil {
		return nil, each(unplaced(err))
	}
	text, params, err := sql.Print(resolved, env.Database)
	if err != nil {
		return nil, err
	}
	compiled := &Compiled{
		SQL: text, Params: params, HogQL: hogql.Print(built.Query), Columns: built.Columns,
		Limit: built.Limit, Offset: built.Offset, Probe: true, DefaultLimit: true, Row: built.Row, Volatile: true,
	}
	compiled.Tables, _ = survey(built.Query, nil)
	return compiled, nil
}

// each leaves out mistakes that are there already: what is selected may be grouped and ordered by too.
func each(err error) error {
	all := Mistakes(err)
	if all == nil {
		return err
	}
	var out diag.Errors
	for _, e := range all {
		if !slices.ContainsFunc(out, func(o *diag.Error) bool { return *o == *e }) {
			out = append(out, e)
		}
	}
	return out
}
