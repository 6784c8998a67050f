package materialize

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/materialize"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/background"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/rescue"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// fillInTurn fills the table of a version, if that is still due in its turn. If another server fills it, fillInTurn waits for that.
func (f *Filler) fillInTurn(n name) {
	for f.fillHere(n) {
		f.setElsewhere(n, true)
		err := f.worker.Elsewhere(func() bool { return true })
		f.setElsewhere(n, false)
		if err != nil || !f.isDue(n) {
			return
		}
	}
}

// isDue reports whether the table of a version is to be filled now.
func (f *Filler) isDue(n name) bool {
	snap := f.Registry.Snapshot()
	m, ok := find(snap, n)
	return ok && f.due(snap, m, time.Now())
}

// setElsewhere records whether a fill waits for another server.
func (f *Filler) setElsewhere(n name, elsewhere bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.filling[n] = !elsewhere
}

// fillHere fills the table of a version, if that is due. It reports true if another server does that. The lock comes after the place, so that a server has few
// locks, however many tables wait.
func (f *Filler) fillHere(n name) (elsewhere bool) {
	place, err := f.enter(f.open, n.project)
	if err != nil {
		f.postponed(n, err)
		return false
	}
	defer place.Leave()
	release, err := f.worker.TryLock(f.open, lockOf(n))
	switch {
	case errors.Is(err, registry.ErrHeld):
		return true
	case err != nil:
		f.postponed(n, err)
		return false
	}
	defer release()
	if f.isDue(n) {
		f.fill(n, place)
	}
	return false
}

// enter waits for a place, for as long as ctx is valid.
func (f *Filler) enter(ctx context.Context, project int64) (*admission.Place, error) {
	return f.Places.Enter(ctx, admission.Request{Project: project, Uncounted: true, Class: &fills})
}

// lockOf returns the name of the lock that is held while a version's table is filled.
func lockOf(n name) string { return fmt.Sprintf("table-%d-%s-%d", n.project, n.endpoint, n.version) }

// find returns a materialized version.
func find(snap *registry.Snapshot, n name) (registry.Materialized, bool) {
	for _, m := range snap.Materialized(n.project) {
		if nameOf(m) == n {
			return m, true
		}
	}
	return registry.Materialized{}, false
}

// fill creates a new table and makes runs read it.
func (f *Filler) fill(n name, place *admission.Place) {
	began := time.Now()
	table, err := f.Registry.BeginFill(f.open, n.project, n.endpoint, n.version, began)
	if errors.Is(err, registry.ErrNotFound) {
		return // it is no longer materialized
	}
	if err != nil {
		f.postponed(n, err)
		return
	}
	f.metrics.running.Inc()
	defer f.metrics.running.Dec()
	r := &run{Filler: f, name: n, fill: table.Pending, place: place, began: began}
	defer func() { r.place.Leave() }() // it may be another one by then
	ctx, cancel := context.WithCancelCause(f.open)
	defer cancel(nil)
	go func() { // if it panics, the work goes on, and the registry decides at its end
		_ = rescue.Do(f.Logger, func() error { r.watch(ctx, cancel); return nil }, r.fields()...)
	}()
	err = rescue.Do(f.Logger, func() error { return r.settle(ctx) }, r.fields()...)
	switch {
	case err == nil:
		f.pauses.End(n)
		return
	case f.open.Err() != nil:
		return // the next fill gives up this table
	}
	if !errors.Is(err, registry.ErrInDoubt) { // runs may read it; if not, it is dropped later with the old ones
		r.drop()
	}
	switch {
	case errors.Is(err, errSuperseded), errors.Is(context.Cause(ctx), errSuperseded):
		f.metrics.fills.WithLabelValues(superseded).Inc()
	case execution.MayPass(err):
		f.postponed(n, err)
	default:
		r.fail(err)
	}
}

// postponed puts off a fill that could not be tried or was ended by an outage. The version still waits for it.
func (f *Filler) postponed(n name, err error) {
	if f.open.Err() != nil {
		return
	}
	f.pauses.Failed(n, time.Now())
	f.metrics.fills.WithLabelValues(postponed).Inc()
	f.Logger.Warn("the table of a materialized endpoint is filled later", append(n.fields(), clickhouse.Logged(err))...)
}

func (n name) fields() []zap.Field {
	return []zap.Field{zap.Int64("project", n.project), zap.String("endpoint_id", n.endpoint), zap.Int("version", n.version)}
}

// run is one fill.
type run struct {
	*Filler
	name

	fill  int64
	table clickhouse.MaterializedTable
	place *admission.Place
	began time.Time
}

// errSuperseded reports that a fill is no longer wanted: the version was changed or switched off, or its endpoint was deleted.
var errSuperseded = errors.New("the fill is no longer wanted")

// watch ends a fill that is no longer wanted.
func (r *run) watch(ctx context.Context, cancel context.CancelCauseFunc) {
	background.Watch(ctx, func() bool {
		m, ok := find(r.Registry.Snapshot(), r.name)
		return ok && m.Table.Pending == r.fill
	}, func() { cancel(errSuperseded) })
}

