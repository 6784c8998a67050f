package registry

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"
)

// Purged says what of a project was removed for good.
type Purged struct {
	Insights   []int64  // numbers
	Dashboards []int64  // numbers
	Tiles      []int64  // numbers
	Endpoints  int      // with their versions
	Keys       []string // ids
	Cohorts    int
}

// Empty reports whether nothing was removed.
func (p *Purged) Empty() bool {
	return len(p.Insights)+len(p.Dashboards)+len(p.Tiles)+p.Endpoints+len(p.Keys)+p.Cohorts == 0
}

// Purge removes for good what was deleted before a time: insights, dashboards, tiles, endpoints, cohorts, and keys that were revoked or
// have expired. A personal key that is named as the author of something stays, and so do the versions of endpoints that are there. An
// unknown project is ErrNotFound.
func (r *Registry) Purge(ctx context.Context, project int64, before time.Time) (Purged, error) {
	var purged Purged
	err := r.write(ctx, project, func(tx Tx) (err error) {
		if _, err := tx.Project(ctx, project); err != nil {
			return fmt.Errorf("project %d: %w", project, err)
		}
		purged, err = tx.Purge(ctx, project, moment(before))
		return err
	}, func(d *draft) { d.purge(project, &purged) })
	if err != nil {
		return Purged{}, fmt.Errorf("purging: %w", err)
	}
	return purged, nil
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
				r.purgeProject(ctx, p.ID, now.Add(-PurgeAfter))
			}
		}
	}
}

func (r *Registry) purgeProject(ctx context.Context, project int64, before time.Time) {
	limited, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	purged, err := r.Purge(limited, project, before)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		r.log.Warn("purging what was deleted; trying again later", zap.Int64("project", project), zap.Error(err))
	case !purged.Empty():
		r.log.Info("purged what was deleted more than 30 days ago", zap.Int64("project", project),
			zap.Int("insights", len(purged.Insights)), zap.Int("dashboards", len(purged.Dashboards)), zap.Int("tiles", len(purged.Tiles)),
			zap.Int("endpoints", purged.Endpoints), zap.Int("keys", len(purged.Keys)), zap.Int("cohorts", purged.Cohorts))
	}
}

// purge takes out what the store has removed. Deleted endpoints and cohorts are in no snapshot.
func (d *draft) purge(project int64, purged *Purged) {
	p, own := d.project(project)
	if p == nil {
		return
	}
	for _, id := range purged.Keys {
		d.removeKey(p, own, id)
	}
	if len(purged.Insights) > 0 {
		d.ownInsights(p, own)
		for _, id := range purged.Insights {
			delete(p.insights, id)
		}
	}
	if len(purged.Dashboards)+len(purged.Tiles) == 0 {
		return
	}
	d.ownDashboards(p, own)
	for _, id := range purged.Dashboards {
		delete(p.dashboards, id)
	}
	for id, board := range p.dashboards {
		gone := func(t Tile) bool { return slices.Contains(purged.Tiles, t.ID) }
		if slices.ContainsFunc(board.Tiles, gone) {
			next := *board
			next.Tiles = slices.DeleteFunc(slices.Clone(board.Tiles), gone)
			p.dashboards[id] = &next
		}
	}
}
