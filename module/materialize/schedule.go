package materialize

import (
	"maps"
	"slices"
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

// state is what the query of a version's table depends on, and the fill of the table.
type state struct {
	serial   uint64    // registry.Snapshot.QuerySerial
	from     time.Time // registry.ProjectSchema.EventsFrom, which moves each day
	fill     int64
	buckets  map[string]string
	optional []string
}

func stateOf(snap *registry.Snapshot, m registry.Materialized, now time.Time) state {
	return state{
		serial: snap.QuerySerial(m.Project), from: snap.Schema(m.Project).EventsFrom(now),
		fill: m.Table.Fill, buckets: m.Table.Buckets, optional: m.OptionalBreakdowns,
	}
}

func (s state) equals(other state) bool {
	return s.serial == other.serial && s.from.Equal(other.from) && s.fill == other.fill && maps.Equal(s.buckets, other.buckets) && slices.Equal(s.optional, other.optional)
}

// outdated reports whether a table was filled by a different query than would fill it now: the project's time zone, the type of a property, an action or
// the members of a cohort have changed, or the day has. A table that is found not to be is looked at again when its state has changed.
func (f *Filler) outdated(snap *registry.Snapshot, m registry.Materialized, now time.Time) bool {
	if now.Sub(m.Table.AsOf) < minFillInterval || f.Shards.Of(m.Endpoint.Project).Known() == nil {
		return false
	}
	n, is := nameOf(m), stateOf(snap, m, now)
	if f.isCurrent(n, is) {
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

// isCurrent reports whether a version's table was found to be current in a state.
func (f *Filler) isCurrent(n name, is state) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	was, known := f.current[n]
	return known && was.equals(is)
}
