package cohorts

import (
	"context"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Members counts the members of static cohorts. It is a warehouse.Warehouse.
type Members interface {
	CountMembers(ctx context.Context, at *admission.Place, project, cohort int64) (int64, error)
}

// CountStatic records that the members of a static cohort have changed, with their number. Others may change them at the same time and record their
// own number, so it counts again after recording, until the number is still right. The errors are those of [registry.Registry.SetCohortMembers] and
// of ClickHouse.
func CountStatic(ctx context.Context, reg *registry.Registry, in Members, at *admission.Place, project, id int64) (*registry.Cohort, error) {
	count, err := in.CountMembers(ctx, at, project, id)
	if err != nil {
		return nil, err
	}
	for {
		recorded, err := reg.SetCohortMembers(ctx, project, id, count, time.Now())
		if err != nil {
			return nil, err
		}
		now, err := in.CountMembers(ctx, at, project, id)
		if err != nil || now == count {
			return recorded, err
		}
		count = now
	}
}

// maxStaticFills bounds how often the people of a static cohort are added. From the second time on nearly all are members already, and a merge replaces
// those itself.
const maxStaticFills = 3

// settleStatic adds the people listed by a static cohort's query to the cohort, once. Existing members stay. If people are merged into others or deleted
// while they are added, it takes them out, and adds those whom the query lists now.
func (r *run) settleStatic(ctx context.Context) error {
	wh := r.Shards.Of(r.project)
	fill, err := r.Compiler.CompileListed(ctx, r.Registry.Snapshot(), r.known, r.began)
	if err != nil {
		return err
	}
	fill.Comment = r.comment()
	for range maxStaticFills {
		if err := wh.Fill(ctx, r.place, fill); err != nil {
			return err
		}
		lost, err := wh.DropLostMembers(ctx, r.place, r.project, r.cohort, r.began.Add(-clockMargin))
		if err != nil {
			return err
		}
		if !lost {
			break
		}
	}
	count, err := wh.CountMembers(ctx, r.place, r.project, r.cohort)
	if err != nil {
		return err
	}
	settled, err := r.Registry.SwapCohort(context.WithoutCancel(ctx), r.project, r.cohort, r.version, count, time.Now())
	switch {
	case err != nil:
		return &execution.OutageError{Err: err}
	case !settled:
		return errSuperseded
	}
	r.note(count, false)
	return nil
}
