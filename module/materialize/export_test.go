package materialize

import (
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Look begins the fills that are due, as the filler does itself once in a while.
func (f *Filler) Look() { f.look() }

// Idle reports whether no fill is in progress.
func (f *Filler) Idle() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.filling) == 0
}

// Outdated reports whether a version's table would be filled by another query now.
func (f *Filler) Outdated(snap *registry.Snapshot, m registry.Materialized, now time.Time) bool {
	return f.outdated(snap, m, now)
}
