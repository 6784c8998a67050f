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
	wait        time.Duration // the longest that a query waits for a free place

	projects sync.Map // project id → *gate
	keys     sync.Map // key id → *rate.Limiter
}

// gate lets a number of a project's queries run, and a bounded number wait.
type gate struct {
	places  *semaphore.Weighted
	waiting atomic.Int64
}

// queueFactor is how many queries may wait for each that may run.
const queueFactor = 8

func newLimiter(concurrency int, allowance Rate) *limiter {
	return &limiter{concurrency: int64(concurrency), allowance: allowance, wait: 30 * time.Second}
}

// admit takes a place for one query of key, and returns how to give it back. The error is the contract's 429.
func (l *limiter) admit(ctx context.Context, key *registry.Key, now time.Time) (release func(), err error) {
	if err := l.spend(key, now); err != nil {
		return nil, err
	}
	found, ok := l.projects.Load(key.Project)
	if !ok {
		found, _ = l.projects.LoadOrStore(key.Project, &gate{places: semaphore.NewWeighted(l.concurrency)})
	}
	g, _ := found.(*gate)
	if g.places.TryAcquire(1) {
		return func() { g.places.Release(1) }, nil
	}
	defer g.waiting.Add(-1)
	if g.waiting.Add(1) > l.concurrency*queueFactor {
		return nil, l.tooMany(key)
	}
	waitCtx, cancel := context.WithTimeout(ctx, l.wait)
	defer cancel()
	if err := g.places.Acquire(waitCtx, 1); err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, ctx.Err()
		}
		return nil, l.tooMany(key)
	}
	return func() { g.places.Release(1) }, nil
}

func (l *limiter) tooMany(key *registry.Key) error {
	return throttled(fmt.Sprintf("Exceeded maximum concurrency limit: %d for key: project_%d and task: query. "+
		"Too many concurrent requests. Please try again later.", l.concurrency, key.Project), time.Second)
}

// spend takes one query from the key's allowance.
func (l *limiter) spend(key *registry.Key, now time.Time) error {
	found, ok := l.keys.Load(key.ID)
	if !ok {
		each := rate.Limit(float64(l.allowance.Queries) / l.allowance.Per.Seconds())
		found, _ = l.keys.LoadOrStore(key.ID, rate.NewLimiter(each, l.allowance.Queries))
	}
	bucket, _ := found.(*rate.Limiter)
	taken := bucket.ReserveN(now, 1)
	delay := taken.DelayFrom(now)
	if delay == 0 {
		return nil
	}
	taken.CancelAt(now)
	seconds := int(math.Ceil(delay.Seconds()))
	return &rateError{key: key.ID, err: throttled(
		fmt.Sprintf("Request was throttled. Expected available in %d seconds.", seconds), time.Duration(seconds)*time.Second)}
}

// rateError is a spent allowance. Who shares a flight with the owner of the key does not share the refusal.
type rateError struct {
	key string
	err *apiError
}

func (e *rateError) Error() string { return e.err.Error() }
func (e *rateError) Unwrap() error { return e.err }
