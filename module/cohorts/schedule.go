package cohorts

import (
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/rescue"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// follow recomputes cohorts while something uses them, and deletes versions that nobody reads any more.
func (c *Calculator) follow() {
	now, snap, on := time.Now(), c.Registry.Snapshot(), map[string][]int64{}
	for _, p := range snap.Projects() {
		_ = rescue.Do(c.Logger, func() error { c.schedule(snap, p.ID, now); return nil }, zap.Int64("project", p.ID)) // it is logged
		on[p.Shard] = append(on[p.Shard], p.ID)
	}
	for shard, projects := range on {
		c.cleaning.Begin(shard, func() {
			for _, project := range projects {
				_ = rescue.Do(c.Logger, func() error { c.clean(snap, project, now); return nil }, zap.Int64("project", project)) // it is logged
			}
		})
	}
}

// schedule recomputes the cohorts of a project that are in use and too old.
func (c *Calculator) schedule(snap *registry.Snapshot, project int64, now time.Time) {
	for _, known := range snap.Cohorts(project) {
		if known.Static || known.Calculating() || c.age(known, now) < scheduledAge || !c.due(known, now) {
			continue
		}
		n := name{project, known.ID}
		if c.recentlyUsed(n, now) || c.InUse != nil && c.InUse(snap, project, known.ID) {
			c.ask(n)
		}
	}
}

// age returns how old the members of a cohort are.
func (c *Calculator) age(known *registry.Cohort, now time.Time) time.Duration {
	return now.Sub(c.ahead.Past(name{known.Project, known.ID}, known.LastCalculation, now))
}

// recentlyUsed reports whether a query read a cohort within a day: answers may come from the cache for some hours.
func (c *Calculator) recentlyUsed(n name, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return now.Sub(c.used[n]) < usedAge
}

// cleanEvery is how often to look for the remains of aborted calculations.
const cleanEvery = 24 * time.Hour

// versions tracks the versions of a cohort in ClickHouse.
type versions struct {
	current uint64    // the version that queries read; 0 for none
	since   time.Time // when current was first seen
	before  []uint64  // the versions it replaced
	clean   time.Time // when there were no others; zero for never
}

// clean deletes the versions of a project's cohorts that nobody has read for long enough: old ones, those of aborted calculations, and all versions
// of cohorts that were deleted or are static now.
func (c *Calculator) clean(snap *registry.Snapshot, project int64, now time.Time) {
	layout := c.Shards.Of(project).Known()
	if layout == nil {
		return
	}
	for i := range snap.Schema(project).Cohorts {
		known := &snap.Schema(project).Cohorts[i]
		n := name{project, known.ID}
		v := c.seen(n, readVersion(known), now)
		if now.Sub(v.since) < c.Keep || now.Sub(v.clean) < cleanEvery {
			continue
		}
		if err := c.dropOld(n, v, layout.Foreign()); err != nil {
			if c.open.Err() == nil {
				c.Logger.Debug("old members of a cohort are not deleted yet", zap.Int64("project", project), zap.Int64("cohort", known.ID), clickhouse.Logged(err))
			}
			return // the next round tries again
		}
	}
}

// readVersion returns the version of computed members that queries read; 0 for none.
func readVersion(c *registry.SchemaCohort) uint64 {
	if c.Static || c.Deleted {
		return 0
	}
	return c.Version
}

// seen records which version of a cohort queries read.
func (c *Calculator) seen(n name, current uint64, now time.Time) *versions {
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.versions[n]
	switch {
	case v == nil:
		v = &versions{current: current, since: now}
		c.versions[n] = v
	case v.current != current:
		v.before = append(v.before, v.current)
		v.current, v.since, v.clean = current, now, time.Time{}
	}
	return v
}

// dropOld deletes all versions of a cohort except the current one, unless the cohort is being computed. In tables that another product fills, it only
// deletes versions known to be ours.
func (c *Calculator) dropOld(n name, v *versions, foreign bool) error {
	place, err := c.Places.Enter(c.open, admission.Request{Project: n.project, Uncounted: true})
	if err != nil {
		return err
	}
	defer place.Leave()
	release, err := c.worker.TryLock(c.open, lockOf(n))
	switch {
	case errors.Is(err, registry.ErrHeld):
		return nil // it is being computed
	case err != nil:
		return err
	}
	defer release()
	if known := c.Registry.Snapshot().AnyCohort(n.project, n.cohort); known == nil ||
		readVersion(&registry.SchemaCohort{Static: known.Static, Deleted: known.Deleted, Version: known.Version}) != v.current {
		return nil // another server has just computed it
	}
	if !foreign {
		err = c.Shards.Of(n.project).DropOtherVersions(c.open, place, n.project, n.cohort, v.current)
	}
	for _, version := range v.before {
		if foreign && err == nil && version > 0 {
			err = c.Shards.Of(n.project).DropVersion(c.open, place, n.project, n.cohort, version)
		}
	}
	if err == nil {
		v.before, v.clean = nil, time.Now()
	}
	return err
}
