package weboverview

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/web"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// Query asks for a few numbers about visits (contract: clients-queries.md, section 8).
type Query struct {
	web.Query
	// Revenue asks for an item about revenue, too.
	Revenue bool `json:"revenue,omitempty"`
}

// Kind returns WebOverviewQuery.
func (*Query) Kind() string { return "WebOverviewQuery" }

// Canonical leaves out what only changes how the answer is shown.
func (q *Query) Canonical() []byte { return query.Canonical(q.Kind(), q) }

// Parts points at the shared fields.
func (q *Query) Parts() query.Parts {
	return query.Parts{Common: &q.Common, Interval: &q.Interval, Compare: &q.Compare}
}

// Clone returns a copy.
func (q *Query) Clone() query.Insight {
	c := *q
	return &c
}

// Read reads a WebOverviewQuery.
func Read(r *query.Reader, o *query.Object) query.Node {
	q := &Query{Query: web.Read(r, o), Revenue: o.Flag("includeRevenue")}
	web.ReadOrder(r, o) // there is nothing to order
	o.Close()
	return q
}
