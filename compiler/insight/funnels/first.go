package funnels

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// firstEvent finds one event of each person: the first that satisfies a condition, and of several at the same time always the same one.
const firstEvent = `SELECT argMin(uuid, (timestamp, uuid)) FROM events WHERE {condition} GROUP BY person_id HAVING min(timestamp) >= {lower}`

// step returns the condition on the events of a step; nil for none. With first_time_for_user it must be the first event of that name in all
// of history and satisfy the filters; with …_with_filters it must be the first event with the name that satisfies the filters (contract:
// funnels.md, section 2).
func (b *builder) step(s *query.Series) (hogql.Expr, error) {
	whole, err := b.w.Series(s)
	if err != nil {
		return nil, err
	}
	among := whole
	switch s.Math.Kind {
	case "first_time_for_user":
		if among, err = b.w.Named(s); err != nil {
			return nil, err
		}
	case "first_time_for_user_with_filters":
	default:
		return whole, nil
	}
	condition := insight.And(among, insight.Compare(insight.Field("timestamp"), hogql.LessOrEquals, insight.Const(b.dates.To)))
	first := insight.Template(firstEvent, map[string]any{"condition": condition, "lower": b.dates.Lower})
	return insight.And(whole, insight.Compare(insight.Field("uuid"), hogql.In, &hogql.Subquery{Query: first})), nil
}
