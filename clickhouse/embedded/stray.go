//go:build linux || darwin

package embedded

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// strays are stopped queries that keep running, because some functions do not check for cancellation while they process one value. They give up their
// slots, and the process ends if there are too many or if one is too old.
type strays struct {
	obeys  time.Duration // how long a stopped query may take to end
	stuck  time.Duration // how long it may keep running before it counts as stuck
	most   int           // the maximum number of strays
	giveUp func(reason string)

	mu sync.Mutex
	n  int
}

// follow watches a query, which has ended when ended is closed. If it keeps running after ctx is done, follow calls leave to give up its slot.
func (s *strays) follow(ctx context.Context, ended <-chan struct{}, leave func()) {
	select {
	case <-ended:
		return
	case <-ctx.Done():
	}
	if endsWithin(ended, s.obeys) {
		return
	}
	leave()
	s.add(1)
	defer s.add(-1)
	if !endsWithin(ended, s.stuck-s.obeys) {
		s.giveUp(fmt.Sprintf("a query that was stopped %s ago keeps running", s.stuck))
		<-ended
	}
}

func (s *strays) add(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n += n
	if n > 0 && s.n > s.most {
		s.giveUp(fmt.Sprintf("%d stopped queries keep running", s.n))
	}
}

func endsWithin(ended <-chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-ended:
		return true
	case <-timer.C:
		return false
	}
}
