package materialize

import (
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// A fill begins when this part of the version's freshness has passed, so that it ends before the current table is too old; but not more often than
// once in minFillInterval.
const (
	refillFraction  = 0.9
	minFillInterval = time.Minute
)

// A failed fill is tried again after firstWait, and then each time after twice as long, at most longestWait.
const (
	firstWait   = time.Minute
	longestWait = 6 * time.Hour
)

// due reports whether the table of a version is to be filled now.
func (f *Filler) due(snap *registry.Snapshot, m registry.Materialized, now time.Time) bool {
	n, version, table := nameOf(m), *m.Version, *m.Table // copies, since others read those of the snapshot
	table.AsOf = f.ahead.Past(n, table.AsOf, now)
	table.LastErrorAt = f.failed.Past(n, table.LastErrorAt, now)
	version.Table, m.Version = &table, &version
	switch {
	case f.pauses.Holds(n, now):
		return false
	case !scheduled(m.Table, m.FreshnessSeconds, now) && !f.outdated(snap, m, now):
		return false
	}
	return mayRetry(m.Table, now)
}

// scheduled reports whether a version waits for a fill or its table is old.
func scheduled(t *registry.Table, freshness int, now time.Time) bool {
	if t.Pending != 0 || t.Fill == 0 {
		return true
	}
	every := max(time.Duration(float64(freshness)*refillFraction*float64(time.Second)), minFillInterval)
	return now.Sub(t.AsOf) >= every
}

// mayRetry reports whether a fill may be tried again after earlier failures.
func mayRetry(t *registry.Table, now time.Time) bool {
	if t.Errors == 0 {
		return true
	}
	return !now.Before(t.LastErrorAt.Add(min(firstWait<<min(t.Errors-1, 20), longestWait)))
}

// state is what a version's table was compared in: the meaning of the project's queries, and the fill of the table.
type state struct {
	serial uint64 // registry.Snapshot.QuerySerial
	fill   int64
}

// outdated reports whether a table was filled by a different query than would fill it now: the project's time zone, the type of a property, an action or
// the members of a cohort have changed. A table that is found not to be is looked at again when it, or the meaning of the project's queries, has changed.
func (f *Filler) outdated(snap *registry.Snapshot, m registry.Materialized, now time.Time) bool {
	if now.Sub(m.Table.AsOf) < minFillInterval || f.Shards.Of(m.Endpoint.Project).Known() == nil {
		return false
	}
	n, is := nameOf(m), state{snap.QuerySerial(m.Project), m.Table.Fill}
	if f.stateOf(n) == is {
		return false
	}
	plan, err := f.known(snap, m, now)
	if err != nil || plan.Mark != m.Table.Of {
		return err == nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.current[n] = is
	return false
}

// stateOf returns the state in which a version's table was found to be current; the zero state for none.
func (f *Filler) stateOf(n name) state {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.current[n]
}
