package ingest

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// Writes is told which data of which projects changes. Its methods may be called from several goroutines at once.
type Writes interface {
	// Begin is called before rows of a project are written to a table. times are in the hours of the events that the rows are or give another person; nil
	// where that is not known. end is called when the rows are there, or with an error. Unless that is a refusal of the rows, ClickHouse may be writing
	// them still.
	Begin(project int64, table string, times iter.Seq[time.Time]) (end func(error))
	// Watches reports whether it is of use to find out the times of the events that get another person.
	Watches(project int64) bool
	// Doubtful reports whether a write has ended with an error whose rows may still come.
	Doubtful(project int64) bool
	// Settled is called when those rows are there or will not come.
	Settled(project int64)
}

// begin tells of a block that is about to be written.
func (s *store) begin(b *block) (end func(error)) {
	if s.writes == nil {
		return func(error) {}
	}
	return s.writes.Begin(s.project, b.table, b.times())
}

// times are in the hours of the events that the rows are or give another person; nil if they are not known.
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
	// movedIDs is how many distinct ids may change hands in one batch for their events to be looked up, and movedHours in how many hours these may be.
	movedIDs, movedHours = 200, 1000
	// movedTime is how long that may take.
	movedTime = time.Second
)

// findMoved finds out in which hours the events are that a block of overrides gives another person. Where that is too much, it is not known.
func (s *store) findMoved(ctx context.Context, b *block) {
	if len(b.rows) == 0 || len(b.rows) > movedIDs || s.writes == nil || !s.writes.Watches(s.project) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, movedTime)
	defer cancel()
	place, names := slices.Index(b.columns, "distinct_id"), make([]string, len(b.rows))
	for n, row := range b.rows {
		names[n], _ = row.values[place].(string)
	}
	moved := []time.Time{}
	err := s.atMost(ctx, movedHours, "SELECT DISTINCT intDiv(toUnixTimestamp64Micro(timestamp) - positiveModulo(toUnixTimestamp64Micro(timestamp), 3600000000), 1000000) "+
		"FROM events WHERE team_id = {project:Int64} AND distinct_id IN {ids:Array(String)}",
		func(cells []clickhouse.Cell) error {
			seconds, err := cells[0].Int()
			moved = append(moved, time.Unix(seconds, 0))
			return err
		}, clickhouse.ArrayParam("ids", "String", names))
	if err == nil {
		b.moved = moved
	}
}
