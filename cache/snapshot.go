package cache

import (
	"hash/maphash"
	"time"
)

// Ref identifies a snapshot, so that a later call can get exactly that one even if its key has a newer result by then. It is
// valid only in this process. Do not show it to clients in plain form: hashes would help them craft collisions.
type Ref struct {
	Hash  uint64 // of the key
	Entry uint64 // the ID of the entry
}

// held is a snapshot that is no longer stored under its key, because of a newer result or a purge, but kept for its refs.
type held struct {
	key   Key
	entry *Entry
	until time.Time
}

// heldID is the key of a held snapshot in the store.
type heldID struct{ entry uint64 }

func (id heldID) hash() uint64 { return maphash.Comparable(seed, id) }

// Refer returns a ref to an entry that this cache returned for key. From now on, an entry that is replaced or purged is kept for another Config.Hold,
// which starts again with each call of Snapshot. It counts once towards the budget, and may be evicted like any other value.
func (c *Cache) Refer(key Key, e *Entry) Ref {
	if !e.secured.Load() {
		e.referred.Store(true) // first, so that displacing it from now on holds it
		if !c.arriving(key, e) {
			c.secure(key, e)
		}
		e.secured.Store(true)
	}
	return Ref{Hash: key.hash, Entry: e.id}
}

// arriving reports whether the entry is on its way to the store. settle secures it after that.
func (c *Cache) arriving(key Key, e *Entry) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.flights[key]
	return f != nil && f.settled && f.entry == e
}

// secure holds an entry that is neither stored under its key nor held.
func (c *Cache) secure(key Key, e *Entry) {
	c.places.Lock() // so that the entry is not being displaced
	defer c.places.Unlock()
	ref := Ref{Hash: key.hash, Entry: e.id}
	if c.recordOf(ref) == nil && c.heldOf(ref) == nil {
		c.keepHeld(key, e)
	}
}

// keepHeld holds an entry and returns when Snapshot can find it.
func (c *Cache) keepHeld(key Key, e *Entry) {
	ttl := c.hold + c.hold/8 // so that not every use has to extend it
	h := &held{key: key, entry: e, until: time.Now().Add(ttl)}
	c.store.put(heldID{e.id}.hash(), h, e.Size()+int64(len(key.text)), ttl)
	c.store.settle()
}

// remove removes a record from the store unless a newer one has replaced it.
func (c *Cache) remove(rec *record) {
	c.places.Lock()
	defer c.places.Unlock()
	c.displace(func() { c.store.remove(rec) }, rec)
}

// displace calls remove, which removes the records from the store. Entries with refs are held first, so that a ref is valid at
// every moment. The caller holds places.
func (c *Cache) displace(remove func(), records ...*record) {
	for _, rec := range records {
		if rec.entry.referred.Load() {
			c.keepHeld(rec.key, rec.entry)
		}
	}
	remove()
}

// Snapshot returns the entry of a ref and the key that it was computed for, with status Hit while it is fresh under the policy
// and Pinned later, or false if it is no longer kept. It ignores the policy's mode, starts no computation and counts nothing.
func (c *Cache) Snapshot(ref Ref, p Policy) (Key, Answer, bool) {
	p.setNow()
	key, entry := c.find(ref, p.Now)
	switch {
	case entry == nil, c.isErased(key, entry):
		return Key{}, Answer{}, false
	case p.fresh(entry):
		return key, p.answer(entry, Hit), true
	}
	return key, p.answer(entry, Pinned), true
}

// find returns the entry of a ref, or nil, and makes sure that it is kept for Config.Hold.
func (c *Cache) find(ref Ref, now time.Time) (Key, *Entry) {
	// Look among the held snapshots first: the lookup counts as a use, which keeps a snapshot that is paged through in a full
	// cache.
	if h := c.heldOf(ref); h != nil {
		if h.until.Sub(now) < c.hold {
			c.keepHeld(h.key, h.entry)
		}
		return h.key, h.entry
	}
	if rec := c.recordOf(ref); rec != nil {
		if now.After(rec.served) && rec.entry.referred.Load() { // only refs need it
			c.remove(rec)
		}
		return rec.key, rec.entry
	}
	return c.follow(ref)
}

// follow returns the entry of a ref that may be moving, from a flight to its key and from there to the held snapshots. It is
// always in the next place before it leaves the previous one, so a search in this order can't miss it.
func (c *Cache) follow(ref Ref) (Key, *Entry) {
	if f := c.flightOf(ref); f != nil {
		return f.key, f.entry
	}
	if rec := c.recordOf(ref); rec != nil {
		return rec.key, rec.entry
	}
	if h := c.heldOf(ref); h != nil {
		return h.key, h.entry
	}
	return Key{}, nil
}

// flightOf returns the flight that computed the entry of a ref, or nil.
func (c *Cache) flightOf(ref Ref) *flight {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.flights {
		if f.settled && f.entry != nil && f.entry.id == ref.Entry {
			return f
		}
	}
	return nil
}

// heldOf returns the held snapshot of a ref, or nil.
func (c *Cache) heldOf(ref Ref) *held {
	if h, ok := c.store.get(heldID{ref.Entry}.hash()).(*held); ok && h.entry.id == ref.Entry {
		return h
	}
	return nil
}

// recordOf returns the record with the entry of a ref, or nil. Unlike lookup, it also returns one that a purge is about to remove.
func (c *Cache) recordOf(ref Ref) *record {
	if rec, ok := c.store.get(ref.Hash).(*record); ok && rec.entry.id == ref.Entry {
		return rec
	}
	return nil
}
