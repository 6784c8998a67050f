package execution

import (
	"context"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/cohort"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Cohorts makes sure that queries find the members of cohorts.
type Cohorts interface {
	// Used is called before a query reads the members of cohorts. It waits for those that were never computed and then returns the registry's new
	// snapshot; nil if it did not have to wait. An error that is the query author's fault is a *diag.Error.
	Used(ctx context.Context, project int64, cohorts []int64) (*registry.Snapshot, error)
}

// CompileCohort compiles the query for the members of a cohort in the project's turn. Mistakes of the cohort's author are a *diag.Error or
// diag.Errors.
func (e *Executor) CompileCohort(ctx context.Context, snap *registry.Snapshot, project int64, d *cohort.Definition, now time.Time) (*compiler.Compiled, error) {
	db, err := e.Database(ctx, snap.Schema(project))
	if err != nil {
		return nil, err
	}
	env := e.compilerEnv(snap, project, db, now)
	return compileWith(ctx, e.CompilesOf(nil, nil, project), env, func(env compiler.Env) (*compiler.Compiled, error) { return compiler.CompileCohort(d, env) })
}
