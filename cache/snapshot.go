package cache

import (
	"hash/maphash"
	"time"
)

// Ref names a snapshot, so that a later call can have exactly that one, also when its key has a newer result by then. It is good
// for this process alone. Clients must not see it as it is: from hashes they could learn to craft collisions.
type Ref struct {
	Hash  uint64 // of the key
	Entry uint64 // the ID of the entry
}

// held is a snapshot that its key has lost, to a newer result or to a purge, and that is kept for those who have a ref to it.
type held struct {
	key   Key
	entry *Entry
	until time.Time
}

// heldID is what a held snapshot is stored under.
type heldID struct{ entry uint64 }

func (id heldID) hash() uint64 { return maphash.Comparable(seed, id) }

// Refer gives a ref to an entry that this cache returned for key. From now on the entry outlives its place under the key: when it
// loses that, it is kept for Config.Hold, and for as long again after each call of Snapshot. It is counted once, and may be pushed
// out as everything else here.
func (c *Cache) Refer(key Key, e *Entry) Ref {
	if !e.secured.Load() {
		e.referred.Store(true) // first, so that whoever displaces it from now on holds it
		if !c.arriving(key, e) {
			c.secure(key, e)
		}
		e.secured.Store(true)
	}
	return Ref{Hash: key.hash, Entry: e.id}
}

// arriving tells whether the entry is on its way to the store. It is secured when it is there.
func (c *Cache) arriving(key Key, e *Entry) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.flights[key]
	return f != nil && f.settled && f.entry == e
}

// secure holds an entry that is neither its key's nor held.
func (c *Cache) secure(key Key, e *Entry) {
	c.places.Lock() // what is about to be displaced is not there
	defer c.places.Unlock()
	ref := Ref{Hash: key.hash, Entry: e.id}
	if c.recordOf(ref) == nil && c.heldOf(ref) == nil {
		c.keepHeld(key, e)
	}
}

// keepHeld holds an entry from now on, and returns when Snapshot can find it.
func (c *Cache) keepHeld(key Key, e *Entry) {
	ttl := c.hold + c.hold/8 // so that not each use has to put it off
	h := &held{key: key, entry: e, until: time.Now().Add(ttl)}
	c.store.put(heldID{e.id}.hash(), h, e.Size()+int64(len(key.text)), ttl)
	c.store.settle()
}

// remove takes a record out of the store unless a newer one has taken its place.
func (c *Cache) remove(rec *record) {
	c.places.Lock()
	defer c.places.Unlock()
	c.displace(func() { c.store.remove(rec) }, rec)
}

// displace calls remove, which takes the records out of the store. Those of their entries that were referred to are held first, so that
// there is no moment at which a ref leads nowhere. The caller holds places.
func (c *Cache) displace(remove func(), records ...*record) {
	for _, rec := range records {
		if rec.entry.referred.Load() {
			c.keepHeld(rec.key, rec.entry)
		}
	}
	remove()
}

// Snapshot gives the entry that a ref names and the key that it was computed for, with status Hit while it is fresh under the policy
// and Pinned later; false says that it is no longer kept. The policy's mode does not matter. Nothing is begun and nothing is counted.
func (c *Cache) Snapshot(ref Ref, p Policy) (Key, Answer, bool) {
	p.setNow()
	key, entry := c.find(ref, p.Now)
	switch {
	case entry == nil:
		return Key{}, Answer{}, false
	case p.fresh(entry):
		return key, p.answer(entry, Hit), true
	}
	return key, p.answer(entry, Pinned), true
}

// find finds the entry of a ref and sees to it that it can be found for Config.Hold; nil when there is none.
func (c *Cache) find(ref Ref, now time.Time) (Key, *Entry) {
	// What is held is looked for first: the look counts as use, which a snapshot that is paged through needs when it has to assert
	// itself in a full cache.
	if h := c.heldOf(ref); h != nil {
		if h.until.Sub(now) < c.hold {
			c.keepHeld(h.key, h.entry)
		}
		return h.key, h.entry
	}
	if rec := c.recordOf(ref); rec != nil {
		if now.After(rec.served) && rec.entry.referred.Load() { // nobody but the refs needs it
			c.remove(rec)
		}
		return rec.key, rec.entry
	}
	return c.follow(ref)
}

// follow finds the entry of a ref that may be moving: from a flight to its key and from there to those that are held. It is always in
// the next place before it leaves the last one, so who looks in this order can't miss it.
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

// flightOf is the flight that brings the entry of a ref, or nil.
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

// heldOf is what holds the entry of a ref, or nil.
func (c *Cache) heldOf(ref Ref) *held {
	if h, ok := c.store.get(heldID{ref.Entry}.hash()).(*held); ok && h.entry.id == ref.Entry {
		return h
	}
	return nil
}

// recordOf is the record that holds the entry of a ref, or nil. Unlike lookup it also gives one that a purge is about to remove.
func (c *Cache) recordOf(ref Ref) *record {
	if rec, ok := c.store.get(ref.Hash).(*record); ok && rec.entry.id == ref.Entry {
		return rec
	}
	return nil
}
