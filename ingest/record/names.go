package record

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
)

// ManyNames reports whether the object has more than MaxNames names. The objects of a list share theirs, as they share the paths of a JSON column.
func (o Object) ManyNames() bool {
	n := len(o)
	if n > MaxNames {
		return true
	}
	for _, m := range o {
		n += m.Value.colons()
	}
	if n <= MaxNames {
		return false
	}
	c := nameCounter{most: MaxNames - len(o)}
	for i, m := range o {
		if !c.count(m.Value, uint64(i)) {
			return true
		}
	}
	return false
}

// Names counts the names of the objects in the value. The objects of a list share theirs.
func (v Value) Names() int {
	n := v.colons()
	if n < 2 {
		return n
	}
	c := nameCounter{most: n}
	c.count(v, 0)
	return len(c.seen)
}

// nameCounter counts the different paths that lead to a name.
type nameCounter struct {
	most int
	seen map[uint64]struct{} // hashes of paths
}

var nameSeed = maphash.MakeSeed()

// count adds the names of a value to those counted before, and reports whether there are at most most. Parents of different values need different numbers. It
// relies on nothing: of a text that is not JSON, it counts some names or none.
func (c *nameCounter) count(text []byte, parent uint64) bool {
	if c.seen == nil {
		c.seen = map[uint64]struct{}{}
	}
	// Each open object or list has the path of its members or items, and that of the last member.
	type open struct{ path, last uint64 }
	stack := append(make([]open, 0, maxDepth+2), open{parent, parent})
	for {
		at := nextStructural(text)
		if at < 0 {
			return true
		}
		top := &stack[len(stack)-1]
		switch text[at] {
		case '{', '[':
			if len(stack) > maxDepth {
				return true // who reads it refuses it
			}
			stack = append(stack, open{top.last, top.last})
		case '}', ']':
			if stack = stack[:len(stack)-1]; len(stack) < 2 {
				return true
			}
		case '"':
			end := stringEnd(text, at+1)
			if end < 0 {
				return true
			}
			key := text[at:end]
			if text = bytes.TrimLeft(text[end:], " \t\r\n"); len(text) == 0 || text[0] != ':' {
				continue
			}
			top.last = pathHash(top.path, key)
			if c.seen[top.last] = struct{}{}; len(c.seen) > c.most {
				return false
			}
			continue
		}
		text = text[at+1:]
	}
}

func pathHash(parent uint64, key []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(nameSeed)
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], parent)
	_, _ = h.Write(b[:])
	_, _ = h.Write(key)
	return h.Sum64()
}

// stringEnd returns the position after the quote that ends a string, which begins at a position; -1 if there is none.
func stringEnd(text []byte, at int) int {
	for start := at; ; {
		quote := bytes.IndexByte(text[at:], '"')
		if quote < 0 {
			return -1
		}
		at += quote
		slashes := 0
		for at-1-slashes >= start && text[at-1-slashes] == '\\' {
			slashes++
		}
		if at++; slashes%2 == 0 {
			return at
		}
	}
}
