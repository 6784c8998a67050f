package registry

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"
)

// Purged lists what was removed from a project for good.
type Purged struct {
	Insights    []int64  // numbers
	Dashboards  []int64  // numbers
	Tiles       []int64  // numbers
	Endpoints   int      // with their versions
	Keys        []string // ids
	Cohorts     int
	Actions     int
	Annotations int
	Deletions   int // records of deletions that were erased
}

// Empty reports whether nothing was removed.
func (p *Purged) Empty() bool {
	return len(p.Insights)+len(p.Dashboards)+len(p.Tiles)+p.Endpoints+len(p.Keys)+p.Cohorts+p.Actions+p.Annotations+p.Deletions == 0
}

// Purge removes for good what was deleted before a time: insights, dashboards, tiles, endpoints, cohorts, actions, annotations, records of deletions that were
// erased, and keys that were revoked or have expired. A personal key that is named as the author of something stays, and so do the versions of existing
// endpoints. An unknown project is ErrNotFound.
func (r *Registry) Purge(ctx context.Context, project int64, before time.Time) (Purged, error) {
	return r.purge(ctx, project, before, func(u *purge) {
		u.insights()
		u.dashboards()
		u.endpoints()
		u.actions()
		u.annotations()
		u.deletions()
		u.keys(nil)
		u.cohorts()
	})
}

// PurgeSessions removes for good the keys of sessions that ended before a time, except those named as the author of something. An unknown project is
// ErrNotFound.
func (r *Registry) PurgeSessions(ctx context.Context, project int64, before time.Time) (Purged, error) {
	return r.purge(ctx, project, before, func(u *purge) {
		u.keys(func(k *keyEntry) bool { return k.Session })
	})
}

// purge writes what remove removes.
func (r *Registry) purge(ctx context.Context, project int64, before time.Time, remove func(u *purge)) (Purged, error) {
	before = moment(before)
	unlogged, err := r.unlogged(ctx, project, before, remove)
	if err != nil {
		return Purged{}, fmt.Errorf("purging: %w", err)
	}
	var purged Purged
	err = r.write(ctx, project, func(t *tx) error {
		p, err := t.state()
		if err != nil {
			return err
		}
		purge := purge{tx: t, p: p, before: before, unlogged: func(key string) bool { return unlogged[key] }}
		remove(&purge)
		purged = purge.out
		return nil
	})
	if err != nil {
		return Purged{}, fmt.Errorf("purging: %w", err)
	}
	return purged, nil
}

// purge is a purge in progress.
type purge struct {
	*tx

	p        *projectState
	before   time.Time
	unlogged func(key string) bool // reports whether a key is known not to be in the activity log
	out      Purged
}

// due reports whether what was deleted at a time is to be removed.
func (u *purge) due(deleted time.Time) bool { return !deleted.IsZero() && !deleted.After(u.before) }

func (u *purge) insights() {
	for _, i := range valuesOf(u.p.insights.byID, func(i *Insight) bool { return i.Deleted && u.due(i.UpdatedAt) }) {
		for _, t := range u.p.tilesWith(i.ID) {
			u.tile(&t)
		}
		u.removeAlertsOf(u.p, i.ID)
		u.remove(i)
		u.out.Insights = append(u.out.Insights, i.ID)
		u.write.Forget = append(u.write.Forget, Forgotten{Project: u.project, Log: viewLog, Item: digits(i.ID)})
	}
}

func (u *purge) dashboards() {
	for _, d := range valuesOf(u.p.dashboards.byID, nil) {
		gone := d.Deleted && u.due(d.DeletedAt)
		for _, t := range slices.Clone(d.Tiles) {
			if gone || t.Deleted && u.due(t.DeletedAt) {
				u.tile(&t)
			}
		}
		if gone {
			u.remove(d)
			u.out.Dashboards = append(u.out.Dashboards, d.ID)
		}
	}
}

func (u *purge) tile(t *Tile) {
	u.remove(t)
	u.out.Tiles = append(u.out.Tiles, t.ID)
}

func (u *purge) endpoints() {
	for _, e := range valuesOf(u.p.endpoints.byID, func(e *endpointEntry) bool { return u.due(e.deleted) }) {
		for _, v := range e.Versions {
			u.remove(&versionRecord{Version: v, project: u.project, endpoint: e.ID})
		}
		u.remove(&endpointRecord{Endpoint: &e.Endpoint})
		u.out.Endpoints++
		u.write.Forget = append(u.write.Forget, forgetUses(e.ID))
	}
}

// keys removes the keys that are due, of those that kind selects, nil for all. Personal ones that are the author of something that stays are kept.
func (u *purge) keys(kind func(*keyEntry) bool) {
	authors := u.p.authors()
	for _, k := range valuesOf(u.p.keys.byID, kind) {
		if !u.due(k.RevokedAt) && !u.due(k.ExpiresAt) || k.Kind == Personal && (authors[k.ID] || !u.unlogged(k.ID)) {
			continue
		}
		u.remove(&k.Key)
		u.out.Keys = append(u.out.Keys, k.ID)
		u.write.Forget = append(u.write.Forget, Forgotten{Project: u.project, Log: viewLog, By: k.ID}, forgetUses(k.ID))
	}
}

// cohorts removes those that are due, except the one with the greatest number, so that the number is not reused.
func (u *purge) cohorts() {
	last := u.p.lastCohort()
	for _, c := range valuesOf(u.p.cohorts.byID, func(c *Cohort) bool { return c.ID < last && u.due(c.DeletedAt) }) {
		u.remove(c)
		u.out.Cohorts++
	}
}

