package compiler

import (
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/actors"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolve"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/compiler/sql"
)

// listedPeople selects the people that a query lists, each once: a row id, and the person's id. Ids without a person are left out.
const listedPeople = `SELECT person_id AS id, person_id FROM (SELECT DISTINCT toUUID({column}) AS person_id FROM {query}) WHERE person_id IN (SELECT id FROM persons)`

// CompileListed compiles a HogQL query or a list of actors to SQL with two columns, id and person_id: the people whose ids are in its column
// person_id, else actor_id, else id, else the people of the events or persons that it reads (contract: cohorts.md, section 1). It has no limit
// except the query's own. Errors are those of Compile.
func CompileListed(q query.Node, env Env) (compiled *Compiled, err error) {
	defer RecoverBug(&err)
	env.spend = budget.New(env.Expired)
	env.Database, env.Mode = modified(env.Database, query.ModifiersOf(q)), Whole
	if list, ok := q.(*actors.Query); ok {
		q = allActors(list)
	}
	t, err := KindOf(q).build(q, env)
	if err != nil {
		return nil, err
	}
	found, err := analyze(t, env, false)
	if err != nil {
		return nil, err
	}
	rows, column := listedColumn(withOwnLimit(q, found.bound), found)
	if column == "" {
		return nil, diag.Field(diag.QueryError, "query", "The query needs a column person_id, actor_id or id.")
	}
	all := tree{query: insight.Template(listedPeople, map[string]any{"column": insight.Field(column), "query": insight.From(rows)})}
	if found, err = analyze(all, env, false); err != nil {
		return nil, err
	}
	text, params, err := sql.Print(found.resolved, env.Database, env.spend)
	if err != nil {
		return nil, err
	}
	return found.compiled(all, text, params, env), nil
}

// allActors returns a list of actors reduced to their ids.
func allActors(list *actors.Query) *actors.Query {
	all := *list
	all.Select, all.OrderBy = []string{"id as person_id"}, []string{"id"}
	return &all
}

// withOwnLimit sets the limit of a list of actors to the one in the query, or to none. The tree's limit is one row higher, which is how the
// server learns whether there are more rows.
func withOwnLimit(q query.Node, rows hogql.Query) hogql.Query {
	list, isList := q.(*actors.Query)
	s, isSelect := rows.(*hogql.Select)
	if !isList || !isSelect || s.Limit == nil {
		return rows
	}
	own := *s
	switch {
	case list.Limit > 0:
		limit := *s.Limit
		limit.N = insight.Const(int64(list.Limit))
		own.Limit = &limit
	case list.Offset <= 0:
		own.Limit = nil
	}
	return &own
}

// listedColumn finds the column of ids in the rows of a query. It returns the query, with that column added if necessary, and the column's name,
// empty if there is none.
func listedColumn(rows hogql.Query, found *analysis) (hogql.Query, string) {
	for _, name := range []string{"person_id", "actor_id", "id"} {
		if slices.ContainsFunc(found.outputs, func(o resolve.Output) bool { return o.Name == name }) {
			return rows, name
		}
	}
	s, ok := rows.(*hogql.Select)
	if !ok || s.GroupBy != nil || s.Distinct {
		return nil, ""
	}
	table, ok := s.From.(*hogql.TableName)
	if !ok {
		return nil, ""
	}
	ids, ok := map[string]string{"events": "person_id", "persons": "id"}[schema.Root(chainText(table.Chain))]
	if !ok {
		return nil, ""
	}
	more := *s
	more.Columns = append(slices.Clip(s.Columns), insight.As(insight.Field(ids), "person_id"))
	return &more, "person_id"
}
