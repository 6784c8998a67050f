package execution

import (
	"context"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Fill puts the people that the query of a static cohort lists into it, inside ClickHouse, and returns how many people are in it then. It
// waits for a place of the project's in the background. Mistakes of the query's author are a *diag.Error or diag.Errors.
func (e *Executor) Fill(ctx context.Context, snap *registry.Snapshot, c *registry.Cohort, now time.Time) (count int64, err error) {
	node, err := compiler.Parse(c.Query)
	if err != nil {
		return 0, err
	}
	compiled, err := e.compileListed(ctx, snap, c.Project, node, now)
	if err != nil {
		return 0, err
	}
	place, err := e.Places.Enter(ctx, admission.Request{Project: c.Project, Uncounted: true})
	if err != nil {
		return 0, err
	}
	defer place.Leave()
	q := clickhouse.Query{SQL: compiled.SQL, Params: Params(compiled), Project: c.Project}
	if err := e.Warehouse.Fill(ctx, place, clickhouse.StaticFill(q, c.ID)); err != nil {
		return 0, err
	}
	return e.Warehouse.CountMembers(ctx, place, c.Project, c.ID)
}

// compileListed compiles the query that lists the people of a static cohort when it is the project's turn.
func (e *Executor) compileListed(ctx context.Context, snap *registry.Snapshot, project int64, node query.Node, now time.Time) (compiled *compiler.Compiled, err error) {
	db, err := e.Database(ctx, snap.Schema(project))
	if err != nil {
		return nil, err
	}
	env := e.compilerEnv(snap, project, db, now)
	err = e.CompilesOf(nil, nil, project).do(ctx, func(expired func() error) error {
		env.Expired = expired
		compiled, err = compiler.CompileListed(node, env)
		return err
	})
	return compiled, err
}
