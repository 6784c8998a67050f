package cache

import (
	"sync/atomic"
	"time"
)

// Entry is one computed result: a snapshot that never changes once it has been handed to the cache.
type Entry struct {
	// The rows and columns.
	Result *Result
	// When the computation began: the rows hold what was stored by then.
	ComputedAt time.Time
	// What the caller keeps beside the rows, such as the text of the executed query. The cache does
	// not look into it.
	Meta any

	id       uint64
	metaSize int
	referred atomic.Bool // see Refer
	secured  atomic.Bool // a ref to it leads to it
}

var lastEntry atomic.Uint64

// NewEntry makes an entry with an ID of its own. The size of meta in bytes is counted against the
// cache's budget.
func NewEntry(result *Result, computedAt time.Time, meta any, metaSize int) *Entry {
	return &Entry{Result: result, ComputedAt: computedAt, Meta: meta, id: lastEntry.Add(1), metaSize: metaSize}
}

// ID tells this snapshot from every other one of the process.
func (e *Entry) ID() uint64 { return e.id }

// Size is the memory that the entry takes, in bytes.
func (e *Entry) Size() int64 { return entryOverhead + e.Result.Size() + int64(e.metaSize) }

// entryOverhead is what an entry takes beside its bytes: the structs here and Ristretto's bookkeeping.
const entryOverhead = 512

// age is how old the entry is at a moment; a clock that was set back makes nothing younger than new.
func (e *Entry) age(now time.Time) time.Duration { return max(0, now.Sub(e.ComputedAt)) }
