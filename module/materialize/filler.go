// Package materialize fills the tables of materialized endpoints with queries that run inside ClickHouse. They run on a schedule, one at a time per
// version across all servers that share a registry. The package knows neither HTTP nor Caddy.
package materialize

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/background"
	"github.com/caddy-analytics/caddy-analytics/module/backoff"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/rescue"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// fills share the places of a server with queries.
var fills = admission.Class{Most: 2}

const (
	// defaultKeep is how long a replaced table stays: longer than a run waits for its turn and reads it.
	defaultKeep = 15 * time.Minute
	// pollInterval is how often to look for versions whose table is to be filled: another server may have requested that, or may have died.
	pollInterval = time.Second
	// cleanEvery is how often to look for tables that nobody reads any more.
	cleanEvery = time.Minute
)

// Config configures a Filler.
type Config struct {
	Registry *registry.Registry
	Compiler *execution.Compiler
	Shards   *warehouse.Shards
	Places   *admission.Scheduler
	Cohorts  execution.Cohorts // nil: the members of cohorts are used as they are
	Logger   *zap.Logger
	// Keep is how long a replaced table stays. Default: a quarter of an hour.
	Keep time.Duration
}

// Filler fills tables in the background. The registry holds which tables exist and which are to be filled, so that nothing is forgotten when a server
// dies. Its methods are safe for concurrent use.
type Filler struct {
	Config

	metrics *metrics
	worker  *background.Worker
	open    context.Context // ends with Close
	bell    background.Bell

	mu      sync.Mutex
	filling map[name]bool  // the fills begun; false for one that waits for another server
	current map[name]state // of the tables whose query was found to be that of now

	unread map[string]map[clickhouse.MaterializedTable]time.Time // by shard, when a table was first seen to be unread

	ahead    background.Ahead[name] // for times of fills
	failed   background.Ahead[name] // for times of failures
	pauses   backoff.Pauses[name]   // for fills that an outage has ended
	cleaning *background.PerShard
}

// name names a version.
type name struct {
	project  int64
	endpoint string // id
	version  int
}

func nameOf(m registry.Materialized) name { return name{m.Project, m.Endpoint.ID, m.Number} }

// New returns a Filler, which begins to look for tables to fill.
func New(config Config) *Filler {
	config.Keep = cmp.Or(config.Keep, defaultKeep)
	w := background.New(config.Registry, config.Logger)
	f := &Filler{
		Config: config, metrics: newMetrics(), worker: w, open: w.Context(), bell: background.NewBell(), cleaning: w.PerShard(),
		filling: map[name]bool{}, current: map[name]state{}, unread: map[string]map[clickhouse.MaterializedTable]time.Time{},
	}
	w.Look(pollInterval, f.bell, f.look)
	w.Every(min(cleanEvery, f.Keep), f.cleanShards)
	return f
}

// Close stops the running fills. In the registry, their versions still wait for them.
func (f *Filler) Close() error { return f.worker.Close() }

// Wake makes the filler look at once. It returns before anything is filled.
func (f *Filler) Wake() { f.bell.Ring() }

// maxBegun is how many fills of a project run or wait for a place before look begins no more. When one ends, it begins the next. Those that wait for another
// server do not count.
const maxBegun = 10

// look begins the fills that are due.
func (f *Filler) look() {
	snap, now := f.Registry.Snapshot(), time.Now()
	f.mu.Lock()
	filling := maps.Clone(f.filling)
	f.mu.Unlock()
	begun := map[int64]int{}
	for n, here := range filling {
		if here {
			begun[n.project]++
		}
	}
	var all []registry.Materialized
	for _, p := range snap.Projects() {
		of := snap.Materialized(p.ID)
		all = append(all, of...)
		if room := maxBegun - begun[p.ID]; room > 0 {
			due := f.dueOf(snap, of, filling, now)
			for _, m := range due[:min(len(due), room)] {
				f.begin(nameOf(m))
			}
		}
	}
	f.forget(all)
}

// dueOf returns those of a project's versions whose table is to be filled now and is not being filled, the oldest first.
func (f *Filler) dueOf(snap *registry.Snapshot, of []registry.Materialized, filling map[name]bool, now time.Time) (due []registry.Materialized) {
	for _, m := range of {
		if _, known := filling[nameOf(m)]; known {
			continue
		}
		f.rescued(nameOf(m), func() {
			if f.due(snap, m, now) {
				due = append(due, m)
			}
		})
	}
	slices.SortStableFunc(due, func(a, b registry.Materialized) int { return a.Table.AsOf.Compare(b.Table.AsOf) })
	return due
}

// forget forgets what is known of versions that are no longer materialized.
func (f *Filler) forget(all []registry.Materialized) {
	there := sync.OnceValue(func() map[name]bool {
		names := make(map[name]bool, len(all))
		for _, m := range all {
			names[nameOf(m)] = true
		}
		return names
	})
	f.pauses.Keep(func(n name) bool { return there()[n] })
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.current) > len(all) {
		maps.DeleteFunc(f.current, func(n name, _ state) bool { return !there()[n] })
	}
}

// begin starts to fill the table of a version, unless that is in progress.
func (f *Filler) begin(n name) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.filling[n]; known {
		return
	}
	f.filling[n] = true
	begun := f.worker.Go(func() {
		f.rescued(n, func() { f.fillInTurn(n) })
		f.mu.Lock()
		delete(f.filling, n)
		f.mu.Unlock()
		f.Wake() // the version may have been changed in the meantime
	})
	if !begun {
		delete(f.filling, n)
	}
}

// rescued calls do for a version. If it panics, the next try is put off.
func (f *Filler) rescued(n name, do func()) {
	if err := rescue.Do(f.Logger, func() error { do(); return nil }, n.fields()...); err != nil {
		f.pauses.Failed(n, time.Now())
	}
}
