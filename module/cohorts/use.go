package cohorts

import (
	"context"
	"errors"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// The ages at which members are recomputed.
const (
	usedAge      = 24 * time.Hour // when a query reads them
	scheduledAge = time.Hour      // while something uses them
)

// After each failure, a cohort waits longer before it is retried without a request, and in the end is not retried at all.
const (
	errorWait = 30 * time.Minute
	maxErrors = 20
)

// due reports whether a cohort may be tried again after its errors.
func (c *Calculator) due(known *registry.Cohort, now time.Time) bool {
	switch {
	case known.Errors == 0:
		return true
	case known.Errors > maxErrors:
		return false
	}
	failed := c.failed.Past(name{known.Project, known.ID}, known.LastErrorAt, now)
	return !now.Before(failed.Add(errorWait << known.Errors))
}

// Used implements execution.Cohorts. It waits for a cohort that was never computed. A cohort whose members are older than a day is recomputed in the
// background.
func (c *Calculator) Used(ctx context.Context, project int64, cohorts []int64) (*registry.Snapshot, error) {
	snap, now := c.Registry.Snapshot(), time.Now()
	waited := false
	for _, id := range cohorts {
		known := snap.Cohort(project, id)
		if known == nil || known.Static {
			continue
		}
		n := name{project, id}
		c.mu.Lock()
		c.used[n] = now
		c.mu.Unlock()
		switch {
		case known.Version == 0:
			if err := c.wait(ctx, n); err != nil {
				return nil, err
			}
			waited = true
		case !known.Calculating() && c.age(known, now) > usedAge && c.due(known, now):
			c.worker.Go(func() { c.ask(n) })
		}
	}
	if !waited {
		return nil, nil
	}
	return c.Registry.Snapshot(), nil
}

// ask makes a cohort wait for a calculation, and begins it.
func (c *Calculator) ask(n name) {
	ctx, cancel := context.WithTimeout(c.open, time.Minute)
	defer cancel()
	if _, err := c.Registry.AwaitCohort(ctx, n.project, n.cohort); err == nil {
		c.bell.Ring()
	}
}

// wait waits until a cohort has members that queries can read. The error is a *diag.Error if it can't be computed.
func (c *Calculator) wait(ctx context.Context, n name) error {
	for {
		known := c.Registry.Snapshot().Cohort(n.project, n.cohort)
		switch {
		case known == nil || known.Version != 0 || known.Static:
			return nil
		case known.Calculating():
		case !c.due(known, time.Now()):
			return diag.New(diag.QueryError, diag.Span{}, "%s", notComputed(known))
		default:
			if _, err := c.Registry.AwaitCohort(ctx, n.project, n.cohort); err != nil && !errors.Is(err, registry.ErrNotFound) {
				return err
			}
		}
		f := c.begin(n)
		if f == nil {
			return execution.ErrStopped
		}
		f.await.Do(func() { close(f.awaited) })
		select {
		case <-f.ended:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if f.err != nil {
			return f.err
		}
	}
}

var _ execution.Cohorts = (*Calculator)(nil)
