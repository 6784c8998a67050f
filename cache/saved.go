package cache

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// savedPieces is the form of Pieces in a file.
type savedPieces struct {
	Project int64
	Key     string
	Columns []Column
	Pieces  []savedPiece
}

// savedPiece is the form of a Piece in a file.
type savedPiece struct {
	Span       Span
	Version    uint64
	ComputedAt time.Time
	Reach      time.Time
	Rows       [][]byte
}

// SavePieces writes the stored pieces, for LoadPieces in another process. It returns the number of queries that have some.
func (c *Cache) SavePieces(w io.Writer) (queries int, err error) {
	to := gob.NewEncoder(w)
	for _, kept := range c.store.allPieces() {
		if kept.generation != c.pieceGeneration(kept.key.project) {
			continue
		}
		kept = c.withoutErased(kept)
		if len(kept.bySpan) == 0 {
			continue
		}
		out := savedPieces{Project: kept.key.project, Key: kept.key.text, Columns: kept.columns, Pieces: make([]savedPiece, 0, len(kept.bySpan))}
		for s, p := range kept.bySpan {
			out.Pieces = append(out.Pieces, savedPiece{s, p.Version, p.ComputedAt, p.Reach, slices.Collect(p.Rows.Rows())})
		}
		if err := to.Encode(out); err != nil {
			return queries, fmt.Errorf("writing pieces: %w", err)
		}
		queries++
	}
	return queries, nil
}

// LoadPieces adds the pieces that SavePieces wrote to a cache that has none, and returns the number of queries that have some. The caller must make
// sure that versions of the data still mean what they did when they were saved. After an error none are kept: a damaged file can have readable pieces with
// wrong numbers.
func (c *Cache) LoadPieces(r io.Reader) (queries int, err error) {
	var loaded []Key
	defer func() {
		if err == nil {
			return
		}
		queries = 0
		for _, key := range loaded {
			c.store.erase(key.hash)
		}
	}()
	from := gob.NewDecoder(r)
	for {
		var in savedPieces
		if err := from.Decode(&in); err != nil {
			if errors.Is(err, io.EOF) {
				return queries, nil
			}
			return queries, fmt.Errorf("reading pieces: %w", err)
		}
		kept, err := in.pieces()
		if err != nil {
			return queries, fmt.Errorf("reading pieces: %w", err)
		}
		key := keyOf(in.Project, in.Key)
		c.KeepPieces(&Pieces{key: key}, in.Columns, kept, slices.Collect(maps.Keys(kept)))
		loaded = append(loaded, key)
		queries++
	}
}

func (in *savedPieces) pieces() (map[Span]*Piece, error) {
	if in.Key == "" {
		return nil, errors.New("a query has no key")
	}
	out := make(map[Span]*Piece, len(in.Pieces))
	for _, p := range in.Pieces {
		b := NewBuilder(Limits{})
		if err := b.Columns(nil); err != nil {
			return nil, err
		}
		for _, row := range p.Rows {
			if err := b.Row(row); err != nil {
				return nil, err
			}
		}
		out[p.Span] = &Piece{Rows: b.Result(), Version: p.Version, ComputedAt: p.ComputedAt, Reach: p.Reach}
	}
	return out, nil
}
