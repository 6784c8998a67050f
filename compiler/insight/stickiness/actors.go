package stickiness

import (
	"cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
)

// those keeps the actors whose number of active intervals satisfies a condition.
const those = `SELECT actor AS actor_id FROM {active} WHERE {condition}`

// Actors returns the query for the actors that were active in a number of intervals (contract: stickiness.md, section 9). The error is a
// *diag.Error.
func Actors(q *Query, at *ActorsQuery, w *insight.World) (*insight.People, error) {
	b, err := newBuilder(q, w)
	if err != nil {
		return nil, err
	}
	period, number := 0, 0
	if at.Compare != nil && *at.Compare == "previous" {
		if period = 1; len(b.periods) < 2 {
			return nil, diag.Field(diag.InvalidInput, at.Field("compare"), "The insight is not compared with a previous period")
		}
	}
	if at.Series != nil {
		number = *at.Series
	}
	if number >= len(q.Series) {
		return nil, diag.Field(diag.InvalidInput, at.Field("series"), "The insight has no series %d", number)
	}
	series := &q.Series[number]
	if ofValues(series) {
		return nil, diag.Field(diag.InvalidInput, series.At+".math", "A series that counts the values of an expression has no actors")
	}
	active, err := b.active(&item{series: series, order: number, dates: b.periods[period]})
	if err != nil {
		return nil, err
	}
	whole := insight.Const(true)
	if at.Day > 0 {
		without := Exactly
		if q.Cumulative {
			without = AtLeast
		}
		operator := operators[cmp.Or(at.Operator, without)]
		whole = insight.Compare(insight.Field("intervals"), operator, insight.Const(int64(at.Day)))
	}
	out := &insight.People{Query: insight.Template(those, map[string]any{"active": insight.From(active), "condition": whole})}
	if series.Math.Kind == "unique_group" {
		out.Group = series.Math.Group
	}
	return out, nil
}
