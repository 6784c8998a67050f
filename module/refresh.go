package module

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
)

// refreshMode says when the answer of a query or an insight is computed, and whether the caller waits for it: contract
// section 1.3.
type refreshMode string

const (
	refreshBlocking          refreshMode = "blocking"
	refreshAsync             refreshMode = "async"
	refreshLazyAsync         refreshMode = "lazy_async"
	refreshAsyncExceptOnMiss refreshMode = "async_except_on_cache_miss"
	refreshForceBlocking     refreshMode = "force_blocking"
	refreshForceAsync        refreshMode = "force_async"
	refreshForceCache        refreshMode = "force_cache"
)

var refreshModes = []refreshMode{
	refreshBlocking, refreshAsync, refreshLazyAsync, refreshAsyncExceptOnMiss, refreshForceBlocking, refreshForceAsync, refreshForceCache,
}

// parseRefresh reads the name of a mode.
func parseRefresh(name string) (refreshMode, bool) {
	mode := refreshMode(name)
	return mode, slices.Contains(refreshModes, mode)
}

// cacheMode is what the mode asks of the cache when it computes.
func (m refreshMode) cacheMode() cache.Mode {
	if m == refreshForceBlocking || m == refreshForceAsync {
		return cache.Recompute
	}
	return cache.NoStale
}

// thresholds are the ages of an answer at which it is stale, and at which lazy_async computes it anew.
type thresholds struct{ fresh, lazy time.Duration }

// thresholdsOf are those of a node: for insights by their interval, for other kinds as the operator says (cache ttl), the
// lazy one in the contract's proportion to it.
func (rt *runtime) thresholdsOf(node query.Node) thresholds {
	if _, ok := node.(query.Insight); !ok {
		return thresholds{rt.queryFresh, 2 * rt.queryFresh}
	}
	const day = 24 * time.Hour
	switch query.IntervalOf(node) {
	case query.Minute:
		return thresholds{5 * time.Minute, 15 * time.Minute}
	case query.Hour:
		return thresholds{time.Hour, 2 * time.Hour}
	case query.Week:
		return thresholds{day, day}
	case query.Month:
		return thresholds{2 * day, 2 * day}
	case query.Day:
	}
	return thresholds{6 * time.Hour, 12 * time.Hour}
}

// keepPast is how long the answer of a range that is over is kept: it does not grow stale.
const keepPast = 7 * 24 * time.Hour

// setRefresh fixes when a plan of the query route or of an insight is computed.
func (p *plan) setRefresh(mode refreshMode, rt *runtime) {
	ages := rt.thresholdsOf(p.node)
	p.refresh, p.mode, p.fresh, p.lazy = mode, mode.cacheMode(), ages.fresh, ages.lazy
	p.keep, p.lasting = ages.lazy, lasts
	if endsAtDate(p.node) {
		p.keep = keepPast
	}
}

// endsAtDate tells the insights whose range ends at a date, and not at a time that moves with the clock, as the end of the last
// whole bucket does.
func endsAtDate(node query.Node) bool {
	n, ok := node.(query.Insight)
	if !ok || n.Parts().DateRange.ExcludeIncomplete {
		return false
	}
	to := n.Parts().DateRange.To
	return len(to) >= len("2006-01-02") && to[0] >= '0' && to[0] <= '9'
}

// lasts tells the entries whose range was over when they were computed: they are fresh for good.
func lasts(e *cache.Entry) bool {
	done, ok := e.Meta.(*outcome)
	return ok && done.over
}

// isOver tells whether the range of an answer was over when its computation began.
func (p *plan) isOver(answer *insightAnswer, began time.Time) bool {
	return endsAtDate(p.node) && !answer.until.IsZero() && answer.until.Before(began.Add(-overMargin))
}

// overMargin is how long before its computation a range has to end for its answer to stay fresh.
const overMargin = 10 * time.Second

// isPast tells whether the range of an insight, as it is now, was over when an entry was computed. That of a range that ends
// at a date is known without asking: see lasts.
func (rq *request) isPast(p *plan, e *cache.Entry) bool {
	n, ok := p.node.(query.Insight)
	if !ok || n.Parts().DateRange.To == "" {
		return false
	}
	db, err := rq.rt.database(rq.r.Context(), rq.snap.Schema(rq.project.ID))
	if err != nil {
		return false
	}
	now, err := insight.Resolve(&insight.World{Database: db, Now: rq.start}, &query.Common{DateRange: n.Parts().DateRange}, query.IntervalOf(n))
	return err == nil && now.To.Before(e.ComputedAt.Add(-overMargin))
}