func (u *purge) actions() {
	for _, a := range valuesOf(u.p.actions.byID, func(a *Action) bool { return u.due(a.DeletedAt) }) {
		u.remove(a)
		u.out.Actions++
	}
}

// annotations removes those that were deleted, and those on something that is gone for good.
func (u *purge) annotations() {
	gone := func(a *Annotation) bool {
		return a.Deleted && u.due(a.UpdatedAt) ||
			a.Scope == OnInsight && a.Insight != nil && u.p.insights.get(*a.Insight) == nil ||
			a.Scope == OnDashboard && a.Dashboard != nil && u.p.dashboards.get(*a.Dashboard) == nil
	}
	for _, a := range valuesOf(u.p.annotations.byID, gone) {
		u.remove(a)
		u.out.Annotations++
	}
}

// authors returns the keys that something of the project names as its author.
func (p *projectState) authors() map[string]bool {
	named := make(map[string]bool)
	for _, i := range valuesOf(p.insights.byID, nil) {
		named[i.CreatedBy], named[i.LastModifiedBy] = true, true
	}
	for _, d := range valuesOf(p.dashboards.byID, nil) {
		named[d.CreatedBy] = true
		for _, t := range d.Tiles {
			if t.Text != nil {
				named[t.Text.CreatedBy], named[t.Text.LastModifiedBy] = true, true
			}
		}
	}
	for _, a := range valuesOf(p.actions.byID, nil) {
		named[a.CreatedBy] = true
	}
	for _, a := range valuesOf(p.alerts.byID, nil) {
		named[a.CreatedBy] = true
	}
	for _, d := range valuesOf(p.definitions.byID, nil) {
		named[d.CreatedBy], named[d.UpdatedBy], named[d.VerifiedBy] = true, true, true
	}
	for _, a := range valuesOf(p.annotations.byID, nil) {
		named[a.CreatedBy] = true
	}
	for _, v := range valuesOf(p.variables.byID, nil) {
		named[v.CreatedBy] = true
	}
	for _, c := range valuesOf(p.cohorts.byID, nil) {
		named[c.CreatedBy] = true
	}
	for _, e := range valuesOf(p.endpoints.byID, nil) {
		named[e.CreatedBy] = true
		for i := range e.Versions {
			named[e.Versions[i].CreatedBy] = true
		}
	}
	for _, k := range valuesOf(p.keys.byID, nil) {
		if k.RevokedAt.IsZero() {
			named[k.CreatedBy] = true
		}
	}
	return named
}

// maxAsked is how many keys a purge looks up in the activity log at most: each takes a query of its own, and the purge of a project has limited time.
const maxAsked = 500

// unlogged returns the keys that are not in the activity log, of those that remove removes if they are not. It looks up maxAsked keys at most, in half of
// the time that ctx has left: a later purge looks up the others. The keys found in the log are remembered, so that none is looked up again.
func (r *Registry) unlogged(ctx context.Context, project int64, before time.Time, remove func(u *purge)) (map[string]bool, error) {
	t := newTx(r.Snapshot(), project) // of a trial: it is not written
	p, err := t.state()
	if err != nil {
		return nil, err
	}
	var keys []string
	remove(&purge{tx: t, p: p, before: before, unlogged: func(key string) bool {
		if _, logged := r.logged.Load(key); !logged {
			keys = append(keys, key)
		}
		return false
	}})
	asking, stop := halfOf(ctx)
	defer stop()
	unlogged := make(map[string]bool)
	for _, key := range keys[:min(len(keys), maxAsked)] {
		_, total, err := r.store.Entries(asking, project, activityLog(ScopeInsight), EntryPage{By: key, Limit: 1})
		switch {
		case err != nil && asking.Err() != nil && ctx.Err() == nil:
			return unlogged, nil
		case err != nil:
			return nil, fmt.Errorf("asking the activity log for a key: %w", err)
		case total > 0:
			r.logged.Store(key, nil)
		default:
			unlogged[key] = true
		}
	}
	return unlogged, nil
}

// halfOf returns a context that ends when half of the time has passed that ctx has left, if that is limited.
func halfOf(ctx context.Context) (context.Context, context.CancelFunc) {
	end, limited := ctx.Deadline()
	if !limited {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)/2)
}

// purgeDeleted purges all projects from time to time, until ctx ends.
func (r *Registry) purgeDeleted(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			for _, p := range r.Snapshot().Projects() {
				r.purgeProject(ctx, p.ID, now)
			}
		}
	}
}

func (r *Registry) purgeProject(ctx context.Context, project int64, now time.Time) {
	limited, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	purged, err := r.Purge(limited, project, now.Add(-PurgeAfter))
	var sessions Purged
	if err == nil {
		sessions, err = r.PurgeSessions(limited, project, now.Add(-PurgeSessionsAfter))
	}
	switch {
	case ctx.Err() != nil:
	case err != nil:
		r.log.Warn("purging what was deleted; trying again later", zap.Int64("project", project), zap.Error(err))
	case !purged.Empty() || !sessions.Empty():
		r.log.Info("purged what was deleted more than 30 days ago, and keys of sessions that ended more than a day ago", zap.Int64("project", project),
			zap.Int("insights", len(purged.Insights)), zap.Int("dashboards", len(purged.Dashboards)), zap.Int("tiles", len(purged.Tiles)),
			zap.Int("endpoints", purged.Endpoints), zap.Int("keys", len(purged.Keys)), zap.Int("cohorts", purged.Cohorts), zap.Int("actions", purged.Actions), zap.Int("annotations", purged.Annotations),
			zap.Int("deletions", purged.Deletions),
			zap.Int("sessions", len(sessions.Keys)))
	}
}
