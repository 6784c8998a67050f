package compiler

import (
	"cmp"
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/bind"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/actors"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/events"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolve"
	"github.com/caddy-analytics/caddy-analytics/compiler/sql"
)

// compileEvents builds the tree of a list of events, which then goes the way of any other query. It has a limit of its
// own, and reports it as a query without one does.
func compileEvents(q *query.Events, env Env) (*Compiled, error) {
	modifiers := q.Modifiers
	if q.Source != nil {
		modifiers = over(modifiers, modifiersOf(q.Source))
	}
	env.Database = modified(env.Database, modifiers)
	w := env.world()
	var people *insight.People
	if q.Source != nil {
		var err error
		if people, err = actors.People(q.Source, w); err != nil {
			return nil, err
		}
	}
	built, err := events.Build(q, people, w, cmp.Or(env.MaxRows, bind.MaxRows))
	if err != nil {
		return nil, err
	}
	return compileListing(built, env)
}

// compileListing makes SQL of the tree of a list of rows.
func compileListing(built *insight.Listing, env Env) (*Compiled, error) {
	resolved, _, err := resolve.Query(built.Query, env.Database, env.Now, env.spend)
	if err != nil {
		return nil, each(unplaced(err))
	}
	text, params, err := sql.Print(resolved, env.Database, env.spend)
	if err != nil {
		return nil, err
	}
	return &Compiled{
		SQL: text, Params: params, HogQL: hogql.PrintWithin(built.Query, env.spend), Columns: built.Columns, Limit: built.Limit, Offset: built.Offset,
		Probe: true, DefaultLimit: true, Row: built.Row, Types: built.Types, Missing: built.Missing,
	}, nil
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
