package warehouse

import (
	"context"
	"fmt"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
)

// writers is the gate's capacity: more than the batches that can be written at the same time.
const writers = 1 << 30

// Hold waits for the batches of all projects that are being written, and lets no new one begin until release is called. Events captured in the
// meantime wait in their log. Servers that share the registry are held too, for the given projects: unless check returns an error, they have written
// nothing since.
func (w *Warehouse) Hold(ctx context.Context, projects []int64) (release func(), check func(context.Context) error, err error) {
	if err := w.gate.Acquire(ctx, writers); err != nil {
		return nil, nil, fmt.Errorf("waiting for what is being written: %w", context.Cause(ctx))
	}
	releases := []func(){func() { w.gate.Release(writers) }}
	release = func() {
		for _, r := range releases {
			r()
		}
	}
	if w.shared == nil || w.ingest.Alone || len(projects) == 0 {
		return release, func(context.Context) error { return nil }, nil
	}
	var names []string
	for _, project := range projects {
		unlock, err := w.lock(ctx, project)
		if err != nil {
			release()
			return nil, nil, err
		}
		releases, names = append(releases, unlock), append(names, people(project))
	}
	return release, func(ctx context.Context) error { return w.shared.CheckLocks(ctx, names) }, nil
}

// ForgetPeople records that any of a project's people and events may have changed.
func (w *Warehouse) ForgetPeople(project int64) {
	w.ingest.Forget(project)
	w.changes.changed(project)
}

// StoredTables is clickhouse.Client.StoredTables. It and the methods below are only for backups: they need no place, as one backup is made at a time.
func (w *Warehouse) StoredTables(ctx context.Context) ([]clickhouse.StoredTable, error) {
	return w.client.StoredTables(ctx)
}

// CountByProject is clickhouse.Client.CountByProject.
func (w *Warehouse) CountByProject(ctx context.Context, table string) (map[int64]int64, error) {
	return w.client.CountByProject(ctx, table)
}

// StoredMembers is clickhouse.Client.StoredMembers.
func (w *Warehouse) StoredMembers(ctx context.Context) ([]clickhouse.StoredMembers, error) {
	return w.client.StoredMembers(ctx)
}

// Freeze is clickhouse.Client.Freeze.
func (w *Warehouse) Freeze(ctx context.Context, table, name string) error {
	return w.client.Freeze(ctx, table, name)
}

// AttachPart is clickhouse.Client.AttachPart.
func (w *Warehouse) AttachPart(ctx context.Context, table, part string) error {
	return w.changingAll(func() error { return w.client.AttachPart(ctx, table, part) })
}

// Truncate is clickhouse.Client.Truncate.
func (w *Warehouse) Truncate(ctx context.Context, table string) error {
	return w.changingAll(func() error { return w.client.Truncate(ctx, table) })
}

// Recreate is clickhouse.Client.Recreate.
func (w *Warehouse) Recreate(ctx context.Context, table, create string) error {
	return w.changingAll(func() error { return w.client.Recreate(ctx, table, create) })
}

// BackUp is clickhouse.Client.BackUp.
func (w *Warehouse) BackUp(ctx context.Context, tables []string, destination string) error {
	return w.client.BackUp(ctx, tables, destination)
}