// settle creates the table and makes runs read it.
func (r *run) settle(ctx context.Context) error {
	snap := r.Registry.Snapshot()
	m, ok := find(snap, r.name)
	if !ok {
		return errSuperseded
	}
	plan, err := r.plan(ctx, snap, m)
	if err != nil {
		return err
	}
	if r.table, err = execution.TableOf(m.Endpoint, m.Version, r.fill); err != nil {
		return err
	}
	rows, err := r.Shards.Of(r.project).Materialize(ctx, r.place, clickhouse.Materialization{
		Query: execution.QueryOf(plan.Fill, r.project, r.comment(m)),
		Table: r.table, Order: plan.Keys,
	})
	if err != nil {
		return err
	}
	took := time.Since(r.began)
	// Once the table exists, it is not given up because the version is changed at this moment: the registry decides.
	swapped, err := r.Registry.SwapFill(context.WithoutCancel(ctx), r.project, r.endpoint, r.version, r.fill,
		registry.Table{AsOf: r.began, Took: took, Rows: rows, Of: plan.Mark})
	switch {
	case err != nil:
		return &execution.OutageError{Err: err}
	case !swapped:
		return errSuperseded
	}
	r.metrics.fills.WithLabelValues(filled).Inc()
	r.metrics.seconds.Observe(took.Seconds())
	r.Logger.Info("the table of a materialized endpoint was filled",
		append(r.fields(), zap.String("endpoint", m.Name), zap.Int64("rows", rows), zap.Duration("took", took))...)
	return nil
}

// plan plans the table for this moment. Cohorts that the query reads are computed first if they never were.
func (r *run) plan(ctx context.Context, snap *registry.Snapshot, m registry.Materialized) (*materialize.Plan, error) {
	of, err := subject(m)
	if err != nil {
		return nil, err
	}
	plan, err := r.Compiler.PlanTable(ctx, snap, execution.Uncounted(r.project), of, r.began)
	if err != nil || len(plan.Fill.Reads.Cohorts) == 0 || r.Cohorts == nil {
		return plan, err
	}
	later, err := r.computeCohorts(ctx, snap, plan.Fill.Reads.Cohorts)
	if err != nil || later == nil {
		return plan, err
	}
	return r.Compiler.PlanTable(ctx, later, execution.Uncounted(r.project), of, r.began)
}

// computeCohorts calls [execution.Cohorts.Used]. A calculation needs a place of the project, and there may be only one, so the fill leaves its own when
// it has to wait.
func (r *run) computeCohorts(ctx context.Context, snap *registry.Snapshot, cohorts []int64) (*registry.Snapshot, error) {
	waits := slices.ContainsFunc(cohorts, func(id int64) bool {
		c := snap.Cohort(r.project, id)
		return c != nil && !c.Static && c.Version == 0
	})
	if !waits {
		return r.Cohorts.Used(ctx, r.project, cohorts)
	}
	r.place.Leave()
	later, err := r.Cohorts.Used(ctx, r.project, cohorts)
	if err != nil {
		return nil, err
	}
	place, err := r.enter(ctx, r.project)
	if err != nil {
		return nil, err
	}
	r.place = place
	return later, nil
}

// known returns the plan of a version's table, for another moment.
func (f *Filler) known(snap *registry.Snapshot, m registry.Materialized, now time.Time) (*materialize.Plan, error) {
	of, err := subject(m)
	if err != nil {
		return nil, err
	}
	return f.Compiler.KnownTable(f.open, snap, execution.Uncounted(m.Project), m.Version.ID, of, now)
}

// subject returns a version in the form for planning its table.
func subject(m registry.Materialized) (execution.Subject, error) {
	node, err := compiler.Parse(m.Query)
	if err != nil {
		return execution.Subject{}, err
	}
	return execution.Subject{
		Project: m.Project, Endpoint: m.Name, Version: m.Number, Node: node, Buckets: m.Table.Buckets, Optional: m.OptionalBreakdowns,
	}, nil
}

// comment tells an operator what the query is for.
func (r *run) comment(m registry.Materialized) string {
	return execution.Comment(r.project, map[string]any{"endpoint": m.Name, "version": r.version, "fill": r.fill})
}

// fail records why the table can't be filled.
func (r *run) fail(err error) {
	message := messageOf(err)
	r.metrics.fills.WithLabelValues(failed).Inc()
	r.Logger.Warn("the table of a materialized endpoint could not be filled", append(r.fields(), zap.String("message", message), clickhouse.Logged(err))...)
	if _, err := r.Registry.FailFill(r.open, r.project, r.endpoint, r.version, r.fill, message, time.Now()); err != nil {
		r.postponed(r.name, err)
	}
}

// messageOf returns the reason why a table can't be filled, in words that the endpoint's author may see.
func messageOf(err error) string {
	if reason, ok := execution.Reason(err); ok {
		return reason
	}
	if refused, ok := errors.AsType[*materialize.Refusal](err); ok {
		return refused.Reason
	}
	return "The fill failed."
}

// drop drops a table that no run will read. If ClickHouse is unavailable, the table is dropped later with the old ones.
func (r *run) drop() {
	if r.table.Fill == 0 {
		return
	}
	if err := r.Shards.Of(r.table.Project).DropMaterialized(r.open, r.place, r.table); err != nil && r.open.Err() == nil {
		r.Logger.Debug("an unused table is not dropped yet", append(r.fields(), clickhouse.Logged(err))...)
	}
}