// found is what a refresh mode gives.
type found struct {
	// The answer to show; its Entry is nil when there is none yet.
	answer cache.Answer
	// The background run for this answer that is in progress; nil when there is none.
	run *run
}

// refresh answers a plan in its mode: from the cache, by computing while the caller waits, or by a background run.
func (rq *request) refresh(p *plan, from origin) (found, error) {
	rq.text = p.text
	policy := p.policy(rq.start)
	if got, ok := rq.rt.cache.Get(p.key, policy); ok {
		p.meter(rq.rt.metrics).answers[got.Status].Inc()
		return found{got, rq.rt.runs.inProgress(p.key)}, nil
	}
	switch p.refresh {
	case refreshForceBlocking:
		return rq.await(p)
	case refreshForceAsync:
		return rq.begin(p, from, cache.Answer{})
	case refreshBlocking, refreshAsync, refreshLazyAsync, refreshAsyncExceptOnMiss, refreshForceCache:
	}
	stored, ok := rq.rt.cache.Peek(p.key, policy)
	if ok && stored.Status == cache.Stale && rq.isPast(p, stored.Entry) {
		stored.Status = cache.Hit
	}
	if p.refresh == refreshBlocking && stored.Status != cache.Hit {
		return rq.await(p)
	}
	if ok {
		p.meter(rq.rt.metrics).answers[stored.Status].Inc()
	}
	switch {
	case p.refresh == refreshForceCache, stored.Status == cache.Hit, ok && p.refresh == refreshLazyAsync && stored.Age < p.lazy:
		return found{stored, rq.rt.runs.inProgress(p.key)}, nil
	case !ok && p.refresh == refreshAsyncExceptOnMiss:
		return rq.await(p)
	}
	return rq.begin(p, from, stored)
}

// following gives the context of what the caller waits for. When the caller has named the query, it also ends when that is
// cancelled by its name, until done is called.
func (rq *request) following(p *plan) (ctx context.Context, done func()) {
	if p.clientID == "" {
		return rq.r.Context(), func() {}
	}
	return rq.rt.runs.follow(rq.r.Context(), p)
}

// await computes while the caller waits.
func (rq *request) await(p *plan) (found, error) {
	ctx, done := rq.following(p)
	defer done()
	x := rq.execution(p)
	got, err := x.answer(ctx, p.policy(rq.start))
	rq.showQuotas(x, got.Status, err)
	return found{answer: got}, err
}

// begin begins a background run, beside the stored answer if there is one.
func (rq *request) begin(p *plan, from origin, stored cache.Answer) (found, error) {
	x := rq.execution(p)
	if err := rq.rt.ready(x.quotas(), admission.Request{Project: rq.project.ID}, rq.start); err != nil {
		p.refused(rq.rt.metrics, err)
		rq.showQuotas(x, 0, err)
		return found{}, err
	}
	release, ok := rq.rt.retain()
	if !ok {
		return found{}, errStopped
	}
	x.id, x.patience = cmp.Or(p.clientID, newRunID()), runPatience
	r, err := rq.rt.runs.begin(job{
		id: x.id, plan: p, from: from, most: rq.rt.mostRuns(), picked: &x.picked, release: release,
		answer: func(ctx context.Context) (cache.Answer, error) {
			policy := p.policy(time.Now())
			policy.Background = true
			got, err := x.answer(ctx, policy)
			if ctx.Err() == nil {
				x.logFailure(err)
			}
			return got, err
		},
	})
	if errors.Is(err, errTooManyRuns) {
		err = rq.rt.tooMany(rq.project.ID)
		p.refused(rq.rt.metrics, err)
		rq.showQuotas(x, 0, err)
	}
	return found{stored, r}, err
}

// logFailure notes the error of a background run that its caller did not make.
func (x *execution) logFailure(err error) {
	if err == nil {
		return
	}
	if failure := toAPIError(err, x.plan.text); failure.Status >= http.StatusInternalServerError {
		x.rt.logger.Error("a background run failed", zap.Int("status", failure.Status), zap.String("code", failure.Code),
			zap.Stringer("key", x.plan.key), logged(failure.Cause))
	}
}

// runPatience is how long a background run waits for its turn.
const runPatience = 10 * time.Minute
