package module

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/admission"
)

// limiter bounds how many queries run in a period: a rate of queries for each key and for endpoints. Cached answers never come here.
// It survives reloads that leave the rate alone. How many run at once is the scheduler's: see admission.
type limiter struct {
	rate Rate          // of a key
	wait time.Duration // the longest that a query waits for a free place while its caller waits for it

	keys      sync.Map // key id → *allowance
	endpoints sync.Map // endpoint id → *allowance
}

// queueFactor is how many queries may wait for each that may run.
const queueFactor = 8

func newLimiter(r Rate) *limiter { return &limiter{rate: r, wait: 30 * time.Second} }

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

// ready reports whether a query would be let in if it came now, at once or after waiting. It takes neither a place nor an
// allowance: a background run takes these when its turn comes, but its caller is to hear at once that it will not. The error is
// the contract's 429.
func (rt *runtime) ready(qs quotas, r admission.Request, now time.Time) error {
	if err := qs.check(now); err != nil {
		return err
	}
	if !rt.places.HasRoom(r) {
		return rt.tooMany(r.Project)
	}
	return nil
}

// admit takes a place for one query, waiting for it if need be; the caller leaves it. A query that gets none is not counted. The error is
// the contract's 429, or that of ctx.
func (rt *runtime) admit(ctx context.Context, qs quotas, r admission.Request, now time.Time) (*admission.Place, error) {
	if err := qs.take(now); err != nil {
		return nil, err
	}
	place, err := rt.places.Enter(ctx, r)
	if err == nil {
		return place, nil
	}
	qs.giveBack()
	if errors.Is(err, admission.ErrQueueFull) || errors.Is(err, admission.ErrTooLong) || errors.Is(err, context.DeadlineExceeded) {
		return nil, rt.tooMany(r.Project)
	}
	return nil, err
}

// mostRuns is the most background runs of a project that run or wait.
func (rt *runtime) mostRuns() int { return rt.places.Limits().Project * (1 + queueFactor) }

func (rt *runtime) tooMany(project int64) error {
	return throttled(fmt.Sprintf("Exceeded maximum concurrency limit: %d for key: project_%d and task: query. "+
		"Too many concurrent requests. Please try again later.", rt.places.Limits().Project, project), time.Second)
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
