package warehouse

import (
	"context"
	"fmt"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// HasLogs reports whether ClickHouse has the tables of the log of queries and runs. The error is that of Layout.
func (w *Warehouse) HasLogs(ctx context.Context) (bool, error) {
	layout, err := w.Layout(ctx)
	return err == nil && storesLogs(layout), err
}

// KnowsLogs reports whether ClickHouse is known to have these tables and answered when it was last asked. It does not wait to find out.
func (w *Warehouse) KnowsLogs() bool {
	layout := w.Known()
	return layout != nil && w.Reachable() && storesLogs(layout)
}

func storesLogs(l *schema.Layout) bool {
	return l.Stores(physical.QueryLog) && l.Stores(physical.RunLog)
}

// WriteLog writes rows of a log. It needs no place, as the caller writes one batch at a time. Log rows are not a project's data, so no version changes.
func (w *Warehouse) WriteLog(ctx context.Context, b clickhouse.Batch) error {
	if !physical.IsLog(b.Table) {
		return fmt.Errorf("BUG: %s is not a log", b.Table)
	}
	return w.client.Insert(ctx, b)
}

// ReadLog runs a query of our own over the logs of a project. It calls row for each row.
func (w *Warehouse) ReadLog(ctx context.Context, at *admission.Place, q clickhouse.Query, row func([]clickhouse.Cell) error) error {
	if err := check(at, q.Project); err != nil {
		return err
	}
	return w.client.Collect(ctx, q, row)
}

// EmptyLogs removes all rows of the logs.
func (w *Warehouse) EmptyLogs(ctx context.Context) error {
	layout, err := w.Layout(ctx)
	if err != nil {
		return err
	}
	for _, name := range physical.Names() {
		if physical.IsLog(name) && layout.Stores(name) {
			if err := w.client.Truncate(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}
