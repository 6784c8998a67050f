package deletions

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/internal/pause"
	"github.com/caddy-analytics/caddy-analytics/module/rescue"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

const (
	// eraseLock is the name of the lock for erasing on the main shard, and the prefix of those for the others.
	eraseLock = "erasure"
	// maxErasure is how long one erasure may take. What is not done by then is tried again.
	maxErasure = time.Hour
	// pollEvery is how often to check whether ClickHouse has removed the erased rows.
	pollEvery = 2 * time.Second
)

// eraseDue erases what was deleted long enough ago, on each shard independently.
func (d *Deleter) eraseDue() {
	for shard := range d.dueAt(time.Now().Add(-d.Delay)) {
		d.erasing.Begin(shard, func() {
			if _, err := d.erase(d.open, shard, time.Now().Add(-d.Delay)); err != nil && d.open.Err() == nil {
				d.metrics.failures.Inc()
				d.Logger.Warn("deleted rows are not erased from the disk yet; trying again", zap.String("shard", shard), clickhouse.Logged(err))
			}
		})
	}
}

// EraseNow erases what is hidden, waits until nothing of it is on the disk, and returns how many deletions that were. An error on one shard does not
// stop the erasure on others.
func (d *Deleter) EraseNow(ctx context.Context) (erased int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.open, cancel)()
	now := time.Now()
	var all sync.WaitGroup
	var mu sync.Mutex // guards the results
	for shard := range d.dueAt(now) {
		all.Go(func() {
			n, failed := d.erase(ctx, shard, now)
			mu.Lock()
			defer mu.Unlock()
			erased, err = erased+n, errors.Join(err, failed)
		})
	}
	all.Wait()
	return erased, refusal(err)
}

// erasure is an erasure in progress of what was deleted on one shard.
type erasure struct {
	*Deleter

	shard string // its name
	wh    *warehouse.Warehouse
	due   map[int64][]*registry.Deletion // by project
	all   int
}

// erase erases what was hidden on a shard before a time, if there is anything. Only one server does that at a time.
func (d *Deleter) erase(ctx context.Context, shard string, before time.Time) (erased int, err error) {
	if d.dueAt(before)[shard] == nil {
		return 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, maxErasure)
	defer cancel()
	lock := eraseLock
	if shard != "" {
		lock += "-" + shard
	}
	release, err := d.worker.Lock(ctx, lock)
	if err != nil {
		return 0, err
	}
	defer release()
	e := d.dueAt(before)[shard]
	if e == nil {
		return 0, nil
	}
	began := time.Now()
	if err := rescue.Do(d.Logger, func() error { return e.run(ctx) }, zap.String("shard", shard)); err != nil {
		return 0, err
	}
	d.metrics.erased.Add(float64(e.all))
	d.metrics.seconds.Observe(time.Since(began).Seconds())
	d.Logger.Info("deleted people are erased from the disk", zap.Int("deletions", e.all), zap.Duration("took", time.Since(began)))
	return e.all, nil
}

// dueAt returns the deletions that were hidden before a time and not erased yet, by shard.
func (d *Deleter) dueAt(before time.Time) map[string]*erasure {
	due := map[string]*erasure{}
	snap := d.Registry.Snapshot()
	for _, p := range snap.Projects() {
		for _, one := range snap.PendingDeletions(p.ID) {
			if one.HiddenAt.IsZero() || one.HiddenAt.After(before) {
				continue
			}
			e := due[p.Shard]
			if e == nil {
				e = &erasure{Deleter: d, shard: p.Shard, wh: d.Shards.Of(p.ID), due: map[int64][]*registry.Deletion{}}
				due[p.Shard] = e
			}
			e.due[p.ID] = append(e.due[p.ID], one)
			e.all++
		}
	}
	return due
}

// run erases in an order in which each step can be repeated.
func (e *erasure) run(ctx context.Context) error {
	if err := e.captured(ctx); err != nil {
		return err
	}
	for project, list := range e.due {
		if err := e.EraseImports(project); err != nil {
			return err
		}
		former, err := formerPersons(ctx, e.wh, project, list)
		if err != nil {
			return err
		}
		if err := hideRows(ctx, e.wh, project, list, former, true); err != nil {
			return err
		}
	}
	if err := e.wh.EraseTables(ctx, warehouse.Erasable); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return errOverdue
		}
		return err
	}
	if err := e.endpoints(ctx); err != nil {
		return err
	}
	for project, list := range e.due { // first the names, and then the record that nothing is left of them
		if err := e.Registry.ForgetDeleted(ctx, project, list); err != nil {
			return err
		}
	}
	if err := e.Registry.EraseRemoved(ctx); err != nil {
		return err
	}
	for project, list := range e.due {
		if err := e.Registry.EraseDeletions(ctx, project, list, time.Now()); err != nil {
			return err
		}
	}
	return nil
}

// captured waits until earlier captured events are delivered, and removes them from this server's disk.
func (e *erasure) captured(ctx context.Context) error {
	names := map[int64]map[string]bool{}
	for project, list := range e.due {
		names[project] = map[string]bool{}
		for _, one := range list {
			for _, n := range one.Names {
				names[project][n.Name] = names[project][n.Name] || one.Events
			}
		}
	}
	return e.EraseCaptured(ctx, e.shard, func(project int64, id string) bool { return names[project][id] })
}

// endpoints drops the tables of materialized endpoints that were filled before the deletions.
func (e *erasure) endpoints(ctx context.Context) error {
	for project, list := range e.due {
		last := time.Time{}
		for _, one := range list {
			if one.HiddenAt.After(last) {
				last = one.HiddenAt
			}
		}
		for {
			none, err := e.wh.EraseMaterialized(ctx, project, last)
			if err != nil {
				return err
			}
			if none {
				break
			}
			if err := pause.For(ctx, pollEvery); err != nil {
				if errors.Is(err, context.DeadlineExceeded) {
					return errOverdue
				}
				return err
			}
		}
	}
	return nil
}

var errOverdue = errors.New("ClickHouse has not removed deleted rows from its disk in time")
