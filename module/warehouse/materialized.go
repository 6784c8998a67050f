package warehouse

import (
	"context"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
)

// Materialize is clickhouse.Client.Materialize.
func (w *Warehouse) Materialize(ctx context.Context, at *admission.Place, m clickhouse.Materialization) (rows int64, err error) {
	if err := check(at, m.Project); err != nil {
		return 0, err
	}
	m.Yields, m.Lingers = at.Yields(), at.Keep
	return w.client.Materialize(ctx, m)
}

// DropMaterialized is clickhouse.Client.DropMaterialized.
func (w *Warehouse) DropMaterialized(ctx context.Context, at *admission.Place, t clickhouse.MaterializedTable) error {
	if err := check(at, t.Project); err != nil {
		return err
	}
	return w.client.DropMaterialized(ctx, t)
}

// MaterializedTables is clickhouse.Client.MaterializedTables. It needs no place; the caller makes sure that it is not called too often.
func (w *Warehouse) MaterializedTables(ctx context.Context) ([]clickhouse.MaterializedTable, error) {
	return w.client.MaterializedTables(ctx)
}

// trial is the outcome of the last attempt to create a table.
type trial struct {
	reason string
	at     time.Time
}

// trialAge is how long after a failed trial no new one is made.
const trialAge = time.Minute

// CanMaterialize is clickhouse.Client.CanMaterialize. It is asked at most once a minute, and no more once tables can be made.
func (w *Warehouse) CanMaterialize(ctx context.Context) (reason string, err error) {
	if last := w.trial.Load(); last != nil && (last.reason == "" || time.Since(last.at) < trialAge) {
		return last.reason, nil
	}
	found := w.trials.DoChan("", func() (any, error) {
		reason, err := w.client.CanMaterialize(w.open) // others wait for it too
		if err == nil {
			w.trial.Store(&trial{reason, time.Now()})
		}
		return reason, err
	})
	select {
	case f := <-found:
		reason, _ = f.Val.(string)
		return reason, f.Err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// LastTrial returns what CanMaterialize last found; empty before that.
func (w *Warehouse) LastTrial() (reason string) {
	if last := w.trial.Load(); last != nil {
		return last.reason
	}
	return ""
}
