package queries

import (
	"bytes"
	"context"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/peers"
)

// ForPeer answers another server that asks for the result of a query or of a saved insight. It checks here whether the caller may have it.
func (q *Queries) ForPeer(ctx context.Context, c *api.Caller, asked *execution.PeerRequest) peers.Answer {
	r := &asked.Recipe
	if !mayAsk(c, r) {
		return peers.Declined("the query is not allowed")
	}
	node, err := compiler.Parse(r.Query)
	if err != nil || describes(node) || len(compiler.HeldTables(node)) > 0 {
		return peers.Declined("the query can't be read")
	}
	p, err := result.PlanNode(q.Executor, &c.Caller, node, result.Overrides{Variables: r.Variables, Filters: r.Filters, Saved: r.Insight != 0}, execution.RefreshBlocking)
	if err != nil {
		return peers.Declined("the query can't be planned")
	}
	p.Label = asked.Label
	return q.Executor.ForPeer(ctx, &c.Caller, p.Query, &p.Freshness, asked)
}

// mayAsk reports whether a caller may run a query: it has the scope of queries, or the query is that of an insight that its key may read.
func mayAsk(c *api.Caller, r *execution.Recipe) bool {
	switch {
	case c.Key.Bound() || len(r.Query) == 0:
		return false
	case c.Key.Allows(result.QueryScope):
		return true
	case r.Insight == 0 || len(r.Variables) > 0 || len(r.Filters) > 0:
		return false
	}
	i := c.Snapshot.Insight(c.Project.ID, r.Insight)
	return i != nil && !i.NeedsQueryScope && c.Key.Allows("insight:read") && bytes.Equal(i.Query, r.Query)
}
