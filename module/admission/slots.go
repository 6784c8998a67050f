package admission

import (
	"context"
	"sync"
)

// Slots limit how much of something runs at a time for each shard of ClickHouse, however many places there are.
type Slots struct {
	most int

	mu sync.Mutex
	of map[string]chan struct{} // by shard; has an element for each that is running
}

// NewSlots gives each shard that many slots.
func NewSlots(most int) *Slots { return &Slots{most: most, of: map[string]chan struct{}{}} }

// Enter waits for a slot of a shard, which the caller must leave. The error is the cause of the context's end.
func (s *Slots) Enter(ctx context.Context, shard string) (leave func(), err error) {
	s.mu.Lock()
	taken := s.of[shard]
	if taken == nil {
		taken = make(chan struct{}, s.most)
		s.of[shard] = taken
	}
	s.mu.Unlock()
	select {
	case taken <- struct{}{}:
		return func() { <-taken }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
