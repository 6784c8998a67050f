package cache

import (
	"maps"
	"time"
)

// Erase removes all results and pieces of a project whose computation began before a time, including those that are held for refs, because they may
// have rows that were deleted. Their refs become invalid. Callers that wait for a running computation still get its result.
func (c *Cache) Erase(project int64, before time.Time) {
	c.erasePieces(project, func(e *pieceErasure) {
		if before.After(e.before) {
			e.before = before
		}
	})
	c.eraseResults(project, before, c.Purge)
}

// EraseOutdated is like Erase if only events before from were deleted; from is zero if the project keeps all events from now on. Pieces that depend
// on no event before from stay.
func (c *Cache) EraseOutdated(project int64, before, from time.Time) {
	c.erasePieces(project, func(e *pieceErasure) { e.from = from })
	c.eraseResults(project, before, c.Outdate)
}

// erasePieces changes which pieces of a project may be used, and drops the others.
func (c *Cache) erasePieces(project int64, change func(*pieceErasure)) {
	c.pieces.Lock()
	defer c.pieces.Unlock()
	next := make(map[int64]pieceErasure)
	if old := c.pieceErasures.Load(); old != nil {
		maps.Copy(next, *old)
	}
	of := next[project]
	change(&of)
	next[project] = of
	c.pieceErasures.Store(&next)
	for _, p := range c.store.piecesOf(project) {
		if left := c.withoutErased(p); left != p {
			c.putPieces(left, nil)
		}
	}
}

func (c *Cache) eraseResults(project int64, before time.Time, purge func(int64)) {
	c.mu.Lock()
	next := make(map[int64]time.Time)
	if old := c.erased.Load(); old != nil {
		maps.Copy(next, *old)
	}
	if before.After(next[project]) {
		next[project] = before
	}
	c.erased.Store(&next)
	c.mu.Unlock()
	purge(project)
	c.places.Lock()
	defer c.places.Unlock()
	c.store.dropHeld(func(h *held) bool { return h.key.project == project && c.isErased(h.key, h.entry) })
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
