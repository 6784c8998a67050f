// Package values finds out in the background which kinds of values the properties of projects had before kinds were recorded, so that queries then
// need not read others. It knows neither HTTP nor Caddy.
package values

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/background"
	"github.com/caddy-analytics/caddy-analytics/module/rescue"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

const (
	// pollInterval is how often to look for projects with values whose kinds were not recorded.
	pollInterval = time.Minute
	// restFor is how long after a probe, whatever its outcome, the project is not probed again.
	restFor = 7 * 24 * time.Hour
	// lock is the name of the lock that the probing server holds.
	lock = "values"
)

// Config configures a Prober.
type Config struct {
	Registry *registry.Registry
	Shards   *warehouse.Shards
	Places   *admission.Scheduler
	Logger   *zap.Logger
	// Options returns the options for writing to a project now.
	Options func(snap *registry.Snapshot, project int64) ingest.Options
}

// Prober probes one project after another, provided that only the servers of the registry write to the tables. The kinds recorded since the beginning
// of a project's probe, together with those that the probe finds, are all that the project has.
type Prober struct {
	Config

	worker *background.Worker
}

// New returns a Prober.
func New(config Config) *Prober {
	return &Prober{Config: config, worker: background.New(config.Registry, config.Logger)}
}

// Begin begins to look for projects, until Close.
func (p *Prober) Begin() {
	if p.Shards.Alone() {
		p.worker.Look(pollInterval, nil, p.work)
	}
}

// Close stops a probe in progress. It starts afresh after the next start.
func (p *Prober) Close() error { return p.worker.Close() }

func (p *Prober) work() {
	open := p.worker.Context()
	if err := p.Round(open); err != nil && open.Err() == nil {
		p.Logger.Warn("kinds of earlier values are not known yet; trying again", clickhouse.Logged(err))
	}
}

// Round probes the projects with values whose kinds were not recorded, unless another server does. A failure does not stop the probing of other projects.
func (p *Prober) Round(ctx context.Context) (failed error) {
	if len(p.wanted(time.Now())) == 0 {
		return nil
	}
	release, err := p.worker.Lock(ctx, lock)
	if err != nil {
		return err
	}
	defer release()
	for _, project := range p.wanted(time.Now()) {
		if err := rescue.Do(p.Logger, func() error { return p.probe(ctx, project) }, zap.Int64("project", project)); err != nil && !errors.Is(err, registry.ErrNotFound) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// wanted returns the projects with properties whose kinds of values may become known.
func (p *Prober) wanted(now time.Time) (wanted []int64) {
	snap := p.Registry.Snapshot()
	for _, project := range snap.Projects() {
		probe := project.ValuesProbe
		if (project.ValuesKnown && !probe.Open) || now.Sub(probe.Ended) < restFor || len(snap.PropertyDefinitions(project.ID)) == 0 {
			continue
		}
		wanted = append(wanted, project.ID)
	}
	return wanted
}

// probe finds out the kinds of values of a project. If the search fails while ClickHouse is there, the project is not probed again soon.
func (p *Prober) probe(ctx context.Context, project int64) error {
	began := time.Now()
	snap := p.Registry.Snapshot()
	if snap.Project(project) == nil {
		return nil
	}
	var number int64
	err := p.Shards.Of(project).BeginNotes(ctx, p.Options(snap, project), func(ctx context.Context) (err error) {
		number, err = p.Registry.BeginValuesProbe(ctx, project)
		return err
	})
	if err != nil {
		return err
	}
	var found []ingest.LearnedProperty
	err = rescue.Do(p.Logger, func() error {
		stored, err := p.Shards.Of(project).StoredValues(ctx, p.Places, project)
		if err == nil {
			found = stored.Of(known(p.Registry.Snapshot(), project))
		}
		return err
	}, zap.Int64("project", project))
	if err != nil {
		if failed, ok := errors.AsType[*clickhouse.Error](err); ctx.Err() == nil && (!ok || failed.Kind != clickhouse.Unavailable) {
			err = errors.Join(err, p.Registry.FailValuesProbe(ctx, project, number, time.Now()))
		}
		return err
	}
	list := make([]registry.PropertyValues, len(found))
	for n, l := range found {
		list[n].PropertyDefinition = registry.PropertyDefinition{Scope: registry.PropertyScope(l.Scope), GroupTypeIndex: l.GroupTypeIndex, Name: l.Name}
		list[n].Kinds = l.Kinds
	}
	if err := p.Registry.EndValuesProbe(ctx, project, number, list, time.Now()); err != nil {
		return err
	}
	p.Logger.Info("kinds of earlier values are known", zap.Int64("project", project), zap.Int("properties", len(list)), zap.Duration("took", time.Since(began)))
	return nil
}

// known returns the properties of a project.
func known(snap *registry.Snapshot, project int64) (list []ingest.LearnedProperty) {
	for _, d := range snap.PropertyDefinitions(project) {
		list = append(list, ingest.LearnedProperty{Scope: string(d.Scope), GroupTypeIndex: d.GroupTypeIndex, Name: d.Name})
	}
	return list
}
