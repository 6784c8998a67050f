package module

import (
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
)

// placeLimits returns the limits of places. The embedded engine runs a fixed number of queries at a time, whatever the config says.
func (a *App) placeLimits() admission.Limits {
	l := admission.Limits{Places: a.Limits.Places, Project: a.Limits.Concurrency, Queue: execution.QueueFactor * a.Limits.Concurrency}
	switch most := embedded.DefaultMaxQueries(); {
	case a.ClickHouse != "" && l.Places == 0:
		l.Places = placesFactor * a.Limits.Concurrency
	case a.ClickHouse == "" && (l.Places == 0 || l.Places > most):
		l.Places = most
	}
	return l
}

// spareQueries run in the engine in addition to those with a place: discovery and the delivery of captured events, which slow queries must not hold up.
const spareQueries = 2

// placesFactor is how many projects may use their full concurrency at the same time on a ClickHouse server.
const placesFactor = 4

// spareConnections are for work without a place: pings, discovery, and the delivery of captured events.
const spareConnections = 4
