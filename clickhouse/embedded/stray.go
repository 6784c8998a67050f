//go:build linux || darwin

package embedded

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// strays are queries that were stopped and go on: some functions look at nothing while they work at one value. They give back their
// place, and the process ends when they are too many or too old.
type strays struct {
	obeys  time.Duration // within which a query that is stopped ends
	stuck  time.Duration // after which one that goes on is taken for stuck
	most   int           // how many there may be
	giveUp func(reason string)

	mu sync.Mutex
	n  int
}

// follow watches a query that ends when ended is closed. When ctx is done and the query goes on, leave gives back its place.
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
		s.giveUp(fmt.Sprintf("a query that was stopped %s ago goes on", s.stuck))
		<-ended
	}
}

func (s *strays) add(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n += n
	if n > 0 && s.n > s.most {
		s.giveUp(fmt.Sprintf("%d queries that were stopped go on", s.n))
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
