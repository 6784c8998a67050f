package stickiness

import (
	"strconv"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// ActorsQuery asks for the actors of a stickiness that were active in a number of intervals (contract: stickiness.md, section 9).
type ActorsQuery struct {
	query.Drill
	Source *Query `json:"-"`
	// Day is the number of intervals; 0 for any.
	Day int `json:"day,omitempty"`
	// Operator compares with Day; empty for what the source counts: Exactly, or AtLeast if it is cumulative.
	Operator CriteriaOperator `json:"operator,omitempty"`
	// Series is the index of a series; nil for the first.
	Series *int `json:"series,omitempty"`
	// Compare is "current" or "previous"; nil for the current period.
	Compare *string `json:"compare,omitempty"`
}

// Kind returns StickinessActorsQuery.
func (*ActorsQuery) Kind() string { return "StickinessActorsQuery" }

// Behind returns the insight.
func (q *ActorsQuery) Behind() query.Insight { return q.Source }

// Overridden applies the overrides to the insight.
func (q *ActorsQuery) Overridden(ov *query.Overrides) (query.Node, error) {
	out := *q
	out.Source = ov.Apply(q.Source).(*Query)
	return &out, nil
}

// Canonical leaves out what only changes how the insight is shown.
func (q *ActorsQuery) Canonical() []byte { return query.CanonicalOver(q.Kind(), q.Source, q) }

// ReadActors reads a StickinessActorsQuery.
func ReadActors(r *query.Reader, o *query.Object, d query.Drill, behind query.Insight) query.PeopleSource {
	q := &ActorsQuery{
		Drill: d, Source: behind.(*Query), Series: r.Index(o, "series"), Compare: o.Period(),
		Operator: CriteriaOperator(o.Choice("operator", "", string(AtLeast), string(AtMost), string(Exactly))),
	}
	o.Ignore("status", "interval", "breakdown")
	if day := r.Day(o, "day"); day != nil {
		n, err := strconv.Atoi(*day)
		if err != nil || n < 1 {
			r.Add(o.Field("day"), "int_type", "Input should be a number of intervals, from 1")
		}
		q.Day = n
	}
	return q
}
