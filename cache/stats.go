package cache

import (
	"math/rand/v2"
	"sync/atomic"
)

// Stats is what a cache has done since it was made, and what it holds.
type Stats struct {
	Hits            uint64 // calls answered with a fresh stored result
	Stale           uint64 // calls answered with a stale result that is being refreshed
	StaleErrors     uint64 // calls answered with a stored result because of an outage
	Misses          uint64 // calls that computed a result because none was usable
	Recomputed      uint64 // calls that computed a result because they asked for it
	Coalesced       uint64 // calls that waited for a computation that another call or a refresh began
	Refreshes       uint64 // background refreshes begun
	RefreshFailures uint64 // background refreshes that failed
	Panics          uint64 // loads that panicked

	PageHits   uint64 // pages served as they were stored
	PageMisses uint64 // pages rendered

	TooLarge uint64 // results and pages not stored because they exceed an eighth of the budget
	Dropped  uint64 // writes that Ristretto dropped under load
	Rejected uint64 // writes that Ristretto refused in favour of what is asked for more often
	Evicted  uint64 // results and pages pushed out or expired

	Bytes    int64 // memory taken by results and pages
	MaxBytes int64 // the budget
}

// Stats gives the counters as they are now. They are read one after the other, not at one instant.
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

// stripes is how many cells a counter of the hit path is spread over.
const stripes = 16

// stripe picks a cell: at random, since neither the core nor the goroutine can be asked for.
func stripe() uint32 {
	return rand.Uint32() % stripes //nolint:gosec // spreads load, keeps no secret
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
