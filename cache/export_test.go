package cache

// Collide gives the key the same hash as all other keys passed to it.
func Collide(k Key) Key {
	k.hash = 42
	return k
}

// Misplace stores a page under the hash of another one.
func (c *Cache) Misplace(e *Entry, key, under PageKey) {
	id, at := pageID{entry: e.id, PageKey: key}, pageID{entry: e.id, PageKey: under}
	c.store.put(at.hash(), &page{id: id, body: c.lookupPage(&id).body}, 1, pageTTL)
	c.store.settle()
}
