package registry

import (
	"context"
	"time"
)

// NodePrefix begins the names under which nodes keep what others are to know of them.
const NodePrefix = "node-"

// Sharer is a Store that several nodes share.
type Sharer interface {
	// KeptAll returns what is kept under all names that begin with prefix.
	KeptAll(ctx context.Context, prefix string) (map[string][]byte, error)
	// Take takes up to want queries out of an allowance that all nodes share, by the store's clock. It returns how many it got and, if that is fewer than
	// wanted, when there is one again. A negative want gives back what was not used.
	Take(ctx context.Context, allowance string, rate Rate, want int) (got int, again time.Duration, err error)
}

// Sharer returns the store as one that several nodes share, if it is such a store.
func (r *Registry) Sharer() (Sharer, bool) {
	s, ok := r.store.(Sharer)
	return s, ok
}
