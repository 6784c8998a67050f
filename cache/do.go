package cache

import (
	"context"
	"fmt"
	"time"
)

// Mode determines when a stored result may be used.
type Mode uint8

const (
	// Use serves a fresh result, serves a stale one while it is refreshed in the background, and
	// computes a missing one.
	Use Mode = iota
	// NoStale serves a fresh result and computes any other; a stale one is served only in an outage.
	NoStale
	// Recompute always computes the result; a stored one is served only in an outage. The computation
	// begins after the call: if one is already running, the call waits for it to end, and all calls
	// that arrived in the meantime share the next one. So a key is never computed twice at the same
	// time, and any number of calls cost at most two computations.
	Recompute
)

// Policy determines which results a call accepts.
type Policy struct {
	// The age up to which a result is fresh.
	Fresh time.Duration
	// When a stored result may be used. Default: Use.
	Mode Mode
	// The time of the call. Default: the current time.
	Now time.Time
	// Reports whether an entry stays fresh at any age. Default: none does.
	Lasting func(*Entry) bool
	// How long a result that the call computes is kept for Peek, and for calls with a larger Fresh. Default: as long as it
	// may be served under this policy.
	Keep time.Duration
	// The call's result may get refs, so it is kept for Config.Hold after it may last be served.
	Refs bool
	// No client waits for the call: see Awaited.
	Background bool
}

// fresh reports whether an entry is fresh under the policy.
func (p *Policy) fresh(e *Entry) bool {
	return e.age(p.Now) < p.Fresh || p.Lasting != nil && p.Lasting(e)
}

// Status is the origin of an answer.
type Status uint8

// The origins of answers.
const (
	Hit        Status = iota + 1 // stored and fresh
	Miss                         // computed by this call: nothing usable was stored
	Stale                        // stored, no longer fresh; a refresh is under way or was tried recently
	StaleError                   // stored; computing a new one failed because of an outage
	Coalesced                    // computed by another call or a refresh that was in progress
	Refreshed                    // computed by this call because it asked for it (Recompute)
	Renewed                      // stored, no longer fresh; this call found that a computation would give the same (Renew)
	Pinned                       // stored, no longer fresh; looked up by a ref (Snapshot)
	Fetched                      // stored by another server, and fresh; this call got it from there (Entry.Fetched)

	// LastStatus is the last origin.
	LastStatus = Fetched
)

// String returns the status in lower case, for logs and metric labels.
func (s Status) String() string {
	switch s {
	case Hit:
		return "hit"
	case Miss:
		return "miss"
	case Stale:
		return "stale"
	case StaleError:
		return "stale-error"
	case Coalesced:
		return "coalesced"
	case Refreshed:
		return "refreshed"
	case Renewed:
		return "renewed"
	case Pinned:
		return "pinned"
	case Fetched:
		return "fetched"
	}
	return fmt.Sprintf("status %d", uint8(s))
}

// Cached reports whether the answer had been computed before the call.
func (s Status) Cached() bool {
	return s == Hit || s == Stale || s == StaleError || s == Renewed || s == Pinned || s == Fetched
}

// Answer is an entry and where it comes from.
type Answer struct {
	Entry  *Entry
	Status Status
	// The age of the entry.
	Age time.Duration
	// How long the entry stays fresh under the call's policy; zero if it is stale.
	FreshFor time.Duration
	// Why no new result could be computed. Nil unless the status is StaleError.
	Failure error
}

// Load computes a result. It may keep running after the call that passed it has returned, for other
// callers or for the cache, so it must own everything it refers to. Its context has the values of that
// call's context. The context is canceled when no caller waits any longer, when a background refresh takes
// too long, and when the cache is closed; the load must return soon after.
type Load func(context.Context) (*Entry, error)

// Get returns the stored result if it is fresh: the part of Do that needs no Load. A miss is not counted,
// because Do follows.
func (c *Cache) Get(key Key, p Policy) (Answer, bool) {
	if p.Mode == Recompute {
		return Answer{}, false
	}
	p.setNow()
	if rec := c.lookup(key); rec != nil && p.fresh(rec.entry) {
		c.stats.hit()
		return p.answer(rec.entry, Hit), true
	}
	return Answer{}, false
}

