package cache

import (
	"sync/atomic"
	"time"
)

// Entry is one computed result: a snapshot that never changes once it has been handed to the cache.
type Entry struct {
	// The rows and columns.
	Result *Result
	// When the computation began: the rows include everything stored by then.
	ComputedAt time.Time
	// The rows were computed before ComputedAt, but a computation at that time would have given the same ones: see Renew.
	Renewed bool
	// Another server computed the rows before the call that fetched them from it.
	Fetched bool
	// Data that the caller keeps with the rows, such as the text of the query. The cache does not
	// use it.
	Meta any

	id       uint64
	metaSize int
	referred atomic.Bool // see Refer
	secured  atomic.Bool // refs can find it
}

var lastEntry atomic.Uint64

// NewEntry returns an entry with a new ID. The size of meta in bytes counts towards the cache's
// budget.
func NewEntry(result *Result, computedAt time.Time, meta any, metaSize int) *Entry {
	return &Entry{Result: result, ComputedAt: computedAt, Meta: meta, id: lastEntry.Add(1), metaSize: metaSize}
}

// Renew returns an entry with the same rows, for a load that found that a computation beginning at the given time would return them. The load may
// return it instead of computing. Refs to e stay refs to it.
func (e *Entry) Renew(at time.Time, meta any, metaSize int) *Entry {
	next := NewEntry(e.Result, at, meta, metaSize)
	next.Renewed = true
	return next
}

// ID returns the snapshot's ID, which is unique in the process.
func (e *Entry) ID() uint64 { return e.id }

// Size returns the memory that the entry takes, in bytes.
func (e *Entry) Size() int64 { return entryOverhead + e.Result.Size() + int64(e.metaSize) }

// entryOverhead is the memory of an entry's structs and of Ristretto's bookkeeping.
const entryOverhead = 512

// age returns the entry's age at a time, never negative, even if the clock was set back.
func (e *Entry) age(now time.Time) time.Duration { return max(0, now.Sub(e.ComputedAt)) }
