package execution

import (
	"context"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// CompileListed compiles the query of a static cohort, in the project's turn, into one that adds the people it lists to the cohort. Mistakes of the
// query's author are a *diag.Error or diag.Errors.
func (e *Executor) CompileListed(ctx context.Context, snap *registry.Snapshot, c *registry.Cohort, now time.Time) (clickhouse.Fill, error) {
	node, err := compiler.Parse(c.Query)
	if err != nil {
		return clickhouse.Fill{}, err
	}
	db, err := e.Database(ctx, snap.Schema(c.Project))
	if err != nil {
		return clickhouse.Fill{}, err
	}
	env := e.compilerEnv(snap, c.Project, db, now)
	compiled, err := compileWith(ctx, e.CompilesOf(nil, nil, c.Project), env, func(env compiler.Env) (*compiler.Compiled, error) {
		return compiler.CompileListed(node, env)
	})
	if err != nil {
		return clickhouse.Fill{}, err
	}
	return clickhouse.StaticFill(QueryOf(compiled, c.Project, ""), c.ID), nil
}
