package cache

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/ristretto/v2"
)

// store keeps values under 64-bit hashes in Ristretto. Hashes can collide, so callers of get must compare
// the full key. A value replaces any other with the same hash.
type store struct {
	ristretto *ristretto.Cache[uint64, any] // of *record, *held, *page and *Pieces
	gate      gate
	stats     *counters
	largest   int64 // maximum cost of a value
}

// expectedSize is the size of a value assumed for the default number of expected values.
const expectedSize = 8 << 10

func (s *store) open(maxBytes, expected int64, stats *counters) error {
	if expected <= 0 {
		expected = max(1024, maxBytes/expectedSize)
	}
	s.stats = stats
	s.largest = maxBytes / 8
	var err error
	s.ristretto, err = ristretto.NewCache(&ristretto.Config[uint64, any]{
		NumCounters:        10 * expected,
		MaxCost:            maxBytes,
		BufferItems:        64,
		IgnoreInternalCost: true, // the costs passed to put include it
		KeyToHash:          func(hash uint64) (uint64, uint64) { return hash, 0 },
		// Ristretto's own metrics would cost each hit an atomic addition, and counters has the same figures.
		OnEvict:  func(*ristretto.Item[any]) { stats.evicted.Add(1) },
		OnReject: func(*ristretto.Item[any]) { stats.rejected.Add(1) },
	})
	return err
}

// close waits for running calls and frees the memory.
func (s *store) close() {
	if s.gate.shut() {
		s.ristretto.Close()
	}
}

// get returns the value stored under a hash, or nil.
func (s *store) get(hash uint64) any {
	pass, open := s.gate.enter()
	defer s.gate.leave(pass)
	if !open {
		return nil
	}
	value, _ := s.ristretto.Get(hash)
	return value
}

// put offers a value to Ristretto, which may reject it. It expires after ttl. Ristretto evicts nothing for a value that replaces a smaller one, and may exceed
// its size. After that, put removes older values first, so that the new ones have to displace others.
func (s *store) put(hash uint64, value any, cost int64, ttl time.Duration) {
	pass, open := s.gate.enter()
	defer s.gate.leave(pass)
	if !open {
		return
	}
	if cost > s.largest {
		s.stats.tooLarge.Add(1)
		s.ristretto.Del(hash) // or the older value would still be served
		return
	}
	if s.isOver() {
		s.ristretto.Del(hash)
	}
	if !s.ristretto.SetWithTTL(hash, value, cost, ttl) {
		s.stats.dropped.Add(1)
	}
}

// settle waits until every earlier put is either visible to get or rejected. It reports whether the values then exceed the size of the cache.
func (s *store) settle() (over bool) {
	pass, open := s.gate.enter()
	defer s.gate.leave(pass)
	if !open {
		return false
	}
	s.ristretto.Wait()
	return s.isOver()
}

func (s *store) isOver() bool { return s.ristretto.RemainingCost() < 0 }

// erase removes the value stored under a hash.
func (s *store) erase(hash uint64) {
	pass, open := s.gate.enter()
	defer s.gate.leave(pass)
	if open {
		s.ristretto.Del(hash)
	}
}

// remove deletes a record unless a newer one has replaced it.
func (s *store) remove(rec *record) {
	pass, open := s.gate.enter()
	defer s.gate.leave(pass)
	if !open {
		return
	}
	if value, _ := s.ristretto.Get(rec.key.hash); value == any(rec) {
		s.ristretto.Del(rec.key.hash)
	}
}

// records returns the records of a project.
func (s *store) records(of projects) []*record {
	pass, open := s.gate.enter()
	defer s.gate.leave(pass)
	if !open {
		return nil
	}
	var found []*record
	s.ristretto.IterValues(func(value any) (stop bool) {
		if rec, ok := value.(*record); ok && of.has(rec.key.project) {
			found = append(found, rec)
		}
		return false
	})
	return found
}

