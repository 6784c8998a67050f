package registry

import (
	"context"
	"time"
)

// NodePrefix is the prefix of the names under which nodes keep what others need to know about them.
const NodePrefix = "node-"

// Sharer is a Store that several nodes share.
type Sharer interface {
	// KeptAll returns the data that is kept under all names with a prefix.
	KeptAll(ctx context.Context, prefix string) (map[string][]byte, error)
	// Take takes up to want queries out of an allowance that all nodes share, by the store's clock. It returns how many it got and, if that is fewer than wanted,
	// how long until there is one again. A negative want gives back what was not used.
	Take(ctx context.Context, allowance string, rate Rate, want int) (got int, again time.Duration, err error)
}

// Sharer returns the store as a Sharer, if it is one.
func (r *Registry) Sharer() (Sharer, bool) {
	s, ok := r.store.(Sharer)
	return s, ok
}
