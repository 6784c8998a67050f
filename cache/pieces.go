package cache

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Span is a span of time in Unix microseconds. Its end is not part of it.
type Span struct{ From, To int64 }

// SpanOf returns the span between two times.
func SpanOf(from, to time.Time) Span { return Span{from.UnixMicro(), to.UnixMicro()} }

// Piece is the rows of a query in a span of time. It is immutable.
type Piece struct {
	Rows *Result
	// The version of the data that the rows were computed from. They are current only while the data still has it.
	Version uint64
	// When the computation began.
	ComputedAt time.Time
	// The time of the earliest events that the rows depend on.
	Reach time.Time
}

// pieceOverhead is the memory of a piece's structs and of its place in the map.
const pieceOverhead = 160

func (p *Piece) size() int64 { return pieceOverhead + p.Rows.Size() }

// maxPieces is how many pieces of one query are kept.
const maxPieces = 4096

// Pieces are the stored pieces of a query. They are immutable.
type Pieces struct {
	key        Key
	generation uint64
	columns    []Column
	bySpan     map[Span]*Piece
	size       int64
}

// Columns returns the columns of the rows; nil if no piece was ever kept.
func (p *Pieces) Columns() []Column { return p.columns }

// Find returns the piece of exactly this span, or nil.
func (p *Pieces) Find(s Span) *Piece { return p.bySpan[s] }

// pieceLifetime is how long pieces are kept after the last one was added.
const pieceLifetime = 7 * 24 * time.Hour

// Pieces returns the pieces stored under a key, if any, without those from before a purge and those that were erased. No result may have the same
// key.
func (c *Cache) Pieces(key Key) *Pieces {
	if key.text == "" {
		panic("BUG: a cache key must come from KeyParts.Key")
	}
	generation := c.pieceGeneration(key.project)
	kept, ok := c.store.get(key.hash).(*Pieces)
	if !ok || kept.key != key || kept.generation != generation {
		return &Pieces{key: key, generation: generation}
	}
	return c.withoutErased(kept)
}

// KeepPieces adds pieces to those that Pieces had found when their computation began. A stored piece of the same span stays if it was computed later.
// Nothing is stored if the project was purged in the meantime. If there is no room for all, the pieces of the answer's spans stay, and then the
// latest of the others.
func (c *Cache) KeepPieces(found *Pieces, columns []Column, computed map[Span]*Piece, answer []Span) {
	c.pieces.Lock()
	defer c.pieces.Unlock()
	now := c.Pieces(found.key)
	if now.generation != found.generation {
		return
	}
	next := &Pieces{key: now.key, generation: now.generation, columns: slices.Clone(columns), bySpan: make(map[Span]*Piece, len(now.bySpan)+len(computed))}
	maps.Copy(next.bySpan, now.bySpan)
	for s, p := range computed {
		if old := next.bySpan[s]; old == nil || !old.ComputedAt.After(p.ComputedAt) {
			next.bySpan[s] = p
		}
	}
	c.putPieces(c.withoutErased(next), answer)
}

// putPieces stores pieces. The caller holds pieces.
func (c *Cache) putPieces(next *Pieces, answer []Span) {
	next.size = entryOverhead + int64(len(next.key.text))
	for _, column := range next.columns {
		next.size += int64(len(column.Name) + len(column.Type) + 32)
	}
	for _, p := range next.bySpan {
		next.size += p.size()
	}
	next.trim(c.store.largest, answer)
	c.store.put(next.key.hash, next, next.size, pieceLifetime)
	if c.store.settle() {
		c.store.put(next.key.hash, next, next.size, pieceLifetime)
		c.store.settle()
	}
}

// trim drops pieces until the rest fits.
func (p *Pieces) trim(most int64, answer []Span) {
	if p.size <= most && len(p.bySpan) <= maxPieces {
		return
	}
	wanted := make(map[Span]bool, len(answer))
	for _, s := range answer {
		wanted[s] = true
	}
	spans := make([]Span, 0, len(p.bySpan))
	for s := range p.bySpan {
		spans = append(spans, s)
	}
	slices.SortFunc(spans, func(a, b Span) int {
		if wanted[a] != wanted[b] {
			if wanted[b] {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	for _, s := range spans {
		if p.size <= most && len(p.bySpan) <= maxPieces {
			return
		}
		p.size -= p.bySpan[s].size()
		delete(p.bySpan, s)
	}
}

// withoutErased returns the pieces without those whose rows may have been deleted since.
func (c *Cache) withoutErased(p *Pieces) *Pieces {
	erased := c.pieceErasures.Load()
	if erased == nil {
		return p
	}
	of := (*erased)[p.key.project]
	gone := func(piece *Piece) bool { return piece.ComputedAt.Before(of.before) || piece.Reach.Before(of.from) }
	some := false
	for _, piece := range p.bySpan {
		some = some || gone(piece)
	}
	if !some {
		return p
	}
	out := *p
	out.bySpan = make(map[Span]*Piece, len(p.bySpan))
	for s, piece := range p.bySpan {
		if !gone(piece) {
			out.bySpan[s] = piece
		}
	}
	return &out
}

// pieceErasure says which pieces of a project may hold deleted rows.
type pieceErasure struct {
	before time.Time // those computed before
	from   time.Time // those that depend on events before
}

// pieceGeneration returns the number of purges of a project.
func (c *Cache) pieceGeneration(project int64) uint64 {
	if generations := c.pieceGenerations.Load(); generations != nil {
		return (*generations)[project]
	}
	return 0
}

// allPieces returns the pieces of all projects by query.
func (s *store) allPieces() []*Pieces { return s.piecesIf(func(*Pieces) bool { return true }) }

// piecesOf returns the pieces of projects by query.
func (s *store) piecesOf(of projects) []*Pieces {
	return s.piecesIf(func(p *Pieces) bool { return of.has(p.key.project) })
}

func (s *store) piecesIf(wanted func(*Pieces) bool) (found []*Pieces) {
	pass, open := s.gate.enter()
	defer s.gate.leave(pass)
	if !open {
		return nil
	}
	s.ristretto.IterValues(func(value any) (stop bool) {
		if p, ok := value.(*Pieces); ok && wanted(p) {
			found = append(found, p)
		}
		return false
	})
	return found
}

// dropPieces deletes the pieces of a project.
func (s *store) dropPieces(project int64) {
	found := s.piecesOf(projects{project: {}})
	pass, open := s.gate.enter()
	defer s.gate.leave(pass)
	if !open {
		return
	}
	for _, p := range found {
		s.ristretto.Del(p.key.hash)
	}
	s.ristretto.Wait()
}
