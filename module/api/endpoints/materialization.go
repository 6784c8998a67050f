package endpoints

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/materialize"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// materialization is the state of a version's table: contract clients.md section 6. PostHog's newest answers have no Enabled and Ready.
type materialization struct {
	Name           string  `json:"name,omitempty"` // of the endpoint; not in records
	Enabled        bool    `json:"enabled"`
	Ready          bool    `json:"ready"` // runs can read it now
	CanMaterialize bool    `json:"can_materialize"`
	Hibernated     bool    `json:"hibernated"` // never: tables are filled whether they are read or not
	Reason         *string `json:"reason"`     // why the version can't be materialized
	*tableState
}

// tableState holds the additional fields of a materialized version.
type tableState struct {
	Status             string     `json:"status"`
	LastMaterializedAt *time.Time `json:"last_materialized_at"`
	Error              string     `json:"error"`
	SavedQueryID       string     `json:"saved_query_id"`
}

// The states of a table.
const (
	tableCompleted = "Completed"
	tableRunning   = "Running"
	tableFailed    = "Failed"
	tableModified  = "Modified"
)

// materializationOf returns the state of a version's table.
func (s *Endpoints) materializationOf(
	ctx context.Context, c *api.Caller, e *registry.Endpoint, v *registry.Version, impossible func(context.Context) (string, error),
) materialization {
	plan, err := s.planOf(ctx, c, e, v)
	if t := v.Table; t != nil {
		fits := err != nil || t.Of == plan.Mark
		return materialization{
			Enabled: true, CanMaterialize: true, Ready: err == nil && t.Fill != 0 && fits && c.Start.Before(readUntil(v)),
			tableState: &tableState{Status: statusOf(t, fits), LastMaterializedAt: api.OrNil(t.AsOf), Error: t.LastError, SavedQueryID: t.ID},
		}
	}
	reason, err := whyNot(ctx, err, impossible)
	if mistakes := compiler.Mistakes(err); len(mistakes) > 0 {
		reason = mistakes[0].Detail
	} else if err != nil {
		reason = errNotNow.Error()
	}
	return materialization{CanMaterialize: reason == "", Reason: api.OrNull(reason)}
}

// statusOf returns the state of a table as a word. fits reports whether the query that filled it is still current.
func statusOf(t *registry.Table, fits bool) string {
	switch {
	case t.Running:
		return tableRunning
	case t.LastError != "":
		return tableFailed
	case t.Fill == 0:
		return tableRunning // waiting for its turn
	case t.Pending != 0, !fits:
		return tableModified
	}
	return tableCompleted
}

// planOf returns the plan of the table that a version has or would have.
func (s *Endpoints) planOf(ctx context.Context, c *api.Caller, e *registry.Endpoint, v *registry.Version) (*materialize.Plan, error) {
	node, err := api.StoredQuery(e, v)
	if err != nil {
		return nil, err
	}
	return shownTable(ctx, s.Executor, c, e, v, node)
}

// whyNot returns the reason why a version can't be materialized: from the error of planning it, else from impossible; empty if it can be. It returns any
// other error.
func whyNot(ctx context.Context, planned error, impossible func(context.Context) (string, error)) (reason string, err error) {
	if refused, ok := errors.AsType[*materialize.Refusal](planned); ok {
		return refused.Reason, nil
	}
	if planned != nil {
		return "", planned
	}
	return impossible(ctx)
}

// lastTrial returns a function that returns the last known reason why a project can't have tables, without trying again.
func (s *Endpoints) lastTrial(project int64) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return s.Executor.Shards.Of(project).LastTrial(), nil }
}

// plan plans the table of a version of the caller's project, which may not exist yet.
func (s *Endpoints) plan(ctx context.Context, c *api.Caller, of execution.Subject) (*materialize.Plan, error) {
	of.Project = c.Project.ID
	return s.Executor.PlanTable(ctx, c.Snapshot, s.Executor.CompilesOf(&c.Caller), of, c.Start)
}

// refusal returns the error for a write that requires an impossible table.
func refusal(reason string) *api.Error {
	return api.Invalid("", "invalid_input", "Cannot materialize endpoint. Reason: %s", reason)
}

// getMaterialization answers GET endpoints/:name/materialization_status/.
func (s *Endpoints) getMaterialization(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	e, err := find(c, in.At.Name)
	if err != nil {
		return nil, err
	}
	v, _, err := askedVersion(in, e)
	if err != nil {
		return nil, err
	}
	state := s.materializationOf(ctx, c, e, v, s.Executor.Shards.Of(c.Project.ID).CanMaterialize)
	state.Name = e.Name
	return api.JSON(http.StatusOK, state), nil
}

