package query

import "strconv"

// Lifecycle counts actors that are new, that return, come back and fall silent (contract: lifecycle.md).
type Lifecycle struct {
	Common
	// Series are its conditions, which count together. There is at least one.
	Series   []Series `json:"series"`
	Interval Interval `json:"interval"`
}

// Statuses are those of a lifecycle in the order of its answer.
var Statuses = []string{"new", "returning", "resurrecting", "dormant"}

// Kind returns LifecycleQuery.
func (*Lifecycle) Kind() string { return "LifecycleQuery" }

// Text returns nothing: the node holds no text that positions could point into.
func (*Lifecycle) Text() string { return "" }

func (*Lifecycle) node() {}

// Canonical leaves out what only changes how the answer is shown.
func (q *Lifecycle) Canonical() []byte { return canonical(q.Kind(), q) }

// Parts points at the shared fields.
func (q *Lifecycle) Parts() Parts {
	return Parts{Common: &q.Common, Interval: &q.Interval}
}

// Clone gives a copy.
func (q *Lifecycle) Clone() Insight {
	c := *q
	return &c
}

func (r *reader) lifecycle(m map[string]any, at place) Node {
	o := r.object(m, at)
	q := &Lifecycle{Common: r.common(o), Series: r.series(o), Interval: r.interval(o)}
	if given, ok := o.take("lifecycleFilter"); ok {
		f := r.object(given, o.field("lifecycleFilter"))
		for i, status := range f.list("toggledLifecycles") {
			f.word(status, f.field("toggledLifecycles").below(strconv.Itoa(i), true), Statuses...)
		}
		for _, name := range []string{"showValuesOnSeries", "showLegend", "stacked"} {
			f.flag(name)
		}
		f.close()
	}
	r.noTarget(o)
	o.close()
	return q
}

// noTarget refuses a field of the peer that counts something else than people or groups.
func (r *reader) noTarget(o *object) {
	if target := o.flag("customAggregationTarget"); target {
		r.add(o.field("customAggregationTarget"), "value_error", "Custom aggregation targets are not supported")
	}
}
