package stickiness

import "github.com/caddy-analytics/caddy-analytics/compiler/query"

// Query counts actors by the number of intervals that they were active in (contract: stickiness.md).
type Query struct {
	query.Common
	Series   []query.Series `json:"series"`
	Interval query.Interval `json:"interval"`
	// IntervalCount is the number of intervals in a block, counted back from the end of the range; nil for calendar intervals.
	IntervalCount *int `json:"intervalCount,omitempty"`
	// Cumulative counts, for each number of intervals, the actors that were active in at least that many.
	Cumulative bool `json:"cumulative,omitempty"`
	// Criteria says what makes an interval active; nil for one event or more.
	Criteria *Criteria      `json:"criteria,omitempty"`
	Compare  *query.Compare `json:"compare,omitempty"`
}

// Criteria is a bound on the number of events of an interval.
type Criteria struct {
	Operator CriteriaOperator `json:"operator"`
	Value    int              `json:"value"`
}

// CriteriaOperator compares a number of events with the value of Criteria.
type CriteriaOperator string

// The operators of Criteria.
const (
	AtLeast CriteriaOperator = "gte"
	AtMost  CriteriaOperator = "lte"
	Exactly CriteriaOperator = "exact"
)

// Kind returns StickinessQuery.
func (*Query) Kind() string { return "StickinessQuery" }

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

// Read reads a StickinessQuery.
func Read(r *query.Reader, o *query.Object) query.Node {
	q := &Query{Common: r.Common(o), Series: r.Series(o), Interval: r.Interval(o), Compare: r.Compare(o), IntervalCount: o.IntegerOrNil("intervalCount")}
	if given, ok := o.Take("stickinessFilter"); ok {
		stickinessFilter(r, q, given, o.Field("stickinessFilter"))
	}
	o.Close()
	return q
}

func stickinessFilter(r *query.Reader, q *Query, v any, at query.Place) {
	f := r.Object(v, at)
	q.Cumulative = f.Choice("computedAs", "non_cumulative", "non_cumulative", "cumulative") == "cumulative"
	if given, ok := f.Take("stickinessCriteria"); ok {
		c := r.Object(given, f.Field("stickinessCriteria"))
		c.Required("operator", "value")
		q.Criteria = &Criteria{Operator: CriteriaOperator(c.Choice("operator", "", "gte", "lte", "exact"))}
		q.Criteria.Value, _ = c.Integer("value")
		c.Close()
	}
	f.Display("display", "resultCustomizationBy", "resultCustomizations")
	f.Close()
}
