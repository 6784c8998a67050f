package cohorts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler/cohort"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/background"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/physical"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// run is the calculation of one version.
type run struct {
	*Calculator
	name

	version uint64
	place   *admission.Place
	known   *registry.Cohort // as it was when the calculation began
	began   time.Time
}

// errSuperseded reports that a calculation is no longer wanted: the cohort was changed or deleted.
var errSuperseded = errors.New("the cohort was changed")

// watch ends a calculation that is no longer wanted.
func (r *run) watch(ctx context.Context, cancel context.CancelCauseFunc) {
	background.Watch(ctx, func() bool {
		now := r.Registry.Snapshot().Cohort(r.project, r.cohort)
		return now != nil && now.PendingVersion == r.version
	}, func() { cancel(errSuperseded) })
}

// settle computes the version, and makes queries read it if its members differ from the previous ones.
func (r *run) settle(ctx context.Context) error {
	if r.known.Static {
		return r.settleStatic(ctx)
	}
	if err := r.fill(ctx); err != nil {
		return err
	}
	wh := r.Shards.Of(r.project)
	count, same, err := wh.CompareVersions(ctx, r.place, r.project, r.cohort, r.version, r.known.Version)
	if err != nil {
		return err
	}
	lost, err := wh.LostMembers(ctx, r.place, r.project, r.cohort, r.version, r.began.Add(-clockMargin))
	if err != nil {
		return err
	}
	same = same && r.known.Version != 0
	settle := r.Registry.SwapCohort
	if same {
		settle = r.Registry.ConfirmCohort
	}
	// Once the version exists, it is not given up because the cohort is changed at this moment: the registry decides.
	settled, err := settle(context.WithoutCancel(ctx), r.project, r.cohort, r.version, count, time.Now())
	switch {
	case err != nil:
		return &execution.OutageError{Err: err}
	case !settled:
		return errSuperseded
	}
	r.note(count, same)
	if lost > 0 {
		r.again()
	}
	if same {
		r.drop()
	}
	return nil
}

// clockMargin is how much ClickHouse's clock may differ.
const clockMargin = time.Minute

// fill writes the members of the version.
func (r *run) fill(ctx context.Context) error {
	d, err := cohort.Read(r.known.Filters, r.known.Groups)
	if err != nil {
		return err
	}
	if d.Root == nil { // nobody
		return nil
	}
	snap := r.Registry.Snapshot()
	if err := checkBelow(snap, r.project, d); err != nil {
		return err
	}
	compiled, err := r.Compiler.CompileCohort(ctx, snap, r.project, d, r.began)
	if err != nil {
		return err
	}
	return r.Shards.Of(r.project).Fill(ctx, r.place, clickhouse.Fill{
		Query: execution.QueryOf(compiled, r.project, r.comment()),
		Table: physical.ComputedMembers, Columns: []string{cohort.PersonID},
		Fixed: []clickhouse.FixedColumn{
			{Name: "cohort_id", Number: uint64(r.cohort)}, //nolint:gosec // they are counted from 1
			{Name: "version", Number: r.version}, {Name: "sign", Number: 1},
		},
	})
}

// checkBelow reports a cohort that this one refers to and that could not be computed yet.
func checkBelow(snap *registry.Snapshot, project int64, d *cohort.Definition) error {
	for _, id := range cohort.Cohorts(d) {
		if asked := snap.Cohort(project, id); asked != nil && !asked.Static && asked.Version == 0 {
			return &failureError{notComputed(asked)}
		}
	}
	return nil
}

func notComputed(c *registry.Cohort) string {
	text := fmt.Sprintf("Cohort %d could not be computed", c.ID)
	if c.LastError != "" {
		text += ": " + c.LastError
	}
	return text
}

// comment tells an operator what the query is for.
func (r *run) comment() string {
	return execution.Comment(r.project, map[string]any{"cohort": r.cohort, "version": r.version})
}

// failureError is the reason why a cohort can't be computed, in words for its author.
type failureError struct{ message string }

// Error returns the reason.
func (f *failureError) Error() string { return f.message }

// fail records why the members can't be computed.
func (r *run) fail(err error) error {
	message := messageOf(err)
	r.metrics.calculations.WithLabelValues(failed).Inc()
	r.Logger.Warn("a cohort could not be computed", append(r.fields(), zap.String("message", message), clickhouse.Logged(err))...)
	if _, err := r.Registry.FailCohort(r.open, r.project, r.cohort, r.version, message, time.Now()); err != nil {
		return r.postponed(r.name, err)
	}
	return nil
}

// messageOf returns the reason why a cohort can't be computed, in words that its author may see.
func messageOf(err error) string {
	if reason, ok := execution.Reason(err); ok {
		return reason
	}
	if known, ok := errors.AsType[*failureError](err); ok {
		return known.message
	}
	return "The calculation failed."
}

func (r *run) fields() []zap.Field {
	return append(r.name.fields(), zap.Uint64("version", r.version), zap.Duration("took", time.Since(r.began)))
}

// note logs and counts a successful calculation.
func (r *run) note(count int64, same bool) {
	r.pauses.End(r.name)
	result := changed
	if same {
		result = unchanged
	}
	r.metrics.calculations.WithLabelValues(result).Inc()
	r.Logger.Info("a cohort was computed", append(r.fields(), zap.Int64("members", count), zap.Bool("changed", !same))...)
}

// drop deletes the members of a version that no query will read. If ClickHouse is unavailable, they are deleted later with the old versions.
func (r *run) drop() {
	if err := r.Shards.Of(r.project).DropVersion(r.open, r.place, r.project, r.cohort, r.version); err != nil && r.open.Err() == nil {
		r.Logger.Debug("members of an unused version are not deleted yet", append(r.fields(), clickhouse.Logged(err))...)
	}
}

// again requests another calculation: some members were merged into other persons while they were written. It does not depend on whether the calculation
// is still wanted: now that the version is settled, follow finds that it is not.
func (r *run) again() {
	if _, err := r.Registry.AwaitCohort(r.open, r.project, r.cohort); err != nil && r.open.Err() == nil {
		r.Logger.Debug("a cohort is not computed again", append(r.fields(), zap.Error(err))...)
	}
}
