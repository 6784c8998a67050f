// Package upkeep sees to it in the background that data go when their time has come: events that are older than their project keeps them,
// and all that deleted projects had. One server at a time of all that share a registry does it. It knows neither HTTP nor Caddy.
package upkeep

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

const (
	// lookEvery is how often to look for projects that show fewer events than before, or are gone.
	lookEvery = time.Second
	// workEvery is how often to look for what is to be removed from the disk.
	workEvery = time.Minute
	// maxWork is how long one round of that may take. What is not done by then is tried again.
	maxWork = 2 * time.Hour
	// lock is the lock of the server that does it on the main shard, and the beginning of the names of those for the others.
	lock = "upkeep"
)

// Config is what a Keeper works with.
type Config struct {
	Registry *registry.Registry
	Shards   *warehouse.Shards
	Logger   *zap.Logger
	// Outdated has this server forget what it computed for a project before a time: since then the project shows no events but those from
	// another time on, or all if that is zero. The project may be deleted by now.
	Outdated func(project int64, before, from time.Time)
	// Forget has this server forget all that it knows of a project that was deleted.
	Forget func(project int64)
	// ForgetEndpoint has this server forget what it counted of an endpoint that was deleted, by another server or with its project.
	ForgetEndpoint func(*registry.Endpoint)
	// EraseCaptured has the events that were captured so far for a shard leave this server's disk once they are delivered, and waits for it.
	// Those of deleted projects are delivered to nobody.
	EraseCaptured func(ctx context.Context, shard string) error
	// EraseImports stops the imports of a project that was deleted, and removes its files and reports from this server's disk.
	EraseImports func(ctx context.Context, project int64) error
}

// Keeper does it. What is to be done follows from the registry, so that nothing is forgotten when a server dies. Its methods may be called
// from several goroutines at once.
type Keeper struct {
	Config

	holder string        // the name under which it takes the lock
	woken  chan struct{} // has an element when there is work
	open   context.Context
	end    context.CancelFunc
	done   sync.WaitGroup

	working      warehouse.PerShard
	recalculated sync.Map // project → from when on it showed events when its cohorts were last to be computed anew
}

// New returns a keeper, which begins to look for what is to be done.
func New(config Config) *Keeper {
	k := &Keeper{Config: config, holder: uuid.NewString(), woken: make(chan struct{}, 1)}
	k.open, k.end = context.WithCancel(context.Background())
	k.done.Go(k.look)
	k.done.Go(k.work)
	return k
}

// Close stops what is under way. It goes on with the next start.
func (k *Keeper) Close() error {
	k.end()
	k.done.Wait()
	k.working.Wait()
	return nil
}

// wake has the work looked for at once.
func (k *Keeper) wake() {
	select {
	case k.woken <- struct{}{}:
	default: // it is to be looked for already
	}
}

// look forgets what this server computed of events that are not shown any more, and what it counted of endpoints that were deleted.
func (k *Keeper) look() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	var last seen
	for {
		last = k.compare(last)
		select {
		case <-k.open.Done():
			return
		case <-tick.C:
		}
	}
}

// seen is a snapshot, and from when on its projects showed their events.
type seen struct {
	snap  *registry.Snapshot
	shown map[int64]time.Time
}

// compare looks once, and returns what it saw.
func (k *Keeper) compare(last seen) seen {
	now, snap := time.Now(), k.Registry.Snapshot()
	next := shown(snap, now)
	for project, was := range last.shown {
		switch from, there := next[project]; {
		case !there:
			k.Forget(project)
			k.wake()
		case !from.Equal(was):
			k.Outdated(project, now, from)
			k.wake()
		}
		k.forgetEndpoints(project, last.snap, snap)
	}
	return seen{snap, next}
}

// forgetEndpoints forgets the endpoints of a project that were deleted from one snapshot to the next.
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

// shown is from when on each project shows its events; zero for all of them.
func shown(snap *registry.Snapshot, now time.Time) map[int64]time.Time {
	all := map[int64]time.Time{}
	for _, p := range snap.Projects() {
		all[p.ID] = snap.Schema(p.ID).EventsFrom(now)
	}
	return all
}

// work removes from the disk what is to go, on each shard by itself.
func (k *Keeper) work() {
	tick := time.NewTicker(workEvery)
	defer tick.Stop()
	for {
		for shard := range shardsToKeep(k.Registry.Snapshot(), time.Now()) {
			k.working.Begin(shard, func() {
				if err := k.round(shard); err != nil && k.open.Err() == nil {
					k.Logger.Warn("old events and deleted projects are not removed yet; trying again", zap.String("shard", shard), clickhouse.Logged(err))
				}
			})
		}
		select {
		case <-k.open.Done():
			return
		case <-k.woken:
		case <-tick.C:
		}
	}
}

// shardsToKeep are the shards on which there may be something to do.
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

// ofShard is the name of what is kept or locked for a shard.
func ofShard(name, shard string) string {
	if shard == "" {
		return name
	}
	return name + "-" + shard
}

// round does what there is to do on a shard, if no other server does. What fails keeps nothing else from being done.
func (k *Keeper) round(shard string) error {
	ctx, cancel := context.WithTimeout(k.open, maxWork)
	defer cancel()
	_, release, err := k.Registry.Lock(ctx, ofShard(lock, shard), k.holder)
	if err != nil {
		return err
	}
	defer release()
	if err := k.Registry.Refresh(ctx); err != nil { // another server may have done it
		return err
	}
	failed := k.dropOutdated(ctx, shard)
	for _, r := range pending(k.Registry.Snapshot(), time.Now()) {
		if r.Shard != shard {
			continue
		}
		if err := k.complete(ctx, r); err != nil && ctx.Err() == nil {
			k.Logger.Warn("a deleted project is not removed from the disk yet; trying again", zap.Int64("project", r.Project), clickhouse.Logged(err))
		}
	}
	return failed
}
