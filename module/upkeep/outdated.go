package upkeep

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// doneName is under what name the registry keeps from when on events were kept when older ones were removed the last time.
const doneName = "retention"

// keptOf is from when on the projects keep their events that don't keep them for ever, by project.
func keptOf(snap *registry.Snapshot, now time.Time) []clickhouse.Kept {
	var kept []clickhouse.Kept
	for _, p := range snap.Projects() {
		if from := snap.Schema(p.ID).EventsFrom(now); !from.IsZero() {
			kept = append(kept, clickhouse.Kept{Project: p.ID, From: from})
		}
	}
	return kept
}

// dropOutdated removes events that are too old, once for each day of their projects.
func (k *Keeper) dropOutdated(ctx context.Context) error {
	kept := keptOf(k.Registry.Snapshot(), time.Now())
	now := make(map[int64]int64, len(kept))
	for _, one := range kept {
		now[one.Project] = one.From.Unix()
	}
	text, err := k.Registry.Kept(ctx, doneName)
	if err != nil {
		return err
	}
	done := map[int64]int64{}
	if len(text) > 0 {
		if err := json.Unmarshal(text, &done); err != nil {
			return err
		}
	}
	if maps.Equal(now, done) {
		return nil
	}
	if err := k.recalculate(ctx, now, done); err != nil {
		return err
	}
	began := time.Now()
	events, err := k.Shards.DropOutdated(ctx, kept)
	if err != nil {
		return err
	}
	if events > 0 {
		k.Logger.Info("removed events that are older than their projects keep them", zap.Int64("events", events), zap.Duration("took", time.Since(began)))
	}
	if text, err = json.Marshal(now); err != nil {
		return err
	}
	return k.Registry.Keep(ctx, doneName, text)
}

// recalculate has the members computed anew of the cohorts of projects that show other events than before: once, even if removing the
// events fails and is tried again.
func (k *Keeper) recalculate(ctx context.Context, now, done map[int64]int64) error {
	snap := k.Registry.Snapshot()
	for project, from := range now {
		if done[project] == from || k.recalculated[project] == from {
			continue
		}
		for _, c := range snap.Cohorts(project) {
			if c.Static {
				continue
			}
			if _, err := k.Registry.AwaitCohort(ctx, project, c.ID); err != nil && !errors.Is(err, registry.ErrNotFound) {
				return err
			}
		}
		k.recalculated[project] = from
	}
	return nil
}
