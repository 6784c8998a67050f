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

// Limiter bounds how many queries run in a period: it has a rate for each key and for endpoints. Cached answers never get here. It survives reloads
// that do not change the rate. The scheduler bounds how many run at once: see admission.
type Limiter struct {
	rate registry.Rate // of a key
	Wait time.Duration // the longest a query waits for a free place while its caller waits
	// Sharing makes all nodes share the rates; nil: they are this process's own. It must be set before the Limiter is used.
	Sharing *Sharing

	keys      sync.Map // key id → *allowance
	endpoints sync.Map // endpoint id → *allowance
}

// QueueFactor is how many queries may wait for each one that may run.
const QueueFactor = 8

// NewLimiter returns a Limiter with a rate for each key.
func NewLimiter(r registry.Rate) *Limiter { return &Limiter{rate: r, Wait: 30 * time.Second} }

// OfKey returns the allowance of a key.
func (l *Limiter) OfKey(id string) *allowance {
	found, ok := l.keys.Load(id)
	if !ok {
		found, _ = l.keys.LoadOrStore(id, l.Sharing.allowance("key-"+id, l.rate))
	}
	a, _ := found.(*allowance)
	return a
}

// OfEndpoint returns the allowance for what runs of an endpoint cause. It starts afresh when the rate has changed.
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

// Forget drops the allowance of a deleted endpoint.
func (l *Limiter) Forget(endpoint string) { l.endpoints.Delete(endpoint) }

// ready reports whether a query that came now would be admitted, at once or after waiting. It takes neither a place nor an allowance: a background
// run takes these in its turn, but its caller is told at once if there would be none. The error is a *LimitError.
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

// admit takes a place for one query, waiting if need be; the caller leaves it. A query that gets no place is not counted. The error is a *LimitError,
// or that of ctx.
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

// mostRuns returns how many background runs of a project may run or wait.
func (e *Executor) mostRuns() int { return e.Places.Limits().Project * (1 + QueueFactor) }

// TooMany refuses a query of a project whose places and queue are full.
func (e *Executor) TooMany(project int64) error {
	return &LimitError{Limit: LimitConcurrency, Wait: time.Second, Detail: fmt.Sprintf("Exceeded maximum concurrency limit: %d for key: project_%d and task: query. "+
		"Too many concurrent requests. Please try again later.", e.Places.Limits().Project, project)}
}

// LimitError is the refusal of a query by a limit. A caller that shares a computation shares such a refusal only if the spent allowance is also its
// own.
type LimitError struct {
	Limit  LimitName
	Owner  string // whose allowance is spent: the id of an endpoint, a key or a token; empty for what the whole project shares
	Detail string // for people
	Wait   time.Duration
}

// Error returns what the caller is told.
func (e *LimitError) Error() string { return e.Detail }

// refusedBy returns the limit that refused a query; refused is false for other errors.
func refusedBy(err error) (limit LimitName, refused bool) {
	if r, ok := errors.AsType[*LimitError](err); ok {
		return r.Limit, true
	}
	return "", false
}
