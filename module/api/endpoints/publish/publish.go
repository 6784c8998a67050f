// Package publish checks queries before they become versions of endpoints, and determines what a new version changes for callers: contract api.md section
// 5.2.
package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Publisher checks queries of a project. All queries of one request share a Publisher.
type Publisher struct {
	exec    *execution.Executor
	snap    *registry.Snapshot // holds the variables' definitions
	project *registry.Project
	// admit enters the place in which ClickHouse is asked.
	admit func(context.Context) (*admission.Place, error)
	// compiles is shared by all compiles of the request: a query is compiled for several values of its variables.
	compiles *execution.Compiles
}

// Check checks a query that a caller publishes, which counts as one of the caller's queries. It returns the quotas that it was charged to or refused by.
func Check(ctx context.Context, exec *execution.Executor, c *api.Caller, raw json.RawMessage) (*Query, execution.Quotas, error) {
	x := exec.NewComputation(&c.Caller, &execution.Query{Key: cache.KeyParts{Project: c.Project.ID}.Key()})
	p := &Publisher{
		exec: exec, snap: c.Snapshot, project: c.Project, compiles: exec.CompilesOf(&c.Caller),
		admit: func(ctx context.Context) (*admission.Place, error) {
			return x.Admit(ctx, admission.Awaited, time.Now())
		},
	}
	checked, err := p.Check(ctx, raw, c.Start)
	return checked, x.ShownQuotas(0, err), err
}

// ForOperator returns a Publisher for what the operator publishes. It is charged to no rate, and gives way to queries of the project that somebody waits
// for.
func ForOperator(exec *execution.Executor, snap *registry.Snapshot, project *registry.Project) *Publisher {
	return &Publisher{
		exec: exec, snap: snap, project: project, compiles: execution.Uncounted(project.ID),
		admit: func(ctx context.Context) (*admission.Place, error) {
			return exec.Places.Enter(ctx, admission.Request{Project: project.ID, Wait: exec.Limits.Wait, Uncounted: true})
		},
	}
}

// Query is a query that an endpoint can have.
type Query struct {
	Node    query.Node
	Raw     json.RawMessage // including its variables' definitions
	Columns []registry.Column
}

// Same reports whether a stored query equals this one, whatever the order of its keys.
func (q *Query) Same(current json.RawMessage) bool {
	equal, err := query.Equal(current, q.Raw)
	return err == nil && equal
}

// Check checks that a query parses, that its variables exist, that its names resolve, and that ClickHouse accepts it. It fills in the variables'
// definitions by their code names. The error may be that of a limit.
func (p *Publisher) Check(ctx context.Context, raw json.RawMessage, now time.Time) (*Query, error) {
	checked, err := p.Read(raw)
	if err != nil {
		return nil, err
	}
	d := describer{Publisher: p}
	defer d.close()
	if checked.Columns, err = d.columns(ctx, checked.Node, now); err != nil {
		return nil, err
	}
	if checked.Columns, err = d.widen(ctx, checked.Node, checked.Columns, now); err != nil {
		return nil, err
	}
	return checked, nil
}

// Read does the part of Check that needs only the registry.
func (p *Publisher) Read(raw json.RawMessage) (*Query, error) {
	node, err := compiler.Parse(raw)
	if err != nil {
		return nil, api.ErrorOf(err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("reading a query that was parsed: %w", err)
	}
	var kind string
	if err := json.Unmarshal(fields["kind"], &kind); err != nil || kind != node.Kind() {
		return nil, api.Invalid("query", "invalid_input", "An endpoint takes the query itself, not a %s around it.", kind)
	}
	hogql, isHogQL := node.(*query.HogQL)
	switch {
	case isHogQL:
		if node, err = p.fillVariables(hogql, fields); err != nil {
			return nil, err
		}
	case !compiler.KindOf(node).Endpoint:
		return nil, api.Invalid("query", "invalid_input", "An endpoint cannot run a query of kind %s. Use an insight or a HogQLQuery.", kind)
	}
	return &Query{Node: node, Raw: jsontext.Append(nil, fields)}, nil
}

// queryMistake sets the request field of a mistake in the query's text.
func queryMistake(err error) error {
	var mistake *diag.Error
	if !errors.As(err, &mistake) {
		return err
	}
	answer := api.ErrorOf(err)
	if mistake.Code == diag.SyntaxError {
		answer.Detail = "Invalid HogQL query: " + answer.Detail
	}
	answer.Attr = "query"
	return answer
}

// Compile compiles a query like a run without variables.
func (p *Publisher) Compile(ctx context.Context, node query.Node, now time.Time) (*compiler.Compiled, error) {
	compiled, err := p.exec.Compile(ctx, p.snap, p.compiles, &execution.Query{Node: node, Text: node.Text(), Rows: compiler.QueryRoute}, now)
	if err != nil {
		return nil, queryMistake(err)
	}
	return compiled, nil
}
