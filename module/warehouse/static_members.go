package warehouse

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// AddMembers is clickhouse.Client.AddMembers.
func (w *Warehouse) AddMembers(ctx context.Context, at *admission.Place, project, cohort int64, by clickhouse.Naming, people []string) error {
	if err := check(at, project); err != nil {
		return err
	}
	return w.changing(project, physical.StaticMembers, statement, func() error { return w.client.AddMembers(ctx, project, cohort, by, people) })
}

// CountPeople is clickhouse.Client.CountPeople.
func (w *Warehouse) CountPeople(ctx context.Context, at *admission.Place, project int64, by clickhouse.Naming, people []string) (int64, error) {
	if err := check(at, project); err != nil {
		return 0, err
	}
	return w.client.CountPeople(ctx, project, by, people)
}

// CountMembers is clickhouse.Client.CountMembers.
func (w *Warehouse) CountMembers(ctx context.Context, at *admission.Place, project, cohort int64) (int64, error) {
	if err := check(at, project); err != nil {
		return 0, err
	}
	return w.client.CountMembers(ctx, project, cohort)
}

// RemoveMember is clickhouse.Client.RemoveMember.
func (w *Warehouse) RemoveMember(ctx context.Context, at *admission.Place, project, cohort int64, person uuid.UUID) (bool, error) {
	if err := check(at, project); err != nil {
		return false, err
	}
	return w.removing(project, physical.StaticMembers, func() (bool, error) { return w.client.RemoveMember(ctx, project, cohort, person) })
}

// RemoveMembers is clickhouse.Client.RemoveMembers.
func (w *Warehouse) RemoveMembers(ctx context.Context, at *admission.Place, project, cohort int64) error {
	if err := check(at, project); err != nil {
		return err
	}
	_, err := w.removing(project, physical.StaticMembers, func() (bool, error) { return w.client.RemoveMembers(ctx, project, cohort) })
	return err
}

// DropLostMembers is clickhouse.Client.DropLostMembers. It first waits for the batch that is being written: that may have asked for the cohorts of a person
// before the members were added, and merge the person after this has looked for merges.
func (w *Warehouse) DropLostMembers(ctx context.Context, at *admission.Place, project, cohort int64, since time.Time) (bool, error) {
	if err := check(at, project); err != nil {
		return false, err
	}
	if err := w.ingest.AwaitBatch(ctx, ingest.Options{Project: project, Turn: w.turnOf(project)}); err != nil {
		return false, err
	}
	return w.removing(project, physical.StaticMembers, func() (bool, error) { return w.client.DropLostMembers(ctx, project, cohort, since) })
}
