// Package cache keeps query results in memory, computes each missing one once, and returns pages of them.
//
// A result is a snapshot: its rows never change, so all pages of it are consistent. Results and rendered pages
// share one byte budget in Ristretto. This package does not rely on Ristretto for correctness: a hit counts only
// after its whole key has been compared, freshness depends on the entry's own time, and callers that wait for a
// result get it from the computation itself, because Ristretto's writes are asynchronous and may be dropped.
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

// Config configures the size of a Cache and how long it keeps results. MaxBytes is required.
type Config struct {
	// The budget for results, pieces and rendered pages together, in bytes of memory. A value larger than an
	// eighth of it is not kept.
	MaxBytes int64
	// How long a result may still be served after it has stopped being fresh: immediately while it is
	// being refreshed, and instead of an error during an outage. Default: not at all.
	Stale time.Duration
	// The minimum time that an entry with a ref is kept after a newer one has replaced it, and after the last use of the ref. Default: Stale, at
	// least 5m.
	Hold time.Duration
	// The maximum time of a background refresh. Default: 1m.
	RefreshTimeout time.Duration
	// The time to wait after a failed refresh before the next one. Default: 2s.
	RefreshRetry time.Duration
	// The expected number of results and pages when the budget is full. It sizes the table of access
	// frequencies. Default: MaxBytes / 8 KiB, at least 1024.
	ExpectedEntries int64
	// Reports whether a load's error is an outage: the database is down, busy or too slow, and a stale
	// result is better than the error. Default: none is.
	IsOutage func(error) bool
	// Reports whether a load's error means that the query was not admitted. A stale result whose
	// refresh was refused stays in use. Default: none does.
	IsRefusal func(error) bool
	// Called with errors that no caller gets, those of background refreshes, and with every
	// *panics.Error. Default: errors are only counted.
	Report func(Key, error)
}

// ErrClosed is returned by calls on a cache that is closed or being closed.
var ErrClosed = errors.New("the cache is closed")

// Cache is a bounded store of results and of the pages rendered from them. All methods are safe for
// concurrent use, also while Close runs.
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

	// generations has the number of purges of each purged project. The map is replaced, never
	// modified.
	generations atomic.Pointer[map[int64]uint64]

	// pieceGenerations is the same for pieces, which Outdate leaves alone.
	pieceGenerations atomic.Pointer[map[int64]uint64]

	// pieceErasures says, by project, which pieces must not be used. The map is replaced, never modified.
	pieceErasures atomic.Pointer[map[int64]pieceErasure]

	// outdated has the time, by project, when its results were last removed. The map is replaced, never modified.
	outdated atomic.Pointer[map[int64]time.Time]

	// erased has the time, by project, before which no result may have been computed that is served: see Erase. The map is replaced, never modified.
	erased atomic.Pointer[map[int64]time.Time]

	base   context.Context // ends when the cache is closed
	cancel context.CancelCauseFunc
	loads  sync.WaitGroup

	mu      sync.Mutex // guards flights and closed; no hit takes it
	flights map[Key]*flight
	closed  bool

	places sync.Mutex // held while records move between places; mu is never taken under it, and no hit takes it

	pieces sync.Mutex // held while stored pieces change; it is taken under no other lock

	renderMu   sync.Mutex
	renderings map[pageID]*rendering
}

// New returns an empty cache. The caller must Close it.
func New(cfg Config) (*Cache, error) {
	if cfg.MaxBytes <= 0 {
		return nil, fmt.Errorf("cache size must be positive, got %d bytes", cfg.MaxBytes)
	}
	if cfg.Stale < 0 {
		return nil, fmt.Errorf("stale time must not be negative, got %s", cfg.Stale)
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

// Close cancels running computations, waits until they have returned, and frees the memory. Waiting and
// later calls get ErrClosed.
func (c *Cache) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel(ErrClosed)
	c.loads.Wait()
	c.store.close()
}

// Purge removes all results and pieces of a project. Callers that wait for a running computation still get its result, but
// it is not kept. Refs stay valid.
func (c *Cache) Purge(project int64) {
	c.pieces.Lock()
	purged(&c.pieceGenerations, projects{project: {}})
	c.store.dropPieces(project)
	c.pieces.Unlock()
	c.Outdate(project)
}

// projects is a set of projects.
type projects map[int64]struct{}

func (p projects) has(project int64) bool {
	_, ok := p[project]
	return ok
}

// purged counts a purge of projects.
func purged(generations *atomic.Pointer[map[int64]uint64], of projects) {
	changeAll(generations, of, func(_ int64, n uint64) uint64 { return n + 1 })
}

// changeAll replaces a map, which others read, by one with other values for some projects.
func changeAll[V any](shared *atomic.Pointer[map[int64]V], of projects, change func(project int64, old V) V) {
	next := make(map[int64]V)
	if old := shared.Load(); old != nil {
		maps.Copy(next, *old)
	}
	for project := range of {
		next[project] = change(project, next[project])
	}
	shared.Store(&next)
}

// Outdate removes all results of a project like Purge, because its data changed. Its pieces stay: the versions of the data tell which of them are
// still valid.
func (c *Cache) Outdate(project int64) { c.outdate(projects{project: {}}) }

func (c *Cache) outdate(of projects) {
	c.mu.Lock()
	purged(&c.generations, of)
	now := time.Now()
	changeAll(&c.outdated, of, func(int64, time.Time) time.Time { return now })
	var running []*flight
	for key, f := range c.flights {
		if of.has(key.project) {
			running = append(running, f)
		}
	}
	for _, f := range running {
		if f.settled && f.entry != nil && f.entry.referred.Load() { // it has refs, and the store may never get it
			c.secure(f.key, f.entry)
		}
		c.retire(f)
	}
	c.mu.Unlock()
	c.places.Lock()
	defer c.places.Unlock()
	records := c.store.records(of)
	c.displace(func() { c.store.drop(records) }, records...)
}

// OutdatedAt returns when the results of a project were last removed, by Purge, Outdate or Erase; zero for never. Results computed before then may
// lack current rows.
func (c *Cache) OutdatedAt(project int64) time.Time {
	if times := c.outdated.Load(); times != nil {
		return (*times)[project]
	}
	return time.Time{}
}

// generation returns the number of purges of a project. Results from before the last purge are not served.
func (c *Cache) generation(project int64) uint64 {
	if generations := c.generations.Load(); generations != nil {
		return (*generations)[project]
	}
	return 0
}
