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

// doneName is the name under which the registry stores, for the main shard, from when on events were kept at the last removal; and the prefix of the
// names for the other shards.
const doneName = "retention"

// keptOf returns the projects of a shard that do not keep their events forever, each with the time from which it keeps them.
func keptOf(snap *registry.Snapshot, shard string, now time.Time) []clickhouse.Kept {
	var kept []clickhouse.Kept
	for _, p := range snap.Projects() {
		if from := snap.Schema(p.ID).EventsFrom(now); !from.IsZero() && p.Shard == shard {
			kept = append(kept, clickhouse.Kept{Project: p.ID, From: from})
		}
	}
	return kept
}

// dropOutdated removes events of a shard that are too old, once per day of their projects.
func (k *Keeper) dropOutdated(ctx context.Context, shard string) error {
	kept := keptOf(k.Registry.Snapshot(), shard, time.Now())
	now := make(map[int64]int64, len(kept))
	for _, one := range kept {
		now[one.Project] = one.From.Unix()
	}
	text, err := k.Registry.Kept(ctx, ofShard(doneName, shard))
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
	began, events := time.Now(), int64(0)
	if len(kept) > 0 {
		if events, err = k.Shards.Of(kept[0].Project).DropOutdated(ctx, kept); err != nil {
			return err
		}
	}
	if events > 0 {
		k.Logger.Info("removed events that are older than their projects keep them", zap.Int64("events", events), zap.Duration("took", time.Since(began)))
	}
	if text, err = json.Marshal(now); err != nil {
		return err
	}
	return k.Registry.Keep(ctx, ofShard(doneName, shard), text)
}

// recalculate requests new members for the cohorts of projects that show other events than before: once, even if removing the events fails and is
// tried again.
func (k *Keeper) recalculate(ctx context.Context, now, done map[int64]int64) error {
	snap := k.Registry.Snapshot()
	for project, from := range now {
		if last, _ := k.recalculated.Load(project); done[project] == from || last == from {
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
		k.recalculated.Store(project, from)
	}
	return nil
}
