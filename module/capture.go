package module

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/delivery"
	"github.com/caddy-analytics/caddy-analytics/ingest/journal"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// capturing is what events come in by. There is one for each data folder, whatever the config: while a reload changes the connection to
// ClickHouse, events still wait in the same journal.
type capturing struct {
	journal  *journal.Journal
	delivery *delivery.Delivery
}

// openCapture takes a share of what events come in by.
func (a *App) openCapture() (*capturing, error) {
	c, err := keep(a, "capture "+a.DataDir, func() (*capturing, func() error, error) {
		logger := a.logger.Named("capture")
		j, err := journal.Open(filepath.Join(a.DataDir, "capture"), journal.Options{MaxBytes: int64(a.Capture.Buffer), Logger: logger})
		if err != nil {
			return nil, nil, fmt.Errorf("opening the log of captured events: %w", err)
		}
		d := delivery.New(j, logger)
		return &capturing{j, d}, func() error { return errors.Join(d.Close(), j.Close()) }, nil
	})
	if err != nil {
		return nil, err
	}
	c.journal.SetMaxBytes(int64(a.Capture.Buffer)) // a reload may have changed it
	return c, nil
}

// deliverTo is where captured events go while a config is the running one.
type deliverTo struct{ *runtime }

// Deliver implements delivery.Target.
func (rt deliverTo) Deliver(ctx context.Context, project int64, records []record.Record) (ingest.Report, error) {
	snap := rt.registry.Snapshot()
	if snap.Project(project) == nil {
		return ingest.Report{}, &delivery.RefusedError{Reason: fmt.Errorf("project %d: %w", project, registry.ErrNotFound)}
	}
	if _, err := rt.Warehouse.Layout(ctx); err != nil {
		return ingest.Report{}, err
	}
	report, err := rt.Warehouse.Deliver(ctx, rt.ingestOptions(snap, project), rt.peopleLock(project), records)
	return report, errors.Join(err, rt.learn(ctx, project, &report))
}

// ingestOptions are those of records that come in now, whose types are learned.
func (rt *runtime) ingestOptions(snap *registry.Snapshot, project int64) ingest.Options {
	return ingest.Options{
		Project: project, LearnTypes: true, Now: time.Now(), KnownTypes: knownTypes(snap, project), MaxTypes: registry.MaxProperties,
		GroupTypes: groupTypes(snap, project), Cohorts: cohortIDs(snap, project), Intents: intents{rt.registry},
	}
}

// peopleLock takes turns with other servers that write to a project: what one reads of its people must stay as it is until it has
// written.
func (rt *runtime) peopleLock(project int64) warehouse.Lock {
	return func(ctx context.Context, holder string) (bool, func(), error) {
		return rt.registry.Lock(ctx, people(project), holder)
	}
}

// people names the people of a project among the locks of the registry.
func people(project int64) string { return "people-" + strconv.FormatInt(project, 10) }

// intents keeps what is being written to a project where the next server finds it that writes there.
type intents struct{ *registry.Registry }

// Save implements ingest.Intents.
func (i intents) Save(ctx context.Context, project int64, batch []byte) error {
	return i.Keep(ctx, people(project), batch)
}

// Load implements ingest.Intents.
func (i intents) Load(ctx context.Context, project int64) ([]byte, error) {
	return i.Kept(ctx, people(project))
}
