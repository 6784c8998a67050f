// Package intake joins what takes in data with the registry: it says what the registry knows of a project before its data are written, and records what was
// learned from them. It knows neither HTTP nor Caddy.
package intake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/delivery"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/deletions"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Intake takes data into the projects of a registry. Its methods are safe for concurrent use.
type Intake struct {
	Registry *registry.Registry
	Shards   *warehouse.Shards
	Places   *admission.Scheduler
	// Cache holds the answers that Change and Learned drop. Options, Deliver and Recount don't use it.
	Cache *cache.Cache
	// Calculate starts the calculation that a computed cohort waits for. Only Recount uses it.
	Calculate func(project, cohort int64)
	Logger    *zap.Logger
}

// Options returns the options for records that come in now, whose types are learned.
func (i *Intake) Options(snap *registry.Snapshot, project int64) ingest.Options {
	static, computed := cohortIDs(snap, project)
	now := time.Now()
	var from time.Time
	of := snap.Schema(project)
	if of != nil {
		from = of.EventsFrom(now)
	}
	settings := snap.Project(project)
	return ingest.Options{
		Project: project, LearnTypes: true, Now: now, EventsFrom: from, KnownTypes: knownTypes(of), MaxTypes: registry.MaxProperties,
		Deletions: func() ingest.Deletions { return deletions.DeletionsOf(i.Registry.Snapshot(), project) },
		Values:    &propertyValues{i.Registry, project, of}, GroupTypes: groupTypes(snap, project), KeepGroupTypes: i.keepGroupTypes(project),
		Cohorts: static, Computed: computed, AnonymizeIPs: settings != nil && settings.AnonymizeIPs,
	}
}

// Deliver implements delivery.Target: it writes captured events, and then records the types of their properties. Answers in the cache stay.
func (i *Intake) Deliver(ctx context.Context, project int64, records []record.Record) (ingest.Report, error) {
	snap := i.Registry.Snapshot()
	if snap.Removal(project) != nil {
		return ingest.Report{Dropped: len(records)}, nil
	}
	if snap.Project(project) == nil {
		return ingest.Report{}, &delivery.RefusedError{Reason: fmt.Errorf("project %d: %w", project, registry.ErrNotFound)}
	}
	wh := i.Shards.Of(project)
	if _, err := wh.Layout(ctx); err != nil {
		return ingest.Report{}, err
	}
	report, err := wh.Deliver(ctx, i.Options(snap, project), records)
	learnErr := i.learn(ctx, project, &report)
	if full, ok := errors.AsType[*registry.FieldError](learnErr); ok { // trying again would keep all events waiting
		i.Logger.Warn("types of captured properties are not recorded", zap.Int64("project", project), zap.String("reason", full.Message))
		learnErr = nil
	}
	return report, errors.Join(err, learnErr)
}

// Change changes the properties of a person and learns their types. It drops cached answers that this may have changed. The errors are those of
// [warehouse.Warehouse.Change] and [registry.Registry.Learn].
func (i *Intake) Change(ctx context.Context, project int64, change ingest.Change) error {
	report, err := i.Shards.Of(project).Change(ctx, i.Places, i.Options(i.Registry.Snapshot(), project), change)
	if learnErr := i.learn(ctx, project, &report); err == nil {
		err = learnErr
	}
	i.Cache.Outdate(project)
	return err
}

// Learned records what an import learned, even if it failed, and drops cached answers that it may have changed. The errors are those of
// [registry.Registry.Learn], of the places and of ClickHouse.
func (i *Intake) Learned(ctx context.Context, project int64, report *ingest.Report) error {
	err := i.learn(ctx, project, report)
	err = errors.Join(err, i.countMembers(ctx, project, report.Filled))
	i.Cache.Outdate(project)
	return err
}
