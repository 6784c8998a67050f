package compiler

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
	"github.com/caddy-analytics/caddy-analytics/compiler/cohort"
	"github.com/caddy-analytics/caddy-analytics/compiler/sql"
)

// CompileCohort compiles the definition of a cohort to the SQL of its members: one column, cohort.PersonID, without duplicates and without a
// limit. Members of other cohorts are taken from the versions in env.Database. Mistakes of the author are a *diag.Error or diag.Errors; any
// other error comes from Expired, or is a bug.
func CompileCohort(d *cohort.Definition, env Env) (compiled *Compiled, err error) {
	defer RecoverBug(&err)
	env.spend = budget.New(env.Expired)
	q, err := cohort.Build(d, env.world())
	if err != nil {
		return nil, err
	}
	t := tree{query: q}
	found, err := analyze(t, env, false)
	if err != nil {
		return nil, err
	}
	text, params, err := sql.Print(found.resolved, env.Database, env.spend)
	if err != nil {
		return nil, err
	}
	return found.compiled(t, text, params, env), nil
}
