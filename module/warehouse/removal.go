package warehouse

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/internal/pause"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// DropOutdated removes the events that are older than their projects keep them, also from the disk, and returns how many there were. It removes none
// from the tables of another product.
func (w *Warehouse) DropOutdated(ctx context.Context, kept []clickhouse.Kept) (events int64, err error) {
	if foreign, err := w.checkRemovable(ctx); err != nil || foreign {
		return 0, err
	}
	end, ran := w.changes.outdating(kept), false
	defer func() {
		if err == nil && events == 0 {
			end(false, errUnchanged)
			return
		}
		end(ran, err)
	}()
	events, left, err := w.client.DropOutdated(ctx, kept)
	if err != nil || len(left) == 0 {
		return events, err
	}
	ran = true
	from := make(map[int64]clickhouse.Kept, len(kept))
	for _, k := range kept {
		from[k.Project] = k
	}
	for _, o := range left {
		if err := w.client.DeleteOutdated(ctx, from[o.Project], o.Partition); err != nil {
			return events, err
		}
		events += o.Events
	}
	_, err = w.client.Erase(ctx, physical.Events)
	return events, err
}

// checkRemovable reports whether the tables belong to another product. The error says why rows can't be deleted.
func (w *Warehouse) checkRemovable(ctx context.Context) (foreign bool, err error) {
	layout, err := w.Layout(ctx)
	if err != nil || layout.Foreign() {
		return err == nil, err
	}
	reason, err := w.client.CanDelete(ctx)
	if err == nil && reason != "" {
		err = errors.New(reason)
	}
	return false, err
}

// CanRemove returns the reason why the rows of projects can't be removed; nil if they can, or if they are in the tables of another product, where they stay.
func (w *Warehouse) CanRemove(ctx context.Context) error {
	_, err := w.checkRemovable(ctx)
	return err
}

const (
	// writtenEvery is how often to check whether ClickHouse still writes to a project, and writtenFor for how long.
	writtenEvery = 100 * time.Millisecond
	writtenFor   = time.Minute
)

// RemoveProject removes the rows of a deleted project: no query finds them any more. It waits for its turn among those that write to the project, and
// for inserts that ClickHouse is still executing. It may be called again. From the tables of another product it removes nothing, except from the
// logs, which are ours.
func (w *Warehouse) RemoveProject(ctx context.Context, project int64) error {
	foreign, err := w.checkRemovable(ctx)
	if err != nil {
		return err
	}
	release, err := w.lockCaughtUp(ctx, project)
	if err != nil {
		return err
	}
	defer release()
	w.ForgetPeople(project)
	if w.shared != nil {
		if err := w.shared.Keep(ctx, people(project), nil); err != nil {
			return fmt.Errorf("forgetting an unfinished batch: %w", err)
		}
	}
	if err := w.written(ctx, project); err != nil {
		return err
	}
	tables, err := w.removable(ctx, foreign)
	if err != nil {
		return err
	}
	for _, table := range tables {
		if err := w.removeRows(ctx, table, project); err != nil {
			return err
		}
	}
	if _, err = w.client.EraseMaterialized(ctx, project, afterAnyFill); err != nil {
		return err
	}
	w.forget(project)
	return nil
}

// afterAnyFill is later than any fill of a materialized endpoint's table.
var afterAnyFill = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

// written waits until ClickHouse has finished the inserts into a project.
func (w *Warehouse) written(ctx context.Context, project int64) error {
	for began := time.Now(); ; {
		writing, err := w.client.Writing(ctx, project, true)
		if err != nil || !writing {
			return err
		}
		if time.Since(began) > writtenFor {
			return fmt.Errorf("ClickHouse is still executing an insert into project %d", project)
		}
		if err := pause.For(ctx, writtenEvery); err != nil {
			return err
		}
	}
}

// removable returns the tables whose rows of a project are removed: not those of another product, but the logs, which are ours there too. Logs that
// can't be changed are left out; their rows expire.
func (w *Warehouse) removable(ctx context.Context, foreign bool) (tables []string, err error) {
	layout, err := w.Layout(ctx)
	if err != nil {
		return nil, err
	}
	if !foreign {
		tables = physical.WithoutLogs()
	}
	for _, name := range physical.Names() {
		if !physical.IsLog(name) || !layout.Stores(name) {
			continue
		}
		may, err := w.client.MayDelete(ctx, name)
		if err != nil {
			return nil, err
		}
		if may {
			tables = append(tables, name)
		}
	}
	return tables, nil
}

func (w *Warehouse) removeRows(ctx context.Context, table string, project int64) error {
	rows, err := w.count(ctx, "SELECT toInt64(count()) FROM "+table, project)
	if err != nil || rows == 0 {
		return err
	}
	return w.delete(ctx, project, table, "")
}

// Removed reports whether ClickHouse has no rows of a project and no tables of its endpoints.
func (w *Warehouse) Removed(ctx context.Context, project int64) (bool, error) {
	foreign, err := w.checkRemovable(ctx)
	if err != nil {
		return false, err
	}
	tables, err := w.client.MaterializedTables(ctx)
	if err != nil {
		return false, err
	}
	for _, t := range tables {
		if t.Project == project {
			return false, nil
		}
	}
	names, err := w.removable(ctx, foreign)
	if err != nil {
		return false, err
	}
	for _, table := range names {
		if rows, err := w.count(ctx, "SELECT toInt64(count()) FROM "+table, project); err != nil || rows > 0 {
			return false, err
		}
	}
	return true, nil
}

// EraseRemoved erases a project's removed rows and tables from the disk, and waits until they are gone. In the tables of another product there are no
// such rows.
func (w *Warehouse) EraseRemoved(ctx context.Context, project int64) error {
	foreign, err := w.checkRemovable(ctx)
	if err != nil {
		return err
	}
	tables, err := w.removable(ctx, foreign)
	if err != nil {
		return err
	}
	if err := w.EraseTables(ctx, tables); err != nil {
		return err
	}
	for {
		none, err := w.client.EraseMaterialized(ctx, project, afterAnyFill)
		if err != nil || none {
			return err
		}
		if err := pause.For(ctx, erasurePollInterval); err != nil {
			return err
		}
	}
}

// forget drops what is known of a deleted project's data.
func (w *Warehouse) forget(project int64) {
	w.changes.forget(project)
	w.caughtUp.forget(project)
	if w.prober != nil {
		w.prober.forget(project)
	}
}

// Contents counts what a project has in ClickHouse.
func (w *Warehouse) Contents(ctx context.Context, project int64) (c Contents, err error) {
	for sql, into := range map[string]*int64{
		"SELECT toInt64(count()) FROM events": &c.Events,
		"SELECT toInt64(count()) FROM (SELECT id FROM person GROUP BY id HAVING argMax(is_deleted, version) = 0)": &c.Persons,
		"SELECT toInt64(uniqExact(group_type_index, group_key)) FROM groups":                                      &c.Groups,
	} {
		if *into, err = w.count(ctx, sql, project); err != nil {
			return c, err
		}
	}
	return c, nil
}

// Contents is how much a project has in ClickHouse.
type Contents struct{ Events, Persons, Groups int64 }

// count runs a query of our own over the rows of a project that returns one number.
func (w *Warehouse) count(ctx context.Context, sql string, project int64) (n int64, err error) {
	err = w.client.Collect(ctx, clickhouse.Query{SQL: sql, Project: project}, func(cells []clickhouse.Cell) error {
		n, err = cells[0].Int()
		return err
	})
	return n, err
}
