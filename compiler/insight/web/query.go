// Package web holds what the queries of web analytics share: their fields, their periods, and the conditions on their events (contract:
// clients-queries.md, section 8).
package web

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// Query has the fields that all queries of web analytics have.
type Query struct {
	query.Common
	// Interval only moves the ends of the date range.
	Interval query.Interval `json:"interval"`
	// Compare asks for the numbers of an earlier period, too; nil for none.
	Compare *query.Compare `json:"compare,omitempty"`
	// Goal is the conversion goal; nil for none.
	Goal *query.Goal `json:"goal,omitempty"`
	// CleanPaths applies the project's rules for cleaning paths.
	CleanPaths bool `json:"clean_paths,omitempty"`
	// Rate is the share of people to sample.
	Rate Rate `json:"rate"`
}

// Rate is a share: Numerator divided by Denominator, or Numerator if that is nil.
type Rate struct {
	Numerator   float64  `json:"numerator"`
	Denominator *float64 `json:"denominator"`
}

func (r Rate) share() float64 {
	if r.Denominator == nil {
		return r.Numerator
	}
	return r.Numerator / *r.Denominator
}

// propertyTypes are the types of filters that properties may have.
var propertyTypes = []string{"event", "person", "session", query.CohortType}

// Read reads the shared fields. The caller closes o.
func Read(r *query.Reader, o *query.Object) Query {
	o.Required("properties")
	q := Query{Common: r.Common(o), Interval: r.Interval(o), Compare: r.Compare(o), CleanPaths: o.Flag("doPathCleaning")}
	checkTypes(o, o.Given["properties"], o.Field("properties"))
	if q.Group != nil {
		r.Add(o.Field("aggregation_group_type_index"), "value_error", "Web analytics counts people, not groups")
	}
	if given, ok := o.Take("conversionGoal"); ok {
		q.Goal = readGoal(r, given, o.Field("conversionGoal"))
	}
	q.Rate = Rate{Numerator: 1}
	if q.Sampling != nil && *q.Sampling > 0 {
		q.Rate.Numerator = *q.Sampling
	}
	if given, ok := o.Take("sampling"); ok {
		if rate := readSampling(r, given, o.Field("sampling")); rate != nil {
			q.Rate = *rate
			share := rate.share()
			q.Sampling = &share
		}
	}
	o.Flag("useSessionsTable")
	o.Flag("useWebAnalyticsPrecompute") // nothing is computed in advance
	return q
}
