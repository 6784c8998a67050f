package compiler

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
	"github.com/caddy-analytics/caddy-analytics/compiler/cohort"
	"github.com/caddy-analytics/caddy-analytics/compiler/sql"
)

// CompileCohort turns what a cohort asks for into the SQL of its members: one column, cohort.PersonID, whose values are all different. It has no
// limit on its rows. Members of other cohorts are those of the versions in env.Database. Mistakes of its author are a *diag.Error or
// diag.Errors; any other error is what Expired returned, or a bug.
func CompileCohort(d *cohort.Definition, env Env) (compiled *Compiled, err error) {
	defer recoverBug(&err)
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
