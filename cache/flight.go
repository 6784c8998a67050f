package cache

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/caddy-analytics/caddy-analytics/internal/panics"
)

// A flight is one computation of a key and the calls that wait for it.
//
//	waiting ──start──▶ running ──settle──▶ settled ──stored──▶ gone
//	   │                  │
//	   └── no waiters ────┴──▶ gone (a running load is canceled, a refresh continues)
//
// At most one flight of a key is in Cache.flights, running or settled. It stays there until the store
// has applied its result, so that the next call always finds one or the other. A flight that must begin
// after it, because of Recompute, waits in its next field.
type flight struct {
	key        Key
	lifetime   lifetime // how long to keep the result, by the policy of the call that started the flight
	load       Load
	refreshing *record // the stale record that a background refresh replaces; nil for a call's flight
	claimed    int64   // when the refreshing call arrived, in Unix nanoseconds

	ctx     context.Context
	cancel  context.CancelCauseFunc
	awaited chan struct{} // closed once a call waits, background calls aside

	// Guarded by Cache.mu.
	waiters    int
	generation uint64 // of the project when the load began
	started    bool
	settled    bool
	abandoned  bool
	next       *flight

	// Set before done is closed.
	entry *Entry
	err   error
	done  chan struct{}
}

var (
	errNoEntry = errors.New("BUG: the load of a result returned neither an entry nor an error")
	errGoexit  = errors.New("the load of a result exited its goroutine")
)

// joined is the result of join: a flight to wait for, or an entry that has arrived in the meantime.
type joined struct {
	*flight
	hit *Entry
}

// join adds the call to the waiters of a flight that suits its policy, starting one if there is none. shared
// reports whether another call started it.
func (c *Cache) join(ctx context.Context, key Key, p Policy, load Load) (j joined, shared bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return joined{}, false, ErrClosed
	}
	running := c.flights[key]
	switch {
	case running == nil:
		// A flight may have ended, and its result may be stored, since the call's lookup.
		if rec := c.lookup(key); rec != nil && p.Mode != Recompute && p.fresh(rec.entry) {
			return joined{hit: rec.entry}, false, nil
		}
		f := newFlight(ctx, key, c.lifetime(p), load)
		f.join(p)
		c.start(f)
		return joined{flight: f}, false, nil
	case p.Mode != Recompute && !running.settled:
		running.join(p)
		return joined{flight: running}, true, nil
	case p.Mode != Recompute && p.fresh(running.entry):
		return joined{hit: running.entry}, false, nil
	case running.next == nil || running.next.waiters == 0:
		running.next = newFlight(ctx, key, c.lifetime(p), load)
		running.next.join(p)
		return joined{flight: running.next}, false, nil
	default:
		running.next.join(p)
		return joined{flight: running.next}, true, nil
	}
}

// refresh recomputes a stale record in the background, at most once at a time.
func (c *Cache) refresh(ctx context.Context, rec *record, p Policy, load Load) {
	now := p.Now.UnixNano()
	quiet := rec.quietUntil.Load()
	if now < quiet || !rec.quietUntil.CompareAndSwap(quiet, now+int64(c.refreshTimeout)) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flights[rec.key] != nil {
		rec.quietUntil.Store(quiet) // that flight may yet be abandoned: the next call tries again
		return
	}
	if c.closed || c.lookup(rec.key) != rec {
		return
	}
	f := newFlight(ctx, rec.key, c.lifetime(p), load)
	f.refreshing, f.claimed = rec, now
	c.start(f)
	c.stats.refreshes.Add(1)
}

func newFlight(ctx context.Context, key Key, lifetime lifetime, load Load) *flight {
	f := &flight{key: key, lifetime: lifetime, load: load, awaited: make(chan struct{}), done: make(chan struct{})}
	f.ctx, f.cancel = context.WithCancelCause(context.WithValue(context.WithoutCancel(ctx), awaitedKey{}, f.awaited))
	return f
}

// join adds a call to the waiters. The caller holds mu.
func (f *flight) join(p Policy) {
	f.waiters++
	if p.Background {
		return
	}
	select {
	case <-f.awaited:
	default:
		close(f.awaited)
	}
}

type awaitedKey struct{}

