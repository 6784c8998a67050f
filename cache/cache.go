// Package cache keeps query results in memory, computes each missing one once, and hands out pages of them.
//
// A result is a snapshot: its rows never change, so every page that is cut from it agrees with every
// other. Results and rendered pages share one byte budget, held by Ristretto. What Ristretto is not
// trusted with is done here: a hit is believed only after its whole key has been compared, freshness
// is judged by the entry's own time, and callers that wait for a result get it from the computation
// itself, never through the cache, whose writes are asynchronous and may be dropped.
package cache

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"
)

// Config says how much a Cache keeps and for how long. MaxBytes is required.
type Config struct {
	// The budget for results and rendered pages together, in bytes of memory. A single value larger
	// than an eighth of it is not kept.
	MaxBytes int64
	// How long a result may still be served after it has stopped being fresh: at once while it is
	// being refreshed, and in place of an error while the database is away. Default: not at all.
	Stale time.Duration
	// How long a result that was referred to is kept, at least, after another one has taken its place, and after it was last
	// asked for by its ref. Default: Stale, at least 5m.
	Hold time.Duration
	// The longest a background refresh may take. Default: 1m.
	RefreshTimeout time.Duration
	// How long a stale result is left alone after a refresh of it failed. Default: 2s.
	RefreshRetry time.Duration
	// The number of results and pages expected when the budget is full; it sizes the table of access
	// frequencies. Default: MaxBytes / 8 KiB, at least 1024.
	ExpectedEntries int64
	// Tells the errors of a load that say nothing about the query itself (the database is down, busy,
	// too slow), in place of which a stale result is better. Default: no error is one.
	IsOutage func(error) bool
	// Tells the errors of a load that was not let in, which say nothing about the query either: a stale
	// result whose refresh was refused stays in use. Default: no error is one.
	IsRefusal func(error) bool
	// Called with errors that no caller gets, those of background refreshes, and with every
	// *PanicError. Default: they are only counted.
	Report func(Key, error)
}

// ErrClosed is what a call gets whose cache is, or is being, closed.
var ErrClosed = errors.New("the cache is closed")

// Cache is a bounded store of results and of the pages rendered from them. All methods may be called
// from many goroutines at once, also while Close runs.
type Cache struct {
	maxBytes       int64
	stale          time.Duration
	hold           time.Duration
	refreshTimeout time.Duration
	refreshRetry   time.Duration
	isOutage       func(error) bool
	isRefusal      func(error) bool
	report         func(Key, error)
	zstd           *zstd.Encoder

	store store
	stats counters

	// generations holds the number of purges of each project that was ever purged. The map is
	// replaced, never changed.
	generations atomic.Pointer[map[int64]uint64]

	base   context.Context // ends when the cache is closed
	cancel context.CancelCauseFunc
	loads  sync.WaitGroup

	mu      sync.Mutex // guards what follows; no hit takes it
	flights map[Key]*flight
	closed  bool

	places sync.Mutex // held while records change places; mu is never taken under it, and no hit takes it

	renderMu   sync.Mutex
	renderings map[pageID]*rendering
}

// New gives an empty cache, which the caller has to Close.
func New(cfg Config) (*Cache, error) {
	if cfg.MaxBytes <= 0 {
		return nil, fmt.Errorf("cache size must be positive, not %d bytes", cfg.MaxBytes)
	}
	if cfg.Stale < 0 {
		return nil, fmt.Errorf("stale time must not be negative, not %s", cfg.Stale)
	}
	c := &Cache{
		maxBytes:       cfg.MaxBytes,
		stale:          cfg.Stale,
		hold:           orDefault(cfg.Hold, max(cfg.Stale, minHold)),
		refreshTimeout: orDefault(cfg.RefreshTimeout, time.Minute),
		refreshRetry:   orDefault(cfg.RefreshRetry, 2*time.Second),
		isOutage:       cfg.IsOutage,
		isRefusal:      cfg.IsRefusal,
		report:         cfg.Report,
		flights:        make(map[Key]*flight),
		renderings:     make(map[pageID]*rendering),
	}
	if c.isOutage == nil {
		c.isOutage = func(error) bool { return false }
	}
	if c.isRefusal == nil {
		c.isRefusal = func(error) bool { return false }
	}
	if c.report == nil {
		c.report = func(Key, error) {}
	}
	var err error
	if c.zstd, err = newZstd(); err != nil {
		return nil, fmt.Errorf("setting up zstd: %w", err)
	}
	if err := c.store.open(cfg.MaxBytes, cfg.ExpectedEntries, &c.stats); err != nil {
		return nil, fmt.Errorf("setting up the cache: %w", err)
	}
	c.base, c.cancel = context.WithCancelCause(context.Background())
	return c, nil
}

// minHold is the shortest default of Config.Hold.
const minHold = 5 * time.Minute

func orDefault(d, byDefault time.Duration) time.Duration {
	if d <= 0 {
		return byDefault
	}
	return d
}

// Close cancels the computations that run, waits until they have returned, and gives the memory back.
// Calls that are waiting, and all later ones, get ErrClosed.
func (c *Cache) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel(ErrClosed)
	c.loads.Wait()
	c.store.close()
}

// Purge makes the cache forget everything that it would answer for a project. Computations that are running
// still answer those who already wait for them, but what they find is not kept. Refs keep leading to what they name.
func (c *Cache) Purge(project int64) {
	c.mu.Lock()
	next := make(map[int64]uint64)
	if old := c.generations.Load(); old != nil {
		maps.Copy(next, *old)
	}
	next[project]++
	c.generations.Store(&next)
	var running []*flight
	for key, f := range c.flights {
		if key.project == project {
			running = append(running, f)
		}
	}
	for _, f := range running {
		if f.settled && f.entry != nil && f.entry.referred.Load() { // refs have led here, and the store may never get it
			c.secure(f.key, f.entry)
		}
		c.retire(f)
	}
	c.mu.Unlock()
	c.places.Lock()
	defer c.places.Unlock()
	records := c.store.records(project)
	c.displace(func() { c.store.drop(records) }, records...)
}

// generation counts the purges of a project; what was computed under an earlier one is not served.
func (c *Cache) generation(project int64) uint64 {
	if generations := c.generations.Load(); generations != nil {
		return (*generations)[project]
	}
	return 0
}
