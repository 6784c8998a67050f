package cache

import (
	"context"
	"fmt"
	"time"
)

// Mode says when a stored result may be used.
type Mode uint8

const (
	// Use serves a fresh result, serves a stale one while it is refreshed in the background, and
	// computes a missing one.
	Use Mode = iota
	// NoStale serves a fresh result and computes any other; a stale one is served only in an outage.
	NoStale
	// Recompute computes the result whatever is stored; what is stored is served only in an outage.
	// The answer comes from a computation that began after the call: one that already runs is not
	// joined but waited for, and all calls that arrived meanwhile share the next one. So a key is
	// never computed twice at the same time, and any number of calls cost at most two computations.
	Recompute
)

// Policy says what one call accepts.
type Policy struct {
	// How old a result may be to count as fresh.
	Fresh time.Duration
	// When a stored result may be used. Default: Use.
	Mode Mode
	// The moment of the call. Default: the time by the clock.
	Now time.Time
	// Tells the entries that stay fresh however old they are. Default: none does.
	Lasting func(*Entry) bool
	// How long a result that the call computes is kept for calls of Peek, and for those with a longer window. Default: as
	// long as it may be served under this policy.
	Keep time.Duration
	// Refs to a result that the call computes may be given out, so that it is kept for Config.Hold after it may last be served.
	Refs bool
	// Nobody waits for the call itself: see Awaited. Default: somebody does.
	Background bool
}

// fresh tells whether an entry is fresh under the policy.
func (p *Policy) fresh(e *Entry) bool {
	return e.age(p.Now) < p.Fresh || p.Lasting != nil && p.Lasting(e)
}

// Status says where an answer comes from.
type Status uint8

// Where an answer comes from.
const (
	Hit        Status = iota + 1 // stored and fresh
	Miss                         // computed by this call: nothing usable was stored
	Stale                        // stored, no longer fresh; a refresh has been seen to
	StaleError                   // stored; computing a new one failed because of an outage
	Coalesced                    // computed by another call or a refresh that was under way
	Refreshed                    // computed by this call because it asked for it (Recompute)
	Pinned                       // stored, no longer fresh; asked for by a ref (Snapshot)
)

// String is the status in lower case, fit for a log or a metric's label.
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
	case Pinned:
		return "pinned"
	}
	return fmt.Sprintf("status %d", uint8(s))
}

// Cached tells whether the answer had been computed before the call.
func (s Status) Cached() bool { return s == Hit || s == Stale || s == StaleError || s == Pinned }

// Answer is an entry and how it was come by.
type Answer struct {
	Entry  *Entry
	Status Status
	// How old the entry is.
	Age time.Duration
	// How long the entry will still be fresh under the call's policy; zero when it is stale.
	FreshFor time.Duration
}

// Load computes a result. It may run on after the call that gave it has returned, for the sake of other
// callers or of the cache, so it must own everything it refers to. Its context has the values of that
// call's context; it ends when nobody waits any more, when a background refresh takes too long, and
// when the cache is closed, and the load has to return soon after.
type Load func(context.Context) (*Entry, error)

// Get gives the stored result if it is fresh: the part of Do that needs no Load. Nothing is counted when
// there is none, since Do follows.
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

// Peek gives the stored result however old it is, with status Hit or Stale. A result that a call of Do has returned counts
// as stored. It begins nothing and counts nothing, since Do may follow; the policy's mode does not matter.
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

// stored is the entry in the store, or on its way there; nil when there is none.
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

// Do gives the result of a key under a policy: the stored one, or one that load computes. Calls for the
// same key share a computation; one that nobody waits for any more is cancelled.
//
// The error is load's, or the cause of ctx's end, or ErrClosed; a *PanicError stands for a load that
// panicked. Errors are never stored. When load's error is an outage and a result no older than the fresh
// and stale time together is stored, that is the answer, with status StaleError.
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

// compute answers from a computation.
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
		return p.answer(f.entry, status), nil
	}
	if c.isOutage(f.err) {
		if entry := c.fallback(key, p); entry != nil {
			c.stats.staleErrors.Add(1)
			return p.answer(entry, StaleError), nil
		}
	}
	return Answer{}, f.err
}

// fallback is the stored entry that may stand in for a computation that failed, or nil.
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
		left = p.Fresh // it lasts
	}
	return Answer{Entry: e, Status: s, Age: age, FreshFor: max(0, left)}
}
