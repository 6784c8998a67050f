// Package upkeep removes data in the background when its time has come: events older than their project keeps them, and everything of deleted
// projects. Of all servers that share a registry, one at a time does it. The package knows neither HTTP nor Caddy.
package upkeep

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/module/background"
	"github.com/caddy-analytics/caddy-analytics/module/rescue"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

const (
	// pollInterval is how often to look for projects that show fewer events than before, or are gone.
	pollInterval = time.Second
	// workEvery is how often to look for data to remove from the disk.
	workEvery = time.Minute
	// maxWork is how long one round of work may take. What is not done by then is tried again.
	maxWork = 2 * time.Hour
	// lock is the name of the lock for work on the main shard, and the prefix of those for the others.
	lock = "upkeep"
)

// Config configures a Keeper.
type Config struct {
	Registry *registry.Registry
	Shards   *warehouse.Shards
	Logger   *zap.Logger
	// Outdated makes this server forget what it computed for some projects before a time: each now shows only events from a later time on, or all events
	// if from is zero.
	Outdated func(before time.Time, from map[int64]time.Time)
	// Forget makes this server forget everything about a deleted project.
	Forget func(project int64)
	// ForgetEndpoint makes this server forget the counts of an endpoint that was deleted, by another server or with its project.
	ForgetEndpoint func(*registry.Endpoint)
	// EraseCaptured waits until the events captured so far for a shard are delivered and off this server's disk. Events of deleted projects are not delivered.
	EraseCaptured func(ctx context.Context, shard string) error
	// EraseImports stops the imports of a deleted project, and removes its files and reports from this server's disk.
	EraseImports func(ctx context.Context, project int64) error
}

// Keeper removes data. The registry determines what is to be removed, so that nothing is forgotten when a server dies. Its methods are safe for
// concurrent use.
type Keeper struct {
	Config

	worker       *background.Worker
	open         context.Context      // ends with Close
	bell         background.Bell      // rings when there is work
	working      *background.PerShard // on the disk
	recalculated sync.Map             // project → the time from which it showed events when its cohorts were last to be recomputed
}

// New returns a Keeper, which begins to look for work.
func New(config Config) *Keeper {
	k := newKeeper(config)
	var last seen
	k.worker.Look(pollInterval, nil, func() { last = k.compare(last) })
	k.worker.Look(workEvery, k.bell, k.work)
	return k
}

func newKeeper(config Config) *Keeper {
	w := background.New(config.Registry, config.Logger)
	return &Keeper{Config: config, worker: w, open: w.Context(), bell: background.NewBell(), working: w.PerShard()}
}

// Close stops work in progress. It continues after the next start.
func (k *Keeper) Close() error { return k.worker.Close() }

// seen is a snapshot, with the times from which its projects showed their events.
type seen struct {
	snap  *registry.Snapshot
	shown map[int64]time.Time
}

// compare forgets what this server computed from events that are no longer shown, and the counts of deleted endpoints. It returns what it saw.
func (k *Keeper) compare(last seen) seen {
	now, snap := time.Now(), k.Registry.Snapshot()
	next := shown(snap, now)
	moved := map[int64]time.Time{}
	for project, was := range last.shown {
		_ = rescue.Do(k.Logger, func() error {
			switch from, there := next[project]; {
			case !there:
				k.bell.Ring()
				k.Forget(project)
			case !from.Equal(was):
				moved[project] = from
			}
			k.forgetEndpoints(project, last.snap, snap)
			return nil
		}, zap.Int64("project", project)) // it is logged
	}
	if len(moved) > 0 { // of many projects at midnight
		k.bell.Ring()
		_ = rescue.Do(k.Logger, func() error { k.Outdated(now, moved); return nil }) // it is logged
	}
	return seen{snap, next}
}

// forgetEndpoints forgets the endpoints of a project that were deleted between two snapshots.
func (k *Keeper) forgetEndpoints(project int64, was, is *registry.Snapshot) {
	if was.Serial(project) == is.Serial(project) {
		return
	}
	for _, e := range was.Endpoints(project) {
		if now := is.Endpoint(project, e.Name); now == nil || now.ID != e.ID {
			k.ForgetEndpoint(e)
		}
	}
}

// shown returns the time from which each project shows its events; zero for all of them.
func shown(snap *registry.Snapshot, now time.Time) map[int64]time.Time {
	all := map[int64]time.Time{}
	for _, p := range snap.Projects() {
		all[p.ID] = snap.Schema(p.ID).EventsFrom(now)
	}
	return all
}

// work removes data from the disk, on each shard independently.
func (k *Keeper) work() {
	for shard := range shardsToKeep(k.Registry.Snapshot(), time.Now()) {
		k.working.Begin(shard, func() {
			if err := k.round(shard); err != nil && k.open.Err() == nil {
				k.Logger.Warn("old events and deleted projects are not removed yet; trying again", zap.String("shard", shard), clickhouse.Logged(err))
			}
		})
	}
}

// shardsToKeep returns the shards on which there may be work.
func shardsToKeep(snap *registry.Snapshot, now time.Time) map[string]bool {
	shards := map[string]bool{}
	for _, p := range snap.Projects() {
		if !snap.Schema(p.ID).EventsFrom(now).IsZero() {
			shards[p.Shard] = true
		}
	}
	for _, r := range pending(snap, now) {
		shards[r.Shard] = true
	}
	return shards
}

// ofShard returns the name under which something of a shard is stored or locked.
func ofShard(name, shard string) string {
	if shard == "" {
		return name
	}
	return name + "-" + shard
}

// round does the work on a shard, unless another server does. A failure does not stop the remaining work.
func (k *Keeper) round(shard string) error {
	ctx, cancel := context.WithTimeout(k.open, maxWork)
	defer cancel()
	release, err := k.worker.Lock(ctx, ofShard(lock, shard))
	if err != nil {
		return err
	}
	defer release()
	failed := rescue.Do(k.Logger, func() error { return k.dropOutdated(ctx, shard) }, zap.String("shard", shard))
	for _, r := range pending(k.Registry.Snapshot(), time.Now()) {
		if r.Shard != shard {
			continue
		}
		of := zap.Int64("project", r.Project)
		if err := rescue.Do(k.Logger, func() error { return k.complete(ctx, r) }, of); err != nil && ctx.Err() == nil {
			k.Logger.Warn("a deleted project is not removed from the disk yet; trying again", of, clickhouse.Logged(err))
		}
	}
	return failed
}
