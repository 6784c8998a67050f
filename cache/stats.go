package cache

import (
	"math/rand/v2"
	"sync/atomic"
)

// Stats has a cache's counters since its creation, and its size.
type Stats struct {
	Hits            uint64 // calls that got a fresh stored result
	Stale           uint64 // calls that got a stale result while it is refreshed
	StaleErrors     uint64 // calls that got a stored result because of an outage
	Misses          uint64 // calls that computed a result because none was usable, or renewed one
	Recomputed      uint64 // calls that computed a result because they asked for it
	Coalesced       uint64 // calls that waited for the computation of another call or a refresh
	Refreshes       uint64 // background refreshes started
	RefreshFailures uint64 // background refreshes that failed
	Panics          uint64 // loads that panicked

	PageHits   uint64 // pages served from the store
	PageMisses uint64 // pages rendered

	TooLarge uint64 // results and pages not stored because they exceed an eighth of the budget
	Dropped  uint64 // writes that Ristretto dropped under load
	Rejected uint64 // writes that Ristretto rejected in favor of values used more often
	Evicted  uint64 // results and pages evicted or expired

	Bytes    int64 // memory taken by results and pages
	MaxBytes int64 // the budget
}

// Stats returns the current counters. They are read one after the other, not atomically.
func (c *Cache) Stats() Stats {
	s := Stats{
		Stale:           c.stats.stale.Load(),
		StaleErrors:     c.stats.staleErrors.Load(),
		Misses:          c.stats.misses.Load(),
		Recomputed:      c.stats.recomputed.Load(),
		Coalesced:       c.stats.coalesced.Load(),
		Refreshes:       c.stats.refreshes.Load(),
		RefreshFailures: c.stats.refreshFailures.Load(),
		Panics:          c.stats.panics.Load(),
		PageMisses:      c.stats.pageMisses.Load(),
		TooLarge:        c.stats.tooLarge.Load(),
		Dropped:         c.stats.dropped.Load(),
		Rejected:        c.stats.rejected.Load(),
		Evicted:         c.stats.evicted.Load(),
		Bytes:           c.store.used(),
		MaxBytes:        c.maxBytes,
	}
	for i := range c.stats.onHit {
		s.Hits += c.stats.onHit[i].hits.Load()
		s.PageHits += c.stats.onHit[i].pageHits.Load()
	}
	return s
}

// stripes is the number of cells of a counter on the hit path.
const stripes = 16

// stripe returns a random cell, because neither the core nor the goroutine is known.
func stripe() uint32 {
	return rand.Uint32() % stripes //nolint:gosec // spreads load; not a secret
}

type counters struct {
	stale, staleErrors, misses, recomputed, coalesced, refreshes, refreshFailures, panics atomic.Uint64
	pageMisses, tooLarge, dropped, rejected, evicted                                      atomic.Uint64

	onHit [stripes]struct {
		hits, pageHits atomic.Uint64
		_              [48]byte // a cache line each
	}
}

func (c *counters) hit()     { c.onHit[stripe()].hits.Add(1) }
func (c *counters) pageHit() { c.onHit[stripe()].pageHits.Add(1) }
