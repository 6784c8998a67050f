package cache

import "time"

// Erase removes all results and pieces of a project whose computation began before a time, including those that are held for refs, because they may
// have rows that were deleted. Their refs become invalid. Callers that wait for a running computation still get its result.
func (c *Cache) Erase(project int64, before time.Time) {
	of := projects{project: {}}
	c.erasePieces(of, func(_ int64, e pieceErasure) pieceErasure {
		if before.After(e.before) {
			e.before = before
		}
		return e
	})
	c.eraseResults(of, before, func() { c.Purge(project) })
}

// EraseOutdated is like Erase for several projects at a time, if only events before from, which is by project, were deleted; from is zero if the project keeps
// all events from now on. Pieces that depend on no event before from stay.
func (c *Cache) EraseOutdated(before time.Time, from map[int64]time.Time) {
	of := make(projects, len(from))
	for project := range from {
		of[project] = struct{}{}
	}
	c.erasePieces(of, func(project int64, e pieceErasure) pieceErasure {
		e.from = from[project]
		return e
	})
	c.eraseResults(of, before, func() { c.outdate(of) })
}

// erasePieces changes which pieces of projects may be used, and drops the others.
func (c *Cache) erasePieces(of projects, change func(project int64, e pieceErasure) pieceErasure) {
	c.pieces.Lock()
	defer c.pieces.Unlock()
	changeAll(&c.pieceErasures, of, change)
	for _, p := range c.store.piecesOf(of) {
		if left := c.withoutErased(p); left != p {
			c.putPieces(left, nil)
		}
	}
}

func (c *Cache) eraseResults(of projects, before time.Time, purge func()) {
	c.mu.Lock()
	changeAll(&c.erased, of, func(_ int64, old time.Time) time.Time {
		if before.After(old) {
			return before
		}
		return old
	})
	c.mu.Unlock()
	purge()
	c.places.Lock()
	defer c.places.Unlock()
	c.store.dropHeld(func(h *held) bool { return of.has(h.key.project) && c.isErased(h.key, h.entry) })
}

// isErased reports whether an entry may have rows that were deleted since.
func (c *Cache) isErased(key Key, e *Entry) bool {
	erased := c.erased.Load()
	return erased != nil && e.ComputedAt.Before((*erased)[key.project])
}

// dropHeld deletes the held snapshots that are gone, and their pages.
func (s *store) dropHeld(gone func(*held) bool) {
	pass, open := s.gate.enter()
	defer s.gate.leave(pass)
	if !open {
		return
	}
	var hashes []uint64
	entries := make(map[uint64]bool)
	s.ristretto.IterValues(func(value any) (stop bool) {
		if h, ok := value.(*held); ok && gone(h) {
			hashes = append(hashes, heldID{h.entry.id}.hash())
			entries[h.entry.id] = true
		}
		return false
	})
	s.deleteWithPages(hashes, entries)
}
