package background

import (
	"maps"
	"sync"
	"time"
)

// ClockSkew is the most by which the clocks of servers may differ.
const ClockSkew = time.Minute

// Ahead replaces times that are further in the future than they can be, because they were recorded while a clock was ahead, by the times when this server first saw
// them. Otherwise whatever waits for them waits until the clock gets there, perhaps for years. The time when they were first seen, in place of now, keeps two
// servers whose clocks differ from doing the same work in turns, without a pause. The zero value is ready for use, and its methods are safe for concurrent use.
type Ahead[N comparable] struct {
	mu   sync.Mutex
	seen map[N]sighting
}

// sighting says when a time was first seen.
type sighting struct{ recorded, at time.Time }

// Past returns a time that was recorded for n, which should not be in the future.
func (a *Ahead[N]) Past(n N, recorded, now time.Time) time.Time {
	return a.Within(n, recorded, now, ClockSkew)
}

// Within returns a time that was recorded for n, which should be at most this far in the future.
func (a *Ahead[N]) Within(n N, recorded, now time.Time, most time.Duration) time.Time {
	if recorded.Sub(now) <= most {
		return recorded
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if s, known := a.seen[n]; known && s.recorded.Equal(recorded) && !s.at.After(now) {
		return s.at
	}
	maps.DeleteFunc(a.seen, func(_ N, s sighting) bool { return !s.recorded.After(now) })
	if a.seen == nil {
		a.seen = map[N]sighting{}
	}
	a.seen[n] = sighting{recorded, now}
	return now
}
