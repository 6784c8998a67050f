// Package background runs the work of a server that nobody waits for, until it is closed. A panic there is logged and ends nothing else.
package background

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/module/rescue"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Worker does work in the background. Its methods are safe for concurrent use.
type Worker struct {
	// Holder is the name under which it takes locks of the registry.
	Holder string

	registry *registry.Registry
	log      *zap.Logger
	open     context.Context // ends with Close
	end      context.CancelFunc

	mu     sync.Mutex
	closed bool
	done   sync.WaitGroup
}

// New returns a worker that has nothing to do.
func New(reg *registry.Registry, log *zap.Logger) *Worker {
	w := &Worker{Holder: uuid.NewString(), registry: reg, log: log}
	w.open, w.end = context.WithCancel(context.Background())
	return w
}

// Context returns a context that lasts until the worker is closed.
func (w *Worker) Context() context.Context { return w.open }

// Close ends the worker's context, and waits until all work has ended.
func (w *Worker) Close() error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.end()
	w.done.Wait()
	return nil
}

// Go begins work that Close waits for. It reports false if the worker is closed.
func (w *Worker) Go(do func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.done.Go(func() { w.try(do) })
	}
	return !w.closed
}

// try calls do. It logs a panic with some fields.
func (w *Worker) try(do func(), fields ...zap.Field) {
	_ = rescue.Do(w.log, func() error { do(); return nil }, fields...)
}

// Every calls do once per interval. Calls do not overlap.
func (w *Worker) Every(interval time.Duration, do func()) {
	w.Go(func() { w.repeat(interval, nil, do) })
}

// Look calls do at once, and then again when an interval has passed or the bell has rung; nil for no bell. Calls do not overlap.
func (w *Worker) Look(interval time.Duration, bell Bell, do func()) {
	w.Go(func() {
		w.try(do)
		w.repeat(interval, bell, do)
	})
}

func (w *Worker) repeat(interval time.Duration, bell Bell, do func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-w.open.Done():
			return
		case <-bell:
		case <-tick.C:
		}
		w.try(do)
	}
}

// Lock waits for a lock of the registry, and then refreshes the registry: whoever had the lock before may have done the work.
func (w *Worker) Lock(ctx context.Context, name string) (release func(), err error) {
	_, release, err = w.registry.Lock(ctx, name, w.Holder)
	return w.refreshed(ctx, release, err)
}

// lockPatience is how long the registry has to say whether a lock is free, and to be refreshed: whoever asks may hold a place that queries wait for.
const lockPatience = 5 * time.Second

// TryLock is like Lock, except that it does not wait for others: the error is [registry.ErrHeld] if the lock is held.
func (w *Worker) TryLock(ctx context.Context, name string) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	_, release, err = w.registry.TryLock(ctx, name, w.Holder)
	return w.refreshed(ctx, release, err)
}

// refreshed refreshes the registry if a lock was taken, and gives the lock back if it can't.
func (w *Worker) refreshed(ctx context.Context, release func(), err error) (func(), error) {
	if err != nil {
		return nil, err
	}
	if err := w.registry.Refresh(ctx); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// Elsewhere waits for a while because another server has the lock of some work: until the work is no longer wanted, or it is time to try the lock again. The
// error is that the worker is closed.
func (w *Worker) Elsewhere(wanted func() bool) error {
	ctx, cancel := context.WithTimeout(w.open, elsewhere)
	defer cancel()
	Watch(ctx, wanted, cancel)
	return context.Cause(w.open)
}

// elsewhere is how long Elsewhere waits at most.
const elsewhere = time.Second

// watchEvery is how often Watch looks.
const watchEvery = 200 * time.Millisecond

// Watch calls end once work is no longer wanted. It returns then, or when ctx ends.
func Watch(ctx context.Context, wanted func() bool, end func()) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !wanted() {
			end()
			return
		}
	}
}

// Bell tells a worker that there may be work.
type Bell chan struct{}

// NewBell returns a bell.
func NewBell() Bell { return make(Bell, 1) }

// Ring rings the bell. It returns at once; a busy worker notices it when it is done.
func (b Bell) Ring() {
	select {
	case b <- struct{}{}:
	default: // it has rung already
	}
}
