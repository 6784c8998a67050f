// Package actors answers ActorsQuery: node ─▶ [build] ─▶ tree, and row ─▶ [shape] ─▶ row (contract: api.md, section 1.6).
// Who is behind a number of an insight is a matter of the insight's own package.
package actors

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/funnels"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/lifecycle"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/paths"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/retention"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/stickiness"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/trends"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// People asks for the actors behind a number of an insight. The error is a *diag.Error.
func People(source query.PeopleSource, w *insight.World) (*insight.People, error) {
	switch at := source.(type) {
	case *query.InsightActors:
		switch q := at.Source.(type) {
		case *query.Trends:
			return trends.Actors(q, at, w)
		case *query.Lifecycle:
			return lifecycle.Actors(q, at, w)
		case *query.Paths:
			return paths.Actors(q, at, w)
		case *query.Retention:
			return retention.Actors(q, at, w)
		}
	case *query.FunnelsActors:
		return funnels.Actors(at.Source, at, w)
	case *query.StickinessActors:
		return stickiness.Actors(at.Source, at, w)
	}
	panic("BUG: no way to find the actors of a " + source.Behind().Kind())
}
