package webstats

import (
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight/web"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// Query asks for visits, broken down by one of their properties (contract: clients-queries.md, section 8).
type Query struct {
	web.Query
	// Breakdown is the API's word for the property, such as Page.
	Breakdown string `json:"breakdown"`
	// Bounces asks for the bounce rate. Scrolls asks for how far pages were scrolled, which only pages have.
	Bounces bool `json:"bounces,omitempty"`
	Scrolls bool `json:"scrolls,omitempty"`
	// Hosts puts the host before the paths of pages.
	Hosts bool `json:"hosts,omitempty"`
	// Order is the order of the rows; the default one if it is zero.
	Order  web.Order `json:"order,omitzero"`
	Limit  int       `json:"limit,omitempty"` // 0 for the default
	Offset int       `json:"offset,omitempty"`
}

// Kind returns WebStatsTableQuery.
func (*Query) Kind() string { return "WebStatsTableQuery" }

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

// Read reads a WebStatsTableQuery.
func Read(r *query.Reader, o *query.Object) query.Node {
	o.Required("breakdownBy")
	q := &Query{Query: web.Read(r, o), Breakdown: o.Choice("breakdownBy", "", breakdownWords()...)}
	q.Bounces, q.Scrolls, q.Hosts = o.Flag("includeBounceRate"), o.Flag("includeScrollDepth"), o.Flag("includeHost")
	q.Order = web.ReadOrder(r, o)
	q.Limit, q.Offset = o.AtLeast("limit", 0), o.AtLeast("offset", 0)
	o.Flag("includeRevenue") // only an overview has it
	if o.Flag("includeAvgTimeOnPage") {
		r.Add(o.Field("includeAvgTimeOnPage"), "value_error", "The average time on a page is not supported")
	}
	o.Close()
	return q
}

// breakdownWords returns the API's words for breakdowns, in alphabetical order.
func breakdownWords() []string {
	words := make([]string, 0, len(breakdowns))
	for word := range breakdowns {
		words = append(words, word)
	}
	slices.Sort(words)
	return words
}
