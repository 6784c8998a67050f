package ingest

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/google/uuid"
)

// sieve is a set of things that reports which things it surely does not hold. It is made of Bloom filters.
type sieve struct {
	budget  *atomic.Int64 // bytes that all sieves may still take
	filters []bloom       // things are added to the last one
}

// forget empties the sieve.
func (s *sieve) forget() {
	s.budget.Add(s.bytes())
	s.filters = nil
}

// bytes is how many bytes the sieve takes.
func (s *sieve) bytes() (size int64) {
	for i := range s.filters {
		size += s.filters[i].bytes()
	}
	return size
}

// has reports whether a thing may have been added. It is always true for a thing that was.
func (s *sieve) has(h hashed) bool {
	for i := range s.filters {
		if s.filters[i].has(h) {
			return true
		}
	}
	return false
}

// add adds a thing. It reports whether there was room for it.
func (s *sieve) add(h hashed) bool {
	if last := len(s.filters) - 1; last < 0 || s.filters[last].full() {
		if !s.grow() {
			return false
		}
	}
	s.filters[len(s.filters)-1].add(h)
	return true
}

// grow adds a filter, up to four times as large as the last one. It reports whether there was room for it.
func (s *sieve) grow() bool {
	const first, most = 1 << 10, 1 << 19 // blocks: 64 KiB, 32 MiB
	blocks := first
	if last := len(s.filters) - 1; last >= 0 {
		blocks = min(4*len(s.filters[last].blocks), most)
	}
	f := bloom{blocks: make([][8]uint64, blocks)}
	if s.budget.Add(-f.bytes()) < 0 {
		s.budget.Add(f.bytes())
		return false
	}
	s.filters = append(s.filters, f)
	return true
}

// bloom is a Bloom filter with 16 bits for each thing. All bits of a thing are in one block, which is as large as a cache line.
type bloom struct {
	blocks [][8]uint64
	things int
}

const blockThings = 32

func (f *bloom) bytes() int64 { return int64(len(f.blocks)) * 64 }
func (f *bloom) full() bool   { return f.things >= blockThings*len(f.blocks) }

type hashed struct{ block, bits uint64 }

// hasher hashes things of one kind. Different hashers hash the same bytes differently.
type hasher [2]maphash.Seed

func newHasher() hasher { return hasher{maphash.MakeSeed(), maphash.MakeSeed()} }

func (h hasher) uuid(id uuid.UUID) hashed {
	return hashed{maphash.Bytes(h[0], id[:]), maphash.Bytes(h[1], id[:])}
}

func (h hasher) text(s string) hashed {
	return hashed{maphash.String(h[0], s), maphash.String(h[1], s)}
}

// probes is how many bits are set for a thing.
const probes = 6

func (f *bloom) add(h hashed) {
	block := &f.blocks[h.block%uint64(len(f.blocks))]
	for range probes {
		block[h.bits>>6&7] |= 1 << (h.bits & 63)
		h.bits >>= 9
	}
	f.things++
}

func (f *bloom) has(h hashed) bool {
	block := &f.blocks[h.block%uint64(len(f.blocks))]
	for range probes {
		if block[h.bits>>6&7]&(1<<(h.bits&63)) == 0 {
			return false
		}
		h.bits >>= 9
	}
	return true
}
