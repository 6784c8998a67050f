package warehouse

import (
	"context"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// CompareVersions is clickhouse.Client.CompareVersions.
func (w *Warehouse) CompareVersions(ctx context.Context, at *admission.Place, project, cohort int64, version, other uint64) (count int64, same bool, err error) {
	if err := check(at, project); err != nil {
		return 0, false, err
	}
	return w.client.CompareVersions(ctx, project, cohort, version, other)
}

// LostMembers is clickhouse.Client.LostMembers.
func (w *Warehouse) LostMembers(ctx context.Context, at *admission.Place, project, cohort int64, version uint64, since time.Time) (int64, error) {
	if err := check(at, project); err != nil {
		return 0, err
	}
	return w.client.LostMembers(ctx, project, cohort, version, since)
}

// DropVersion is clickhouse.Client.DropVersion.
func (w *Warehouse) DropVersion(ctx context.Context, at *admission.Place, project, cohort int64, version uint64) error {
	if err := check(at, project); err != nil {
		return err
	}
	_, err := w.removing(project, physical.ComputedMembers, func() (bool, error) { return w.client.DropVersion(ctx, project, cohort, version) })
	return err
}

// DropOtherVersions is clickhouse.Client.DropOtherVersions.
func (w *Warehouse) DropOtherVersions(ctx context.Context, at *admission.Place, project, cohort int64, version uint64) error {
	if err := check(at, project); err != nil {
		return err
	}
	_, err := w.removing(project, physical.ComputedMembers, func() (bool, error) { return w.client.DropOtherVersions(ctx, project, cohort, version) })
	return err
}
