package module

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// limiter bounds the work that runs on ClickHouse: queries at once for each project, and a rate of queries for each key and for
// endpoints. Cached answers never come here. It survives reloads that leave the limits alone.
type limiter struct {
	concurrency int64
	rate        Rate          // of a key
	wait        time.Duration // the longest that a query waits for a free place while its caller waits for it

	projects  sync.Map // project id → *gate
	keys      sync.Map // key id → *allowance
	endpoints sync.Map // endpoint id → *allowance
}

// gate lets a number of a project's queries run, and a bounded number wait.
type gate struct {
	places           *semaphore.Weighted
	running, waiting atomic.Int64
}

// enter counts a query that has a place, and returns how to give the place back.
func (g *gate) enter() (release func()) {
	g.running.Add(1)
	return func() {
		g.running.Add(-1)
		g.places.Release(1)
	}
}

// each gives the queries of each project that run and wait.
func (l *limiter) each(yield func(project, running, waiting int64)) {
	l.projects.Range(func(key, value any) bool {
		project, _ := key.(int64)
		g, _ := value.(*gate)
		yield(project, g.running.Load(), g.waiting.Load())
		return true
	})
}

// queueFactor is how many queries may wait for each that may run.
const queueFactor = 8

func newLimiter(concurrency int, r Rate) *limiter {
	return &limiter{concurrency: int64(concurrency), rate: r, wait: 30 * time.Second}
}

// most is the most queries of a project that run or wait.
func (l *limiter) most() int { return int(l.concurrency) * (1 + queueFactor) }

// gate is the project's.
func (l *limiter) gate(project int64) *gate {
	found, ok := l.projects.Load(project)
	if !ok {
		found, _ = l.projects.LoadOrStore(project, &gate{places: semaphore.NewWeighted(l.concurrency)})
	}
	g, _ := found.(*gate)
	return g
}

// ofKey is what a key may run.
func (l *limiter) ofKey(id string) *allowance {
	found, ok := l.keys.Load(id)
	if !ok {
		found, _ = l.keys.LoadOrStore(id, newAllowance(l.rate))
	}
	a, _ := found.(*allowance)
	return a
}

// ofEndpoint is what runs of an endpoint may cause. When its rate is another one than before, it begins anew.
func (l *limiter) ofEndpoint(id string, r Rate) *allowance {
	for {
		found, ok := l.endpoints.Load(id)
		if known, _ := found.(*allowance); ok && known.rate == r {
			return known
		}
		made := newAllowance(r)
		if ok {
			ok = l.endpoints.CompareAndSwap(id, found, made)
		} else {
			_, loaded := l.endpoints.LoadOrStore(id, made)
			ok = !loaded
		}
		if ok {
			return made
		}
	}
}

// forget drops what is known of an endpoint that was deleted.
func (l *limiter) forget(endpoint string) { l.endpoints.Delete(endpoint) }

// ready tells whether a query would be let in if it came now, at once or after waiting. It takes neither a place nor an
// allowance: a background run takes these when its turn comes, but its caller is to hear at once that it will not. The error is
// the contract's 429.
func (l *limiter) ready(project int64, qs quotas, now time.Time) error {
	if err := qs.check(now); err != nil {
		return err
	}
	if l.gate(project).waiting.Load() >= l.concurrency*queueFactor {
		return l.tooMany(project)
	}
	return nil
}

// admit takes a place for one query, waiting for it if need be, and returns how to give it back. A query that gets none is not
// counted. The error is the contract's 429, or that of ctx.
func (l *limiter) admit(ctx context.Context, project int64, qs quotas, now time.Time, wait time.Duration) (release func(), err error) {
	if err := qs.take(now); err != nil {
		return nil, err
	}
	if release, err = l.enter(ctx, project, wait); err != nil {
		qs.giveBack()
	}
	return release, err
}

// enter takes a place of the project's, at once or in its queue.
func (l *limiter) enter(ctx context.Context, project int64, wait time.Duration) (release func(), err error) {
	g := l.gate(project)
	if g.places.TryAcquire(1) {
		return g.enter(), nil
	}
	defer g.waiting.Add(-1)
	if g.waiting.Add(1) > l.concurrency*queueFactor {
		return nil, l.tooMany(project)
	}
	waitCtx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if err := g.places.Acquire(waitCtx, 1); err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, context.Cause(ctx)
		}
		return nil, l.tooMany(project)
	}
	return g.enter(), nil
}

func (l *limiter) tooMany(project int64) error {
	return throttled(fmt.Sprintf("Exceeded maximum concurrency limit: %d for key: project_%d and task: query. "+
		"Too many concurrent requests. Please try again later.", l.concurrency, project), time.Second)
}

// rateError is a spent allowance. Who shares a flight with the owner of the allowance does not share the refusal, unless it is
// theirs too.
type rateError struct {
	owner string // whose: the id of an endpoint, a key or a token
	limit limitName
	err   *apiError
}

func (e *rateError) Error() string { return e.err.Error() }
func (e *rateError) Unwrap() error { return e.err }

// refusedBy names the limit that an error is the refusal of; refused is false for other errors.
func refusedBy(err error) (limit limitName, refused bool) {
	if spent := new(rateError); errors.As(err, &spent) {
		return spent.limit, true
	}
	var e *apiError
	return limitConcurrency, errors.As(err, &e) && e.throttled()
}
