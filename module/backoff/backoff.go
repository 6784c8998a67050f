// Package backoff says which errors are outages, and keeps for how long what one has ended is not tried again: a second at first, and twice as long
// after each failure, up to a minute.
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

// Pauses are those of what goes by a name. They are in memory alone. The zero value has none; its methods may be called from several goroutines
// at once.
type Pauses[N comparable] struct {
	mu sync.Mutex
	of map[N]pause
}

type pause struct {
	until time.Time
	last  time.Duration
}

// Holds reports whether something is not to be tried yet.
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

// Keep ends the pauses of what is not there any more.
func (p *Pauses[N]) Keep(there func(N) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.of, func(n N, _ pause) bool { return !there(n) })
}
