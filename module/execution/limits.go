package execution

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Limiter bounds how many queries run in a period: a rate of queries for each key and for endpoints. Cached answers never come here.
// It survives reloads that leave the rate alone. How many run at once is the scheduler's: see admission.
type Limiter struct {
	rate registry.Rate // of a key
	Wait time.Duration // the longest that a query waits for a free place while its caller waits for it
	// Sharing has all nodes share the rates; nil: they are those of this process. Set it before the Limiter is used.
	Sharing *Sharing

	keys      sync.Map // key id → *allowance
	endpoints sync.Map // endpoint id → *allowance
}

// QueueFactor is how many queries may wait for each that may run.
const QueueFactor = 8

// NewLimiter bounds what each key may run.
func NewLimiter(r registry.Rate) *Limiter { return &Limiter{rate: r, Wait: 30 * time.Second} }

// OfKey is what a key may run.
func (l *Limiter) OfKey(id string) *allowance {
	found, ok := l.keys.Load(id)
	if !ok {
		found, _ = l.keys.LoadOrStore(id, l.Sharing.allowance("key-"+id, l.rate))
	}
	a, _ := found.(*allowance)
	return a
}

// OfEndpoint is what runs of an endpoint may cause. When its rate is another one than before, it begins anew.
func (l *Limiter) OfEndpoint(id string, r registry.Rate) *allowance {
	for {
		found, ok := l.endpoints.Load(id)
		if known, _ := found.(*allowance); ok && known.rate == r {
			return known
		}
		made := l.Sharing.allowance("endpoint-"+id, r)
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

// Forget drops what is known of an endpoint that was deleted.
func (l *Limiter) Forget(endpoint string) { l.endpoints.Delete(endpoint) }

// ready reports whether a query would be let in if it came now, at once or after waiting. It takes neither a place nor an
// allowance: a background run takes these when its turn comes, but its caller is to hear at once that it will not. The error is
// a *LimitError.
func (e *Executor) ready(ctx context.Context, qs Quotas, r admission.Request, now time.Time) error {
	qs.prepare(ctx)
	if err := qs.check(now); err != nil {
		return err
	}
	if !e.Places.HasRoom(r) {
		return e.TooMany(r.Project)
	}
	return nil
}

// admit takes a place for one query, waiting for it if need be; the caller leaves it. A query that gets none is not counted. The error is
// a *LimitError, or that of ctx.
func (e *Executor) admit(ctx context.Context, qs Quotas, r admission.Request, now time.Time) (*admission.Place, error) {
	if err := qs.takeAhead(ctx, now); err != nil {
		return nil, err
	}
	place, err := e.Places.Enter(ctx, r)
	if err == nil {
		return place, nil
	}
	qs.giveBack()
	if errors.Is(err, admission.ErrQueueFull) || errors.Is(err, admission.ErrTooLong) || errors.Is(err, context.DeadlineExceeded) {
		return nil, e.TooMany(r.Project)
	}
	return nil, err
}

// mostRuns is the most background runs of a project that run or wait.
func (e *Executor) mostRuns() int { return e.Places.Limits().Project * (1 + QueueFactor) }

// TooMany is the refusal of a query of a project that runs and queues as many as it may.
func (e *Executor) TooMany(project int64) error {
	return &LimitError{Limit: LimitConcurrency, Wait: time.Second, Detail: fmt.Sprintf("Exceeded maximum concurrency limit: %d for key: project_%d and task: query. "+
		"Too many concurrent requests. Please try again later.", e.Places.Limits().Project, project)}
}

// LimitError is the refusal of a query by a limit. Who shares a computation with the owner of an allowance does not share the refusal,
// unless it is theirs too.
type LimitError struct {
	Limit  LimitName
	Owner  string // whose allowance is spent: the id of an endpoint, a key or a token; empty for what the whole project shares
	Detail string // for people
	Wait   time.Duration
}

// Error returns what the caller is told.
func (r *LimitError) Error() string { return r.Detail }

// refusedBy names the limit that an error is the refusal of; refused is false for other errors.
func refusedBy(err error) (limit LimitName, refused bool) {
	if r, ok := errors.AsType[*LimitError](err); ok {
		return r.Limit, true
	}
	return "", false
}
