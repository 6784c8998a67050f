package ingest

import (
	"iter"
	"slices"
	"time"

	"github.com/caddy-analytics/caddy-analytics/physical"
)

// Writes is told which data of which projects changes. Its methods may be called from several goroutines at once.
type Writes interface {
	// Begin is called before rows of a project are written to a table; of events it gets the times. end is called when they are there, or
	// with an error. Unless that is a refusal of the rows, ClickHouse may be writing them still.
	Begin(project int64, table string, times iter.Seq[time.Time]) (end func(error))
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

// times are the times of events.
func (b *block) times() iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		place := slices.Index(b.columns, "timestamp")
		if b.table != physical.Events || place < 0 {
			return
		}
		for _, row := range b.rows {
			if at, ok := row.values[place].(time.Time); ok && !yield(at) {
				return
			}
		}
	}
}