// materializationPreview describes how a version would be materialized. All of it is empty if it can't be.
type materializationPreview struct {
	CanMaterialize        bool                    `json:"can_materialize"`
	Reason                *string                 `json:"reason"`
	TransformedQuery      *string                 `json:"transformed_query"`
	ExecutionQuery        *string                 `json:"execution_query"`
	DisplayExecutionQuery *string                 `json:"display_execution_query"`
	RangePairs            []materialize.RangePair `json:"range_pairs"`
	Aggregates            []materialize.Aggregate `json:"aggregates"`
}

// previewMaterialization answers POST endpoints/:name/materialization_preview/.
func (s *Endpoints) previewMaterialization(ctx context.Context, c *api.Caller, in *api.Input) (*api.Response, error) {
	e, err := find(c, in.At.Name)
	if err != nil {
		return nil, err
	}
	fields, err := in.ReadFields("version", "bucket_overrides")
	if err != nil {
		return nil, err
	}
	var number int
	asked, err := api.Field(fields, "version", &number)
	if err != nil {
		return nil, err
	}
	buckets, err := bucketsField(fields)
	if err != nil {
		return nil, err
	}
	v, err := versionOf(e, number, asked)
	if err != nil {
		return nil, err
	}
	if buckets == nil && v.Table != nil {
		buckets = v.Table.Buckets
	}
	node, err := api.StoredQuery(e, v)
	if err != nil {
		return nil, err
	}
	plan, err := s.plan(ctx, c, execution.Subject{Endpoint: e.Name, Version: v.Number, Node: node, Buckets: buckets, Optional: v.OptionalBreakdowns})
	reason, err := whyNot(ctx, err, s.Executor.Shards.Of(c.Project.ID).CanMaterialize)
	switch {
	case err != nil:
		return nil, err
	case reason != "":
		return api.JSON(http.StatusOK, materializationPreview{Reason: &reason, RangePairs: []materialize.RangePair{}, Aggregates: []materialize.Aggregate{}}), nil
	}
	return api.JSON(http.StatusOK, materializationPreview{
		CanMaterialize: true, TransformedQuery: api.OrNull(plan.Transformed), ExecutionQuery: api.OrNull(plan.Execution),
		DisplayExecutionQuery: api.OrNull(plan.Display), RangePairs: api.OrEmpty(plan.RangePairs), Aggregates: api.OrEmpty(plan.Aggregates),
	}), nil
}

// materializationConditions are texts for the authors of queries, and for language models that help them.
type materializationConditions struct {
	ConditionsSource string `json:"conditions_source"`
	RewriteContract  string `json:"rewrite_contract"`
}

// getConditions answers GET endpoints/materialization_conditions/.
func getConditions(context.Context, *api.Caller, *api.Input) (*api.Response, error) {
	kinds := compiler.KindNames(func(k *compiler.Kind) bool { return k.Materialized })
	slices.Sort(kinds)
	return api.JSON(http.StatusOK, materializationConditions{
		ConditionsSource: strings.ReplaceAll(conditionsText, "{kinds}", strings.Join(kinds, ", ")), RewriteContract: rewriteText,
	}), nil
}

// refuseSuggestion answers POST endpoints/:name/materialization_suggestion/, for which PostHog uses a language model.
func refuseSuggestion(context.Context, *api.Caller, *api.Input) (*api.Response, error) {
	return nil, api.NotFound("Not found.")
}

const conditionsText = `A version of an endpoint can be materialized if all of this holds:
- Its query is of one of these kinds: {kinds}.
- Each variable of a HogQLQuery is compared with a column in WHERE, by =, >=, >, <, <=, LIKE, ILIKE, NOT LIKE or NOT ILIKE, in conditions that AND joins.
- No variable is in SELECT, HAVING, GROUP BY, ORDER BY or LIMIT.
- No variable is in more than one common table expression, or both in one and in the outermost query.
- The outermost query has no JOIN if a common table expression has a variable.
- If a variable is compared by >=, >, < or <=, each aggregate is count, sum, min or max, or one of these with If.
The outermost query of one with variables is no UNION, INTERSECT or EXCEPT. The breakdowns of TrendsQuery and RetentionQuery are variables.`

const rewriteText = `Change the query so that it can be materialized, and nothing else about it:
- Keep the columns, their names and their order, and keep each {variables.name} under its name.
- Keep the rows that each set of values gives. A bound of a range may be cut to its bucket, a day by default.
- Move a condition on a variable from HAVING, or from a function in SELECT, to WHERE.
- Group by the column that a variable is compared with if the query aggregates.`
