// Package backoff says how long to wait before work that an outage has ended is tried again: a second at first, and twice as long after each failure, up
// to a minute.
package backoff

import (
	"maps"
	"sync"
	"time"
)

const (
	first   = time.Second
	longest = time.Minute
)

// Pauses are the pauses of things by name, in memory only. The zero value has none. Its methods are safe for concurrent use.
type Pauses[N comparable] struct {
	mu sync.Mutex
	of map[N]pause
}

type pause struct {
	until time.Time
	last  time.Duration
}

// Holds reports whether something must not be tried yet.
func (p *Pauses[N]) Holds(n N, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return now.Before(p.of[n].until)
}

// Failed begins the next pause.
func (p *Pauses[N]) Failed(n N, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[N]pause{}
	}
	length := min(max(first, 2*p.of[n].last), longest)
	p.of[n] = pause{now.Add(length), length}
}

// End ends a pause. The next failure is the first.
func (p *Pauses[N]) End(n N) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.of, n)
}

// Keep ends the pauses of things that no longer exist.
func (p *Pauses[N]) Keep(there func(N) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.of, func(n N, _ pause) bool { return !there(n) })
}
