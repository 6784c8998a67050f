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
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// materialization is the state of the table of a version: contract clients.md section 6. Enabled and Ready are not in PostHog's newest
// answers.
type materialization struct {
	Name           string  `json:"name,omitempty"` // of the endpoint; not in records
	Enabled        bool    `json:"enabled"`
	Ready          bool    `json:"ready"` // runs can read it now
	CanMaterialize bool    `json:"can_materialize"`
	Reason         *string `json:"reason"` // why there can be no table
	*tableState
}

// tableState is what a version that is materialized has in addition.
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

// materializationOf is the state of the table of a version.
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
	if err != nil {
		reason = errNotNow.Error()
	}
	return materialization{CanMaterialize: reason == "", Reason: api.OrNull(reason)}
}

// statusOf is the state of a table in a word. fits reports whether it was filled by the query that would fill it now.
func statusOf(t *registry.Table, fits bool) string {
	switch {
	case t.Running:
		return tableRunning
	case t.LastError != "":
		return tableFailed
	case t.Fill == 0:
		return tableRunning // it waits for its turn
	case t.Pending != 0, !fits:
		return tableModified
	}
	return tableCompleted
}

// errNotNow says that nothing can be planned now.
var errNotNow = errors.New("ClickHouse has not answered yet.") //nolint:staticcheck // users read it as it is

// planOf is the plan of the table that a version has, or would have.
func (s *Endpoints) planOf(ctx context.Context, c *api.Caller, e *registry.Endpoint, v *registry.Version) (*materialize.Plan, error) {
	if s.Executor.Shards.Of(c.Project.ID).Known() == nil {
		return nil, errNotNow // nobody waits for ClickHouse to read a record
	}
	node, err := api.StoredQuery(e, v)
	if err != nil {
		return nil, err
	}
	return tableOf(ctx, s.Executor, c, e, v, node)
}

// whyNot says why a version can have no table: by the error of planning it, else what impossible finds; empty for no reason. Any other
// error is returned.
func whyNot(ctx context.Context, planned error, impossible func(context.Context) (string, error)) (reason string, err error) {
	if refused, ok := errors.AsType[*materialize.Refusal](planned); ok {
		return refused.Reason, nil
	}
	if planned != nil {
		return "", planned
	}
	return impossible(ctx)
}

// lastTrial is what was last found out about making tables of a project, without trying.
func (s *Endpoints) lastTrial(project int64) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return s.Executor.Shards.Of(project).LastTrial(), nil }
}

// plan plans the table of a version that may not be there yet.
func (s *Endpoints) plan(
	ctx context.Context, c *api.Caller, endpoint string, version int, node query.Node, buckets map[string]string,
) (*materialize.Plan, error) {
	return s.Executor.PlanTable(ctx, c.Snapshot, s.Executor.CompilesOf(c.Key, c.Share, c.Project.ID), execution.Subject{
		Project: c.Project.ID, Endpoint: endpoint, Version: version, Node: node, Buckets: buckets,
	}, c.Start)
}

// refusal is the answer to a write that asks for a table that there can't be.
func refusal(reason string) error {
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

// materializationPreview is how a version would be materialized. Without a table all of it is empty.
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
	plan, err := s.plan(ctx, c, e.Name, v.Number, node, buckets)
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

// materializationConditions are for the authors of queries, and for language models that help them.
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

// refuseSuggestion answers POST endpoints/:name/materialization_suggestion/, which asks a language model.
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
