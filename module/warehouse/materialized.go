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
	m.Yields = at.Yields()
	return w.client.Materialize(ctx, m)
}

// DropMaterialized is clickhouse.Client.DropMaterialized.
func (w *Warehouse) DropMaterialized(ctx context.Context, at *admission.Place, t clickhouse.MaterializedTable) error {
	if err := check(at, t.Project); err != nil {
		return err
	}
	return w.client.DropMaterialized(ctx, t)
}

// MaterializedTables is clickhouse.Client.MaterializedTables. It needs no place, and the caller sees to it that it is not asked too often.
func (w *Warehouse) MaterializedTables(ctx context.Context) ([]clickhouse.MaterializedTable, error) {
	return w.client.MaterializedTables(ctx)
}

// trial is what was found when a table was last made as a trial.
type trial struct {
	reason string
	at     time.Time
}

// trialAge is how long it is not tried again whether tables can be made, after they could not.
const trialAge = time.Minute

// CanMaterialize is clickhouse.Client.CanMaterialize, which is asked until tables can be made, and at most once a minute.
func (w *Warehouse) CanMaterialize(ctx context.Context) (reason string, err error) {
	if last := w.trial.Load(); last != nil && (last.reason == "" || time.Since(last.at) < trialAge) {
		return last.reason, nil
	}
	found, err, _ := w.trials.Do("", func() (any, error) {
		reason, err := w.client.CanMaterialize(context.WithoutCancel(ctx)) // others wait for it too
		if err == nil {
			w.trial.Store(&trial{reason, time.Now()})
		}
		return reason, err
	})
	reason, _ = found.(string)
	return reason, err
}

// LastTrial is what CanMaterialize last found; empty before that.
func (w *Warehouse) LastTrial() (reason string) {
	if last := w.trial.Load(); last != nil {
		return last.reason
	}
	return ""
}
