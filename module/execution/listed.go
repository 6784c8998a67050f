package execution

import (
	"context"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// CompileListed compiles the query of a static cohort, when it is the project's turn, into what puts the people that it lists into the
// cohort. Mistakes of the query's author are a *diag.Error or diag.Errors.
func (e *Executor) CompileListed(ctx context.Context, snap *registry.Snapshot, c *registry.Cohort, now time.Time) (clickhouse.Fill, error) {
	node, err := compiler.Parse(c.Query)
	if err != nil {
		return clickhouse.Fill{}, err
	}
	db, err := e.Database(ctx, snap.Schema(c.Project))
	if err != nil {
		return clickhouse.Fill{}, err
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
	if err != nil {
		return clickhouse.Fill{}, err
	}
	return clickhouse.StaticFill(clickhouse.Query{SQL: compiled.SQL, Params: Params(compiled), Project: c.Project}, c.ID), nil
}
