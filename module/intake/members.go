package intake

import (
	"context"
	"errors"

	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/cohorts"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// cohortIDs returns the static cohorts, which people are added to, and the computed ones.
func cohortIDs(snap *registry.Snapshot, project int64) (static, computed []int64) {
	for _, c := range snap.Cohorts(project) {
		if c.Static {
			static = append(static, c.ID)
		} else {
			computed = append(computed, c.ID)
		}
	}
	return static, computed
}

// Recount recounts the members of static cohorts, and begins to recompute those of computed cohorts. It passes over cohorts that do not exist. The errors are
// those of [registry.Registry.AwaitCohort], of the places and of ClickHouse.
func (i *Intake) Recount(ctx context.Context, project int64, ids []int64) error {
	static := map[int64]bool{}
	for _, id := range ids {
		known := i.Registry.Snapshot().Cohort(project, id)
		switch {
		case known == nil:
		case known.Static:
			static[id] = true
		default:
			if _, err := i.Registry.AwaitCohort(ctx, project, id); err != nil && !errors.Is(err, registry.ErrNotFound) {
				return err
			}
			i.Calculate(project, id)
		}
	}
	return i.countMembers(ctx, project, static)
}

// countMembers records the new number of members of static cohorts.
func (i *Intake) countMembers(ctx context.Context, project int64, filled map[int64]bool) error {
	for id := range filled {
		if known := i.Registry.Snapshot().Cohort(project, id); known == nil || !known.Static {
			continue
		}
		place, err := i.Places.Enter(ctx, admission.Request{Project: project, Awaited: admission.Awaited, Uncounted: true})
		if err != nil {
			return err
		}
		_, err = cohorts.CountStatic(ctx, i.Registry, i.Shards.Of(project), place, project, id)
		place.Leave()
		if err != nil && !errors.Is(err, registry.ErrNotFound) {
			return err
		}
	}
	return nil
}
