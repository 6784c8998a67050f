package endpoints

import (
	"context"
	"encoding/json"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

const (
	exampleRows = 2
	maxExample  = 16 << 10 // bytes
)

// example returns the body of a run of a version with default variables, cut to its first rows, if the cache holds one: it runs nothing. node is the
// version's query. It is nil if there is none.
func (s *Runs) example(ctx context.Context, c *api.Caller, e *registry.Endpoint, v *registry.Version, node query.Node, wideAsText bool) json.RawMessage {
	if !v.Active {
		return nil
	}
	bound, err := bind(c, node, nil, nil)
	if err != nil {
		return nil // a version that does not run has no example
	}
	stored := s.exampleTable(ctx, c, e, v, node, &bound)
	for _, rows := range []compiler.Mode{compiler.QueryRoute, compiler.Pages} { // of runs without and with a limit
		p := &result.Plan{
			Query: &execution.Query{Endpoint: e, Version: v, Rows: rows, Stored: stored}, Freshness: execution.Freshness{Fresh: freshness(v)},
			View: result.View{Limit: exampleRows, Example: true, WideAsText: wideAsText}, Fixed: c.Key.Fixed,
		}
		want(s.Executor, p.Query, c, bound)
		got, ok := s.Executor.Peek(p.Query, &p.Freshness, c.Start)
		if !ok || isLong(got.Entry) {
			continue
		}
		if example := s.Writer(c.Project, p.Format)(nil, p, got); len(example) <= maxExample {
			return example
		}
	}
	return nil
}

// isLong reports whether the results of an example alone are too long, so that they need not be written.
func isLong(e *cache.Entry) bool {
	if done, ok := e.Meta.(*execution.Details); ok && done.Insight != nil {
		return len(done.Insight.Results) > maxExample
	}
	size := 0
	for i := range e.Result.PageLen(0, exampleRows) {
		size += len(e.Result.Row(i))
	}
	return size > maxExample
}

// exampleTable returns the table that a run without variables reads; nil if there is none.
func (s *Runs) exampleTable(ctx context.Context, c *api.Caller, e *registry.Endpoint, v *registry.Version, node query.Node, bound *binding) *execution.Stored {
	if v.Table == nil || v.Table.Fill == 0 || !c.Start.Before(readUntil(v)) {
		return nil
	}
	plan, err := shownTable(ctx, s.Executor, c, e, v, node)
	if err != nil || !isReadable(v.Table, plan) || !plan.Serves(bound.values) {
		return nil
	}
	stored, err := storedTable(e, v, plan, bound)
	if err != nil {
		return nil
	}
	return stored
}
