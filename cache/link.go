package cache

import (
	"sync/atomic"
	"weak"
)

// Link leads to a value that somebody else keeps. It is for values of a Memo: what an entry merely looked up, such as the counters of an
// endpoint, does not stay in memory with the entry once it is forgotten where it belongs. The zero Link leads nowhere. All methods are safe for
// concurrent use; following a Link takes about 8 ns and does not allocate.
type Link[T any] struct {
	to atomic.Pointer[weak.Pointer[T]]
}

// Follow returns the value, and nil for one that is gone or was never set.
func (l *Link[T]) Follow() *T {
	if to := l.to.Load(); to != nil {
		return to.Value()
	}
	return nil
}

// Set has the link lead to a value.
func (l *Link[T]) Set(value *T) {
	to := weak.Make(value)
	l.to.Store(&to)
}