// Peek returns the stored result at any age, with status Hit or Stale. A result that a call of Do has returned counts as
// stored. Peek starts no computation and counts nothing, because Do may follow; it ignores the policy's mode.
func (c *Cache) Peek(key Key, p Policy) (Answer, bool) {
	p.setNow()
	entry := c.stored(key)
	if entry == nil {
		return Answer{}, false
	}
	if p.fresh(entry) {
		return p.answer(entry, Hit), true
	}
	return p.answer(entry, Stale), true
}

// stored returns the entry in the store or on its way there, or nil.
func (c *Cache) stored(key Key) *Entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.flights[key]; f != nil && f.settled && f.entry != nil {
		return f.entry
	}
	if rec := c.lookup(key); rec != nil {
		return rec.entry
	}
	return nil
}

// Do returns the result of a key under a policy: the stored one, or one that load computes. Calls for the
// same key share a computation, which is canceled when no caller waits for it any longer.
//
// The error is that of load, the cause of ctx, ErrClosed, or a *panics.Error if load panicked or exited its goroutine. Errors are
// never stored. If load's error is an outage and a result no older than the fresh and stale time together
// is stored, Do returns that result with status StaleError.
func (c *Cache) Do(ctx context.Context, key Key, p Policy, load Load) (Answer, error) {
	p.setNow()
	if rec := c.lookup(key); rec != nil && p.Mode != Recompute {
		if p.fresh(rec.entry) {
			c.stats.hit()
			return p.answer(rec.entry, Hit), nil
		}
		if p.Mode == Use && rec.entry.age(p.Now) < p.Fresh+c.stale {
			c.refresh(ctx, rec, p, load)
			c.stats.stale.Add(1)
			return p.answer(rec.entry, Stale), nil
		}
	}
	return c.compute(ctx, key, p, load)
}

// compute returns the result of a computation.
func (c *Cache) compute(ctx context.Context, key Key, p Policy, load Load) (Answer, error) {
	if ctx.Err() != nil {
		return Answer{}, fmt.Errorf("computing a result: %w", context.Cause(ctx))
	}
	arrived := time.Now()
	f, shared, err := c.join(ctx, key, p, load)
	if err != nil {
		return Answer{}, err
	}
	if f.hit != nil {
		c.stats.hit()
		return p.answer(f.hit, Hit), nil
	}
	status := Miss
	switch {
	case shared:
		status = Coalesced
		c.stats.coalesced.Add(1)
	case p.Mode == Recompute:
		status = Refreshed
		c.stats.recomputed.Add(1)
	default:
		c.stats.misses.Add(1)
	}
	select {
	case <-f.done:
	case <-ctx.Done():
		c.leave(f.flight)
		return Answer{}, fmt.Errorf("waiting for a result: %w", context.Cause(ctx))
	}
	p.Now = p.Now.Add(time.Since(arrived))
	if f.err == nil {
		if status == Miss && f.entry.Renewed {
			status = Renewed
		}
		if status == Miss && f.entry.Fetched {
			status = Fetched
		}
		return p.answer(f.entry, status), nil
	}
	if c.isOutage(f.err) {
		if entry := c.fallback(key, p); entry != nil {
			c.stats.staleErrors.Add(1)
			answer := p.answer(entry, StaleError)
			answer.Failure = f.err
			return answer, nil
		}
	}
	return Answer{}, f.err
}

// fallback returns the stored entry that may replace a failed computation, or nil.
func (c *Cache) fallback(key Key, p Policy) *Entry {
	if rec := c.lookup(key); rec != nil && rec.entry.age(p.Now) < p.Fresh+c.stale {
		return rec.entry
	}
	return nil
}

func (p *Policy) setNow() {
	if p.Now.IsZero() {
		p.Now = time.Now()
	}
}

func (p *Policy) answer(e *Entry, s Status) Answer {
	age := e.age(p.Now)
	left := p.Fresh - age
	if left <= 0 && s == Hit {
		left = p.Fresh // see Lasting
	}
	return Answer{Entry: e, Status: s, Age: age, FreshFor: max(0, left)}
}