// Awaited returns a channel that is closed once a call waits for the load with this context: the call that started it, or any
// that joined it, except background calls. A background refresh has no waiting call at first. The channel is nil for other
// contexts.
func Awaited(ctx context.Context) <-chan struct{} {
	awaited, _ := ctx.Value(awaitedKey{}).(chan struct{})
	return awaited
}

// start runs a flight. The caller holds mu.
func (c *Cache) start(f *flight) {
	if c.closed {
		f.err, f.settled = ErrClosed, true
		f.cancel(ErrClosed)
		close(f.done)
		return
	}
	f.started = true
	f.generation = c.generation(f.key.project)
	c.flights[f.key] = f
	c.loads.Add(1)
	go c.run(f)
}

// run calls the load and settles the flight, even if the load panics.
func (c *Cache) run(f *flight) {
	defer c.loads.Done()
	stop := context.AfterFunc(c.base, func() { f.cancel(ErrClosed) })
	defer stop()
	ctx, began := f.ctx, time.Now()
	if f.refreshing != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.refreshTimeout)
		defer cancel()
	}

	var entry *Entry
	var err error
	returned := false
	defer func() {
		if !returned {
			value := recover()
			if value == nil {
				value = errGoexit
			}
			err = &panics.Error{Value: value, Stack: debug.Stack()}
			c.stats.panics.Add(1)
			c.report(f.key, err)
		}
		c.settle(f, entry, err)
		if f.refreshing != nil && err != nil {
			c.refreshFailed(f, err, ctx.Err() != nil, time.Since(began))
		}
		f.cancel(nil)
	}()
	entry, err = f.load(ctx)
	returned = true
	switch {
	case err == nil && entry == nil:
		err = errNoEntry
	case err != nil && c.base.Err() != nil:
		err = fmt.Errorf("%w: %w", ErrClosed, err)
	}
}

// settle passes the result to the waiters and to the store. If the store has an earlier result, the store comes first, so that
// a call made after the answer does not find the earlier one.
func (c *Cache) settle(f *flight, entry *Entry, err error) {
	c.mu.Lock()
	if f.abandoned { // a newer flight may be running, whose result would be newer
		c.mu.Unlock()
		return
	}
	f.entry, f.err, f.settled = entry, err, true
	if err != nil {
		c.retire(f)
	}
	c.mu.Unlock()
	if err != nil {
		close(f.done)
		return
	}
	replaces := c.lookup(f.key) != nil
	if !replaces {
		close(f.done)
	}
	if f.generation == c.generation(f.key.project) {
		c.keep(f)
	}
	if replaces {
		close(f.done)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if entry.referred.Load() { // it has refs, and the store may not have it
		c.secure(f.key, entry)
	}
	c.retire(f)
}

// refreshFailed handles the error of a refresh. After an outage or a refusal, the stale record stays in use
// for a while. Any other error is the query's own: the record is removed, so that the next call gets the error.
func (c *Cache) refreshFailed(f *flight, err error, expired bool, took time.Duration) {
	if errors.Is(err, ErrClosed) {
		return
	}
	c.stats.refreshFailures.Add(1)
	if _, crash := errors.AsType[*panics.Error](err); !crash { // run has already reported a panic
		c.report(f.key, err)
	}
	if !expired && !c.isOutage(err) && !c.isRefusal(err) {
		c.remove(f.refreshing)
		return
	}
	f.refreshing.quietUntil.Store(f.claimed + int64(took+c.refreshRetry))
}

// leave removes a waiter from a flight, and cancels the flight if it was the last one.
func (c *Cache) leave(f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.waiters--
	if f.waiters > 0 || f.settled || f.refreshing != nil || !f.started {
		return
	}
	f.abandoned = true
	f.cancel(context.Canceled)
	c.retire(f)
}

// retire removes a flight and starts the next one: it has ended, or has no waiters, or began before its
// project was purged, so that only its current waiters get its result. The caller holds mu.
func (c *Cache) retire(f *flight) {
	if c.flights[f.key] != f {
		return
	}
	delete(c.flights, f.key)
	if next := f.next; next != nil && next.waiters > 0 {
		f.next = nil
		c.start(next)
	}
}
