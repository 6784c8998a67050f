package result

import (
	"context"
	"encoding/json"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/module/texttable"
)

// Overrides are applied to a query before it runs: contract api.md, sections 1.2 and 4.4. Either may be empty.
type Overrides struct {
	Variables, Filters json.RawMessage
	Saved              bool // the query is that of a saved insight
}

// Check reports mistakes in the overrides that don't depend on the query.
func (o Overrides) Check() error {
	if len(o.Filters) > 0 && !api.IsNull(o.Filters) {
		if _, err := query.ParseOverrides(o.Filters); err != nil {
			return err // a mistake in the request, passed on as it is
		}
	}
	if len(o.Variables) > 0 && !api.IsNull(o.Variables) {
		if _, err := query.ParseVariables(o.Variables); err != nil {
			return err // a mistake in the request, passed on as it is
		}
	}
	return nil
}

// Fit reports why the overrides can't be applied to a query.
func (o Overrides) Fit(node query.Node) error {
	_, err := o.apply(node)
	return err
}

// apply returns the node with the overrides applied.
func (o Overrides) apply(node query.Node) (query.Node, error) {
	q, isHogQL := node.(*query.HogQL)
	if len(o.Variables) > 0 && !api.IsNull(o.Variables) {
		variables, err := query.ParseVariables(o.Variables)
		if err != nil {
			return nil, err // a mistake in the request, passed on as it is
		}
		switch {
		case isHogQL && o.Saved:
			node = q.WithSavedVariables(variables)
		case isHogQL:
			node = q.WithVariables(variables)
		}
	}
	return overrideFilters(node, o.Filters)
}

// PlanNode plans a query of the query route or of a saved insight: the two share their results.
func PlanNode(e *execution.Executor, c *execution.Caller, node query.Node, over Overrides, mode execution.RefreshMode) (*Plan, error) {
	node, err := over.apply(node)
	if err != nil {
		return nil, err
	}
	return plan(e, c, node, mode, nil), nil
}

// PlanHeld is PlanNode for a query that may use the held tables that the caller may read. Such a plan is for this caller alone.
func PlanHeld(e *execution.Executor, c *api.Caller, node query.Node, over Overrides, mode execution.RefreshMode) (*Plan, error) {
	node, err := over.apply(node)
	if err != nil {
		return nil, err
	}
	return plan(e, &c.Caller, node, mode, heldBy(e, c, node)), nil
}

// plan plans a query with its overrides applied; held is nil if it uses no held tables.
func plan(e *execution.Executor, c *execution.Caller, node query.Node, mode execution.RefreshMode, held *execution.Held) *Plan {
	extra := e.Mark(c.Snapshot, c.Project.ID, node)
	if held != nil {
		extra += " " + held.Mark
	}
	p := &Plan{Freshness: e.FreshnessOf(node, mode), View: View{Limit: -1}, Serial: c.Snapshot.QuerySerial(c.Project.ID), Query: &execution.Query{
		Node: node, Text: node.Text(), Rows: compiler.QueryRoute, Held: held,
		Key: cache.KeyParts{
			Project: c.Project.ID, Query: string(node.Canonical()), Variables: VariableMarks(c, node), Zone: c.Project.Timezone,
			Extra: extra,
		}.Key(),
	}}
	p.Until = c.Snapshot.Schema(c.Project.ID).EventsUntil(c.Start)
	p.SetPage()
	return p
}

// Ask runs a query like the query route, with the held tables that the caller may read, for an answer in another form. fresh is the maximum
// age of its result; 0 leaves that to the refresh modes. If there is no error, the answer has an entry.
func Ask(ctx context.Context, e *execution.Executor, c *api.Caller, q query.Node, fresh time.Duration) (execution.Result, error) {
	p, err := PlanHeld(e, c, q, Overrides{}, execution.RefreshBlocking)
	if err != nil {
		return execution.Result{}, err
	}
	if fresh > 0 {
		p.Fresh = fresh
	}
	return e.Refresh(ctx, &c.Caller, p.Query, &p.Freshness, execution.Origin{}, p)
}

// Compute is Ask for a result computed after the call. It returns a cached one only if ClickHouse fails.
func Compute(ctx context.Context, e *execution.Executor, c *api.Caller, q query.Node) (execution.Result, error) {
	p, err := PlanNode(e, &c.Caller, q, Overrides{}, execution.RefreshForceBlocking)
	if err != nil {
		return execution.Result{}, err
	}
	return e.Refresh(ctx, &c.Caller, p.Query, &p.Freshness, execution.Origin{}, p)
}

// VariableMarks returns the part of a cache key that depends on the values of variables, including defaults.
func VariableMarks(c *execution.Caller, node query.Node) string {
	if list, ok := node.(interface {
		Around() (query.Modifiers, query.Node)
	}); ok {
		_, node = list.Around()
	}
	q, ok := node.(*query.HogQL)
	if !ok || len(q.Variables) == 0 {
		return ""
	}
	values := make(map[string]any, len(q.Variables))
	for _, v := range q.Variables {
		switch {
		case c.Snapshot.VariableByCode(c.Project.ID, v.CodeName) == nil: // a result from before the deletion must not hide it
			values["no "+v.CodeName] = nil
		case v.IsNull:
			values[v.CodeName] = nil
		case v.HasValue:
			values[v.CodeName] = v.Value
		default:
			values[v.CodeName] = c.Snapshot.VariableDefaults(c.Project.ID)[v.CodeName]
		}
	}
	return string(jsontext.Append(nil, values)) // map keys are encoded in sorted order
}

// overrideFilters applies a request's filters_override to a query: contract api.md, section 2.4.
func overrideFilters(node query.Node, raw json.RawMessage) (query.Node, error) {
	if len(raw) == 0 || api.IsNull(raw) {
		return node, nil
	}
	overrides, err := query.ParseOverrides(raw)
	if err != nil {
		return nil, err // a mistake in the request, passed on as it is
	}
	over, err := overrides.ApplyTo(node)
	if err == nil && over == nil {
		err = api.Invalid("filters_override", "invalid_input", "filters_override is not supported for %s; put filters into the query.", node.Kind())
	}
	return over, err // a mistake in the request, passed on as it is
}

// MaxQueryID is the longest id that a caller can choose for a query, in characters.
const MaxQueryID = 128

// ValidQueryID reports whether an id is not too long and fits into a path; an empty id means none.
func ValidQueryID(id string) bool {
	return utf8.RuneCountInString(id) <= MaxQueryID && id != "." && id != ".." && !strings.ContainsFunc(id, func(r rune) bool { return r == '/' || unicode.IsControl(r) })
}

// FormatResults returns results as a plain text table, for people and language models.
func FormatResults(p *Plan, got cache.Answer) (string, error) {
	done, _ := got.Entry.Meta.(*execution.Details)
	if done.Insight != nil {
		return texttable.Results(p.Node, done.Insight.Results) // logged as it is
	}
	return texttable.Rows(done.Columns, got.Entry.Result.Rows(), 0) // logged as it is
}
