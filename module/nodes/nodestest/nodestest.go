// Package nodestest provides a place for the records of servers, for tests.
package nodestest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Board keeps records in memory as a shared registry does, and can be away.
type Board struct {
	mu            sync.Mutex
	kept          map[string][]byte
	away          bool
	reads, writes int
}

// NewBoard returns a board without records.
func NewBoard() *Board { return &Board{kept: make(map[string][]byte)} }

var errAway = errors.New("the registry is unavailable")

// Keep implements nodes.Board.
func (b *Board) Keep(_ context.Context, name string, data []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.away {
		return errAway
	}
	b.writes++
	if data == nil {
		delete(b.kept, name)
		return nil
	}
	b.kept[name] = slices.Clone(data)
	return nil
}

// KeptAll implements nodes.Board.
func (b *Board) KeptAll(_ context.Context, prefix string) (map[string][]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.away {
		return nil, errAway
	}
	b.reads++
	out := maps.Clone(b.kept)
	maps.DeleteFunc(out, func(name string, _ []byte) bool { return !strings.HasPrefix(name, prefix) })
	return out, nil
}

// Of is the record of a name.
func (b *Board) Of(name string) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.kept[name])
}

// Put puts a record, as somebody else.
func (b *Board) Put(name string, data []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.kept[name] = data
}

// Counts are how often records were read and written.
func (b *Board) Counts() (reads, writes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reads, b.writes
}

// Size is how many records there are.
func (b *Board) Size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.kept)
}

// SetAway says whether the board is away.
func (b *Board) SetAway(away bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.away = away
}

// SlowClock returns a clock that is fifty times too slow. With it, servers whose counters move many times a second are not taken for dead because the
// machine is busy for a moment.
func SlowClock() func() time.Time {
	began := time.Now()
	return func() time.Time { return began.Add(time.Since(began) / 50) }
}
