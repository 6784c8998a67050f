package module

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// limiter bounds the work that runs on ClickHouse: queries at once for each project, and a rate of queries for each key.
// Cached answers never come here. It survives reloads that leave the limits alone.
type limiter struct {
	concurrency int64
	allowance   Rate
	wait        time.Duration // the longest that a query waits for a free place while its caller waits for it

	projects sync.Map // project id → *gate
	keys     sync.Map // key id → *rate.Limiter
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

func newLimiter(concurrency int, allowance Rate) *limiter {
	return &limiter{concurrency: int64(concurrency), allowance: allowance, wait: 30 * time.Second}
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

// ready tells whether a query of key would be let in if it came now, at once or after waiting. It takes neither a place nor
// an allowance: a background run takes these when its turn comes, but its caller is to hear at once that it will not. The
// error is the contract's 429.
func (l *limiter) ready(key *registry.Key, now time.Time) error {
	if err := l.spend(key, now, false); err != nil {
		return err
	}
	if l.gate(key.Project).waiting.Load() >= l.concurrency*queueFactor {
		return l.tooMany(key)
	}
	return nil
}

// admit takes a place for one query of key, waiting for it if need be, and returns how to give it back. The error is the
// contract's 429.
func (l *limiter) admit(ctx context.Context, key *registry.Key, now time.Time, wait time.Duration) (release func(), err error) {
	if err := l.spend(key, now, true); err != nil {
		return nil, err
	}
	g := l.gate(key.Project)
	if g.places.TryAcquire(1) {
		return g.enter(), nil
	}
	defer g.waiting.Add(-1)
	if g.waiting.Add(1) > l.concurrency*queueFactor {
		return nil, l.tooMany(key)
	}
	waitCtx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if err := g.places.Acquire(waitCtx, 1); err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, ctx.Err()
		}
		return nil, l.tooMany(key)
	}
	return g.enter(), nil
}

func (l *limiter) tooMany(key *registry.Key) error {
	return throttled(fmt.Sprintf("Exceeded maximum concurrency limit: %d for key: project_%d and task: query. "+
		"Too many concurrent requests. Please try again later.", l.concurrency, key.Project), time.Second)
}

// spend takes one query from the key's allowance, or only tells whether there is one.
func (l *limiter) spend(key *registry.Key, now time.Time, take bool) error {
	found, ok := l.keys.Load(key.ID)
	if !ok {
		found, _ = l.keys.LoadOrStore(key.ID, newBucket(l.allowance))
	}
	bucket, _ := found.(*rate.Limiter)
	return spend(bucket, key.ID, now, take)
}

// newBucket is an allowance that is whole.
func newBucket(allowance Rate) *rate.Limiter {
	return rate.NewLimiter(rate.Limit(float64(allowance.Queries)/allowance.Per.Seconds()), allowance.Queries)
}

// spend takes one query from an allowance, or only tells whether there is one. The error names whose it is.
func spend(bucket *rate.Limiter, owner string, now time.Time, take bool) error {
	taken := bucket.ReserveN(now, 1)
	delay := taken.DelayFrom(now)
	if delay > 0 || !take {
		taken.CancelAt(now)
	}
	if delay == 0 {
		return nil
	}
	seconds := int(math.Ceil(delay.Seconds()))
	return &rateError{key: owner, err: throttled(
		fmt.Sprintf("Request was throttled. Expected available in %d seconds.", seconds), time.Duration(seconds)*time.Second)}
}

// rateError is a spent allowance. Who shares a flight with the owner of the key does not share the refusal.
type rateError struct {
	key string // whose: the id of a key or of a token
	err *apiError
}

func (e *rateError) Error() string { return e.err.Error() }
func (e *rateError) Unwrap() error { return e.err }