// drop deletes records, and the pages of their entries unless these have refs.
func (s *store) drop(records []*record) {
	pass, open := s.gate.enter()
	defer s.gate.leave(pass)
	if !open {
		return
	}
	var hashes []uint64
	entries := make(map[uint64]bool)
	for _, rec := range records {
		hashes = append(hashes, rec.key.hash)
		entries[rec.entry.id] = !rec.entry.referred.Load()
	}
	s.deleteWithPages(hashes, entries)
}

// deleteWithPages deletes what has these hashes, and the pages of these entries. The caller has entered the gate.
func (s *store) deleteWithPages(hashes []uint64, entries map[uint64]bool) {
	s.ristretto.IterValues(func(value any) (stop bool) {
		if pg, ok := value.(*page); ok && entries[pg.id.entry] {
			hashes = append(hashes, pg.id.hash())
		}
		return false
	})
	for _, hash := range hashes {
		s.ristretto.Del(hash)
	}
	s.ristretto.Wait()
}

// used returns the used bytes of the budget.
func (s *store) used() int64 {
	pass, open := s.gate.enter()
	defer s.gate.leave(pass)
	if !open {
		return 0
	}
	return s.ristretto.MaxCost() - s.ristretto.RemainingCost()
}

// A gate prevents Ristretto from being closed during a call, which would make it panic. It takes no lock:
// it counts the calls inside, spread over stripes so that cores seldom share one.
type gate struct {
	closed  atomic.Bool
	stripes [stripes]struct {
		inside atomic.Int64
		_      [56]byte // a cache line each
	}
}

// enter counts the caller in. The caller must call leave with the pass, even if the gate is not open.
func (g *gate) enter() (pass uint32, open bool) {
	pass = stripe()
	g.stripes[pass].inside.Add(1)
	return pass, !g.closed.Load()
}

func (g *gate) leave(pass uint32) { g.stripes[pass].inside.Add(-1) }

// shut closes the gate and waits until all callers have left. It reports whether the gate was open.
func (g *gate) shut() bool {
	if g.closed.Swap(true) {
		return false
	}
	for i := range g.stripes {
		for g.stripes[i].inside.Load() != 0 {
			runtime.Gosched()
		}
	}
	return true
}

// record is a stored entry, with the data that decides whether it may be served.
type record struct {
	key        Key
	generation uint64
	entry      *Entry
	served     time.Time // the last time at which its policy allows serving it without a ref
	// quietUntil is when the next refresh may start, in Unix nanoseconds.
	quietUntil atomic.Int64
}

// lookup returns the record of exactly this key, or nil.
func (c *Cache) lookup(key Key) *record {
	if key.text == "" {
		panic("BUG: a cache key must come from KeyParts.Key")
	}
	rec, ok := c.store.get(key.hash).(*record)
	if !ok || rec.key != key || rec.generation != c.generation(key.project) {
		return nil
	}
	return rec
}

// lifetime is how long the store keeps a result computed under a policy. It is an upper limit; whether a result may be served
// depends on the entry's age.
type lifetime struct {
	served time.Duration // while it may be served under its key
	refs   time.Duration // after that, only for refs
}

func (c *Cache) lifetime(p Policy) lifetime {
	l := lifetime{served: max(p.Fresh+c.stale, p.Keep)}
	if p.Refs {
		l.refs = c.hold
	}
	return l
}

// keep stores a flight's result, and returns when calls can see it.
func (c *Cache) keep(f *flight) {
	ttl := f.lifetime.served + f.lifetime.refs
	if ttl <= 0 {
		return
	}
	rec := &record{key: f.key, generation: f.generation, entry: f.entry, served: time.Now().Add(f.lifetime.served)}
	put := func() {
		c.store.put(f.key.hash, rec, f.entry.Size()+int64(len(f.key.text)), ttl)
		c.store.settle()
	}
	c.places.Lock()
	defer c.places.Unlock()
	if old, ok := c.store.get(f.key.hash).(*record); ok {
		c.displace(put, old)
		return
	}
	put()
}
