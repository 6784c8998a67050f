package cohorts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler/cohort"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/rescue"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// computeInTurn computes a cohort that waits for it, after the cohorts that this one refers to. If another server computes it, computeInTurn waits for that.
func (c *Calculator) computeInTurn(n name, one *calculation) error {
	if err := c.computeReferenced(n, one); err != nil {
		return c.postponed(n, err)
	}
	for c.waits(n) {
		err := c.computeHere(n, one)
		if !errors.Is(err, registry.ErrHeld) {
			return err
		}
		c.setElsewhere(one, true)
		err = c.worker.Elsewhere(func() bool { return c.waits(n) })
		c.setElsewhere(one, false)
		if err != nil {
			return err
		}
	}
	return nil
}

// waits reports whether a cohort waits for a calculation.
func (c *Calculator) waits(n name) bool {
	known := c.Registry.Snapshot().Cohort(n.project, n.cohort)
	return known != nil && known.Calculating()
}

// setElsewhere records whether a calculation waits for another server.
func (c *Calculator) setElsewhere(one *calculation, elsewhere bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one.elsewhere = elsewhere
}

// computeHere computes a cohort that waits for it. The error is [registry.ErrHeld] if another server does that. The lock comes after the place, so that a
// server has no more locks than places, however many cohorts wait.
func (c *Calculator) computeHere(n name, one *calculation) error {
	place, err := c.Places.Enter(c.open, admission.Request{Project: n.project, Awaited: one.awaited, Uncounted: true, Class: &calculations})
	if err != nil {
		return c.postponed(n, err)
	}
	defer place.Leave()
	release, err := c.worker.TryLock(c.open, lockOf(n))
	switch {
	case errors.Is(err, registry.ErrHeld):
		return registry.ErrHeld
	case err != nil:
		return c.postponed(n, err)
	}
	defer release()
	if !c.waits(n) {
		return nil
	}
	return c.compute(n, place)
}

// lockOf returns the name of the lock that is held while a cohort is computed.
func lockOf(n name) string { return fmt.Sprintf("cohort-%d-%d", n.project, n.cohort) }

// maxReferencedAge is how old the members of a cohort may be when another cohort that refers to it is computed.
const maxReferencedAge = time.Minute

// computeReferenced computes the cohorts that a cohort refers to, unless they were just computed.
func (c *Calculator) computeReferenced(n name, one *calculation) error {
	snap := c.Registry.Snapshot()
	known := snap.Cohort(n.project, n.cohort)
	if known == nil || known.Static {
		return nil
	}
	d, err := cohort.Read(known.Filters, known.Groups)
	if err != nil {
		return nil //nolint:nilerr // the calculation reports it
	}
	for _, id := range cohort.Cohorts(d) {
		asked := snap.Cohort(n.project, id)
		if asked == nil || !asked.Calculating() && (asked.Static || time.Since(asked.LastCalculation) < maxReferencedAge) {
			continue
		}
		if !asked.Calculating() {
			if _, err := c.Registry.AwaitCohort(c.open, n.project, id); err != nil && !errors.Is(err, registry.ErrNotFound) {
				return err
			}
		}
		if err := c.waitForReferenced(name{n.project, id}, one); err != nil {
			return err
		}
	}
	return nil
}

// waitForReferenced waits for the calculation of another cohort, unless that waits for one.
func (c *Calculator) waitForReferenced(n name, one *calculation) error {
	other := c.begin(n)
	if other == nil {
		return execution.ErrStopped
	}
	if !c.depend(one, other) {
		return nil
	}
	defer c.depend(one, nil)
	<-other.ended // it also ends when the calculator is closed
	return other.err
}

// depend records that a calculation waits for another, and reports whether it may: not if the other waits for it.
func (c *Calculator) depend(one, other *calculation) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at := other; at != nil; at = at.below {
		if at == one {
			return false
		}
	}
	one.below = other
	return true
}

// compute computes a version of a cohort and makes queries read it.
func (c *Calculator) compute(n name, place *admission.Place) error {
	known, err := c.Registry.BeginCohort(c.open, n.project, n.cohort)
	if errors.Is(err, registry.ErrNotFound) {
		return nil // it was deleted
	}
	if err != nil {
		return c.postponed(n, err)
	}
	c.metrics.running.Inc()
	defer c.metrics.running.Dec()
	r := &run{Calculator: c, name: n, version: known.PendingVersion, place: place, known: known, began: time.Now()}
	ctx, cancel := context.WithCancelCause(c.open)
	defer cancel(nil)
	go func() { // if it panics, the work goes on, and the registry decides at its end
		_ = rescue.Do(c.Logger, func() error { r.watch(ctx, cancel); return nil }, r.fields()...)
	}()
	err = rescue.Do(c.Logger, func() error { return r.settle(ctx) }, r.fields()...)
	switch {
	case err == nil:
		c.metrics.seconds.Observe(time.Since(r.began).Seconds())
		return nil
	case c.open.Err() != nil:
		return err
	}
	if !errors.Is(err, registry.ErrInDoubt) { // queries may read it; if not, it is deleted later with the old versions
		r.drop()
	}
	switch {
	case errors.Is(err, errSuperseded), errors.Is(context.Cause(ctx), errSuperseded) && !errors.Is(err, registry.ErrInDoubt):
		c.metrics.calculations.WithLabelValues(superseded).Inc()
		return nil
	case execution.MayPass(err):
		return c.postponed(n, err)
	}
	return r.fail(err)
}

// postponed puts off a calculation that could not be tried or was ended by an outage. The cohort still waits for it.
func (c *Calculator) postponed(n name, err error) error {
	if c.open.Err() != nil {
		return err
	}
	c.pauses.Failed(n, time.Now())
	c.metrics.calculations.WithLabelValues(postponed).Inc()
	c.Logger.Warn("the calculation of a cohort is tried again later", append(n.fields(), clickhouse.Logged(err))...)
	return err
}
