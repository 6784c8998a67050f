package cache

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Memo maps the exact bytes of a request to their interpretation, so that the same request is not
// parsed twice. It holds a bounded number of bytes, evicts what has not been used lately, and need not
// be closed. All methods are safe for concurrent use.
//
// It is a set-associative table: a key's hash selects a set of eight slots, each an atomic pointer. A
// lookup is a hash and a comparison; it takes no lock and does not allocate. A Put is visible as soon
// as it returns. Ristretto's writes, in contrast, are asynchronous, and its lookups lock a shard.
type Memo[V any] struct {
	sets     []memoSet[V]
	shift    uint
	setBytes int
	sizeOf   func(V) int
}

type memoSet[V any] struct {
	slots [memoWays]atomic.Pointer[memoEntry[V]]

	mu    sync.Mutex // guards writes to slots, bytes and hand
	bytes int
	hand  int // the slot to evict next
}

type memoEntry[V any] struct {
	hash  uint64
	size  int
	used  atomic.Bool // looked up since the hand last passed
	key   string
	value V
}

const (
	memoWays     = 8
	memoExpected = 1 << 10 // expected bytes of an entry, unless the caller knows better
)

// NewMemo returns an empty memo of at most maxBytes, at least 64 KiB. An entry can have at most a set's
// share, which is 8 to 16 KiB. sizeOf returns the bytes that a value refers to, beyond its own; nil means none.
func NewMemo[V any](maxBytes int, sizeOf func(V) int) *Memo[V] {
	return NewMemoOf(maxBytes, memoExpected, sizeOf)
}

// NewMemoOf is NewMemo for entries of about expected bytes: one can have at most 8 to 16 times as many.
func NewMemoOf[V any](maxBytes, expected int, sizeOf func(V) int) *Memo[V] {
	maxBytes = max(maxBytes, 64*expected)
	order := bits.Len(uint(maxBytes/(memoWays*expected))) - 1
	sets := 1 << order
	if sizeOf == nil {
		sizeOf = func(V) int { return 0 }
	}
	return &Memo[V]{
		sets:     make([]memoSet[V], sets),
		shift:    uint(64 - order),
		setBytes: maxBytes / sets,
		sizeOf:   sizeOf,
	}
}

// Get returns the value that was put under exactly these bytes.
func (m *Memo[V]) Get(key []byte) (value V, ok bool) {
	hash := maphash.Bytes(seed, key)
	set := m.set(hash)
	for i := range set.slots {
		e := set.slots[i].Load()
		if e != nil && e.hash == hash && e.key == string(key) {
			if !e.used.Load() { // a write would take the line from other cores each time
				e.used.Store(true)
			}
			return e.value, true
		}
	}
	return value, false
}

// Put stores a value under a copy of key, replacing an earlier one. An entry that is too large for the
// memo is not stored.
func (m *Memo[V]) Put(key []byte, value V) {
	hash := maphash.Bytes(seed, key)
	e := &memoEntry[V]{hash: hash, key: string(key), value: value}
	e.size = int(unsafe.Sizeof(*e)) + len(key) + m.sizeOf(value)
	set := m.set(hash)
	set.mu.Lock()
	defer set.mu.Unlock()
	set.forget(hash, e.key)
	if e.size > m.setBytes {
		return
	}
	free := set.makeRoom(m.setBytes - e.size)
	set.slots[free].Store(e)
	set.bytes += e.size
}

func (m *Memo[V]) set(hash uint64) *memoSet[V] { return &m.sets[hash>>m.shift] }

// forget empties the slot of a key, if it has one. The caller holds mu.
func (s *memoSet[V]) forget(hash uint64, key string) {
	for i := range s.slots {
		if e := s.slots[i].Load(); e != nil && e.hash == hash && e.key == key {
			s.slots[i].Store(nil)
			s.bytes -= e.size
			return
		}
	}
}

// makeRoom evicts entries until a slot is free and at most limit bytes are taken, and returns the index of
// a free slot. Entries used since the hand last passed are spared once. The caller holds mu.
func (s *memoSet[V]) makeRoom(limit int) (free int) {
	free = -1
	for i := range s.slots {
		if s.slots[i].Load() == nil {
			free = i
		}
	}
	for tries := 0; free < 0 || s.bytes > limit; s.hand = (s.hand + 1) % memoWays {
		tries++
		e := s.slots[s.hand].Load()
		if e == nil || e.used.Swap(false) && tries <= 2*memoWays { // lookups may mark faster than this loop clears
			continue
		}
		s.slots[s.hand].Store(nil)
		s.bytes -= e.size
		free = s.hand
	}
	return free
}
