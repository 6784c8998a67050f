package lifecycle

import (
	"strconv"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// Query counts actors that are new, returning, resurrecting or dormant (contract: lifecycle.md).
type Query struct {
	query.Common
	// Series are conditions on the events, all of which must hold. There is at least one.
	Series   []query.Series `json:"series"`
	Interval query.Interval `json:"interval"`
	// InRange reports whether activity before the range does not count, and everybody in the first bucket is new.
	InRange bool `json:"in_range,omitempty"`
	// CustomTarget asks to count something other than people or groups, which only tables of a warehouse have. It is always refused.
	CustomTarget bool `json:"customAggregationTarget,omitempty"`
}

// Kind returns LifecycleQuery.
func (*Query) Kind() string { return "LifecycleQuery" }

// Canonical leaves out what only changes how the answer is shown.
func (q *Query) Canonical() []byte { return query.Canonical(q.Kind(), q) }

// Parts points at the shared fields.
func (q *Query) Parts() query.Parts {
	return query.Parts{Common: &q.Common, Interval: &q.Interval}
}

// Clone returns a copy.
func (q *Query) Clone() query.Insight {
	c := *q
	return &c
}

// Read reads a LifecycleQuery.
func Read(r *query.Reader, o *query.Object) query.Node {
	q := &Query{Common: r.Common(o), Series: r.Series(o), Interval: r.Interval(o)}
	if given, ok := o.Take("lifecycleFilter"); ok {
		f := r.Object(given, o.Field("lifecycleFilter"))
		for i, status := range f.List("toggledLifecycles") {
			f.Word(status, f.Field("toggledLifecycles").Below(strconv.Itoa(i), true), query.Statuses...)
		}
		q.InRange = f.Flag("onlyUseInsightDates")
		f.Display("stacked")
		f.Close()
	}
	q.CustomTarget = o.Flag("customAggregationTarget")
	o.Close()
	return q
}
