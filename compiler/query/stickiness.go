package query

// Stickiness counts actors by the number of intervals that they were active in (contract: stickiness.md).
type Stickiness struct {
	Common
	Series   []Series `json:"series"`
	Interval Interval `json:"interval"`
	// IntervalCount puts so many intervals together, counted back from the end of the range; 0 for calendar intervals.
	IntervalCount int `json:"intervalCount,omitempty"`
	// Cumulative counts actors active in at least so many intervals.
	Cumulative bool `json:"cumulative,omitempty"`
	// Criteria tells what makes an interval active; nil for one event or more.
	Criteria *Criteria `json:"criteria,omitempty"`
	Compare  *Compare  `json:"compare,omitempty"`
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
func (*Stickiness) Kind() string { return "StickinessQuery" }

// Text returns nothing: the node holds no text that positions could point into.
func (*Stickiness) Text() string { return "" }

func (*Stickiness) node() {}

// Canonical leaves out what only changes how the answer is shown.
func (q *Stickiness) Canonical() []byte { return canonical(q.Kind(), q) }

// Parts points at the shared fields.
func (q *Stickiness) Parts() Parts {
	return Parts{Common: &q.Common, Interval: &q.Interval, Compare: &q.Compare}
}

// Clone gives a copy.
func (q *Stickiness) Clone() Insight {
	c := *q
	return &c
}

func (r *reader) stickiness(m map[string]any, at place) Node {
	o := r.object(m, at)
	q := &Stickiness{Common: r.common(o), Series: r.series(o), Interval: r.interval(o), Compare: r.compare(o)}
	if count, ok := o.integer("intervalCount"); ok {
		q.IntervalCount = count
		switch {
		case count < 1:
			r.refuse(o.field("intervalCount"), "intervalCount must be a positive integer.")
		case count > 365:
			r.refuse(o.field("intervalCount"), "intervalCount cannot exceed 365.")
		}
	}
	if given, ok := o.take("stickinessFilter"); ok {
		r.stickinessFilter(q, given, o.field("stickinessFilter"))
	}
	o.close()
	return q
}

func (r *reader) stickinessFilter(q *Stickiness, v any, at place) {
	f := r.object(v, at)
	q.Cumulative = f.choice("computedAs", "non_cumulative", "non_cumulative", "cumulative") == "cumulative"
	if given, ok := f.take("stickinessCriteria"); ok {
		c := r.object(given, f.field("stickinessCriteria"))
		c.required("operator", "value")
		q.Criteria = &Criteria{Operator: CriteriaOperator(c.choice("operator", "", "gte", "lte", "exact"))}
		q.Criteria.Value, _ = c.integer("value")
		switch {
		case q.Criteria.Value < 0:
			r.refuse(c.field("value"), "Stickiness criteria value must be non-negative.")
		case c.m["value"] != nil && q.Criteria.Value == 0 && q.Criteria.Operator != AtLeast:
			r.refuse(c.field("value"), "Stickiness criteria with operator exact or lte must use a value greater than 0.")
		}
		c.close()
	}
	for _, name := range []string{"showLegend", "showValuesOnSeries", "showMultipleYAxes"} {
		f.flag(name)
	}
	f.ignore("display", "hiddenLegendIndexes", "resultCustomizationBy", "resultCustomizations")
	f.close()
}
