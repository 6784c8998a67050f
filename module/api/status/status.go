// Package status reports the health of the server and of a project for the console. As the holder of a key may be a customer, it reveals nothing about
// other projects, hosts, or files of the server.
package status

import (
	"context"
	"math"
	"net/http"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Status handles the status route.
type Status struct {
	Executor *execution.Executor
	Version  string    // of this module
	Started  time.Time // when the process started
	Embedded bool      // ClickHouse is the embedded engine
	// Health checks the parts of the server, or returns the result of a moment ago.
	Health func(context.Context) Health
	// Capture returns the event counts of a project; nil for a server that receives no events.
	Capture func(project int64) *Capture
}

// Health says which parts of the server respond.
type Health struct {
	At                   time.Time
	ClickHouse, Registry bool
	Took                 time.Duration // until ClickHouse responded
}

// Capture counts the events of a project by outcome since the process started, and those that are waiting.
type Capture struct {
	Accepted  int64            `json:"accepted_events"`
	Ignored   int64            `json:"ignored_events"` // accepted, but of kinds that are not stored
	Dropped   int64            `json:"dropped_events"` // invalid events among valid ones
	Refused   map[string]int64 `json:"refused_requests"`
	Delivered int64            `json:"delivered_events"`
	SetAside  int64            `json:"set_aside_events"`
	Waiting   int64            `json:"waiting_events"`
	Bytes     int64            `json:"waiting_bytes"`
	Lag       float64          `json:"lag_seconds"`
}

// Routes returns the status route.
func (s *Status) Routes() []api.Route {
	return []api.Route{{Method: http.MethodGet, Pattern: "status", Scope: "project:read", Handler: s.get}}
}

type record struct {
	Version       string    `json:"version"`
	StartedAt     time.Time `json:"started_at"`
	UptimeSeconds int64     `json:"uptime_seconds"`
	ClickHouse    database  `json:"clickhouse"`
	Registry      part      `json:"registry"`
	Cache         answers   `json:"cache"`
	Capture       *Capture  `json:"capture"`
	Events        events    `json:"events"`
	Queries       queries   `json:"queries"`
	Materialized  tables    `json:"materialized"`
	Alerts        alerts    `json:"alerts"`
}

type part struct {
	Reachable bool `json:"reachable"`
}

type database struct {
	part

	Kind      string    `json:"kind"` // embedded or server
	Version   *string   `json:"version"`
	PingMS    *float64  `json:"ping_ms"`
	CheckedAt time.Time `json:"checked_at"`
	Hosts     *hosts    `json:"hosts,omitempty"` // nil if there is only one
}

// hosts counts the hosts of ClickHouse.
type hosts struct {
	Total     int `json:"total"`
	Reachable int `json:"reachable"`
}

func hostsOf(wh *warehouse.Warehouse) *hosts {
	all := wh.Hosts()
	if len(all) == 1 {
		return nil
	}
	found := &hosts{Total: len(all)}
	for _, h := range all {
		if h.Reachable {
			found.Reachable++
		}
	}
	return found
}

// answers counts the project's answers with rows.
type answers struct {
	Hits     int64    `json:"hits"`
	Misses   int64    `json:"misses"`
	HitRatio *float64 `json:"hit_ratio"`
}

// events says for how many days the project stores events, null forever, and the time of the earliest event shown now, null for no limit.
type events struct {
	RetentionDays *int       `json:"retention_days"`
	From          *time.Time `json:"from"`
}

// queries counts the queries of the project, now and at most.
type queries struct {
	Running    int `json:"running"`
	Waiting    int `json:"waiting"`
	MaxRunning int `json:"max_running"`
	MaxWaiting int `json:"max_waiting"`
}

// tables counts the tables of materialized endpoint versions.
type tables struct {
	Tables         int        `json:"tables"`
	Ready          int        `json:"ready"`   // filled at least once
	Failing        int        `json:"failing"` // whose last fill failed
	OldestFilledAt *time.Time `json:"oldest_filled_at"`
}

type alerts struct {
	Total             int `json:"total"`
	Enabled           int `json:"enabled"`
	Firing            int `json:"firing"`
	Errored           int `json:"errored"`
	Snoozed           int `json:"snoozed"`
	WaitingDeliveries int `json:"waiting_deliveries"`
}

// get answers GET status/.
func (s *Status) get(ctx context.Context, c *api.Caller, _ *api.Input) (*api.Response, error) {
	found := record{
		Version: s.Version, StartedAt: s.Started.UTC().Truncate(time.Second), UptimeSeconds: int64(time.Since(s.Started) / time.Second),
		Cache: s.answersOf(c.Project.ID), Events: eventsOf(c.Snapshot.Schema(c.Project.ID), time.Now()), Queries: s.queriesOf(c.Project.ID),
		Materialized: tablesOf(c.Snapshot.Endpoints(c.Project.ID)), Alerts: alertsOf(c.Snapshot.Alerts(c.Project.ID)),
	}
	if s.Capture != nil {
		found.Capture = s.Capture(c.Project.ID)
	}
	health := s.Health(ctx)
	found.Registry.Reachable = health.Registry
	wh := s.Executor.Shards.Of(c.Project.ID)
	reachable := health.ClickHouse && (!s.Executor.Shards.Several() || wh.Reachable())
	found.ClickHouse = database{
		part: part{reachable}, Kind: "server", Version: api.OrNull(wh.ServerVersion()), CheckedAt: health.At.UTC(), Hosts: hostsOf(wh),
	}
	if s.Embedded {
		found.ClickHouse.Kind = "embedded"
	}
	if reachable {
		found.ClickHouse.PingMS = new(float64(health.Took.Microseconds()) / 1000)
	}
	return api.JSON(http.StatusOK, found), nil
}

func (s *Status) answersOf(project int64) (a answers) {
	a.Hits, a.Misses = s.Executor.Metrics.AnswersOf(project)
	if all := a.Hits + a.Misses; all > 0 {
		a.HitRatio = new(math.Round(1000*float64(a.Hits)/float64(all)) / 1000)
	}
	return a
}

func eventsOf(of *registry.ProjectSchema, now time.Time) (e events) {
	if of == nil || of.Project.Retention == 0 {
		return e
	}
	return events{RetentionDays: &of.Project.Retention, From: api.OrNil(of.EventsFrom(now))}
}

func (s *Status) queriesOf(project int64) (q queries) {
	limits := s.Executor.Places.Limits()
	q.MaxRunning, q.MaxWaiting = limits.Most(), limits.Queue
	q.Running, q.Waiting = s.Executor.Places.Of(project)
	return q
}

func tablesOf(endpoints []*registry.Endpoint) (t tables) {
	var oldest time.Time
	for _, e := range endpoints {
		for i := range e.Versions {
			table := e.Versions[i].Table
			if table == nil {
				continue
			}
			t.Tables++
			if table.Errors > 0 {
				t.Failing++
			}
			if table.Fill == 0 {
				continue
			}
			t.Ready++
			if oldest.IsZero() || table.AsOf.Before(oldest) {
				oldest = table.AsOf
			}
		}
	}
	t.OldestFilledAt = api.OrNil(oldest)
	return t
}

func alertsOf(list []*registry.Alert) (a alerts) {
	for _, one := range list {
		a.Total++
		a.WaitingDeliveries += len(one.Deliveries)
		if !one.Enabled {
			continue
		}
		a.Enabled++
		switch one.State {
		case registry.AlertFiring:
			a.Firing++
		case registry.AlertErrored:
			a.Errored++
		case registry.AlertSnoozed:
			a.Snoozed++
		case registry.AlertNotFiring:
		}
	}
	return a
}
