package cohorts

import (
	"context"
	"time"
)

// settleStatic puts the people that the query of a static cohort lists into it, once. Those who are in it stay.
func (r *run) settleStatic(ctx context.Context) error {
	fill, err := r.Executor.CompileListed(ctx, r.Registry.Snapshot(), r.known, r.began)
	if err != nil {
		return err
	}
	fill.Comment = r.comment()
	if err := r.Executor.Shards.Of(r.project).Fill(ctx, r.place, fill); err != nil {
		return err
	}
	count, err := r.Executor.Shards.Of(r.project).CountMembers(ctx, r.place, r.project, r.cohort)
	if err != nil {
		return err
	}
	settled, err := r.Registry.SwapCohort(context.WithoutCancel(ctx), r.project, r.cohort, r.version, count, time.Now())
	switch {
	case err != nil:
		return &outageError{err}
	case !settled:
		return errSuperseded
	}
	r.note(count, false)
	return nil
}
