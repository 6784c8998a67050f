package ingest

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// Writes is told which data of which projects changes. Its methods may be called concurrently.
type Writes interface {
	// Begin is called before rows of a project are written to a table. times yields times in the hours of the events that the rows are, or for which they change
	// the person or its creation time, except events without a profile; it is nil if they are not known. end is called when the rows are there, or with an error.
	// Unless the error is a refusal of the rows, ClickHouse may still be writing them.
	Begin(project int64, table string, times iter.Seq[time.Time]) (end func(error))
	// Watches reports whether looking up the times of events is of use.
	Watches(project int64) bool
	// Doubtful reports whether a write has ended with an error although its rows may still come.
	Doubtful(project int64) bool
	// Settled is called when those rows are there or can no longer come.
	Settled(project int64)
}

// begin announces a block that is about to be written.
func (s *store) begin(b *block) (end func(error)) {
	if s.writes == nil {
		return func(error) {}
	}
	return s.writes.Begin(s.project, b.table, b.times())
}

// times returns the times for Writes.Begin.
func (b *block) times() iter.Seq[time.Time] {
	if b.table != physical.Events {
		if b.moved == nil {
			return nil
		}
		return slices.Values(b.moved)
	}
	return func(yield func(time.Time) bool) {
		place := slices.Index(b.columns, "timestamp")
		if place < 0 {
			return
		}
		for _, row := range b.rows {
			if at, ok := row.values[place].(time.Time); ok && !yield(at) {
				return
			}
		}
	}
}

const (
	// movedIDs is how many distinct ids one batch looks up events of at most, and movedHours how many hours these may be in.
	movedIDs, movedHours = 200, 1000
	// movedTime is how long such a lookup may take. After one that took slowLookup or longer there is none for restFor times as long, so that lookups slow down
	// writing by a twentieth at most.
	movedTime, slowLookup, restFor = time.Second, movedTime / 4, 20
)

// findMoved finds the hours of the events for which blocks of overrides and of persons change the person or its creation time. If that is too much, the hours
// stay unknown.
func (s *session) findMoved(ctx context.Context, overrides, persons *block) {
	names, known := s.people.recast()
	if known && len(names) == 0 {
		persons.moved = []time.Time{}
	}
	place := slices.Index(overrides.columns, "distinct_id")
	for _, row := range overrides.rows {
		name, _ := row.values[place].(string)
		names = append(names, name)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	began := time.Now()
	if len(names) == 0 || len(names) > movedIDs || began.Before(s.lookUp) || s.store.writes == nil || !s.store.writes.Watches(s.store.project) {
		return
	}
	hours, err := s.hoursOf(ctx, names)
	if took := time.Since(began); took >= slowLookup {
		s.lookUp = began.Add(restFor * took)
	}
	if err != nil {
		return
	}
	overrides.moved = hours
	if known {
		persons.moved = hours
	}
}

// hoursOf returns a time in each hour in which distinct ids have events.
func (s *store) hoursOf(ctx context.Context, names []string) ([]time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, movedTime)
	defer cancel()
	hours := []time.Time{}
	err := s.atMost(ctx, movedHours, "SELECT DISTINCT intDiv(toUnixTimestamp64Micro(timestamp) - positiveModulo(toUnixTimestamp64Micro(timestamp), 3600000000), 1000000) "+
		"FROM events WHERE team_id = {project:Int64} AND distinct_id IN {ids:Array(String)}",
		func(cells []clickhouse.Cell) error {
			seconds, err := cells[0].Int()
			hours = append(hours, time.Unix(seconds, 0))
			return err
		}, clickhouse.ArrayParam("ids", "String", names))
	return hours, err
}
