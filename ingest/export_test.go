package ingest

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// Before calls f before each insert, which fails with its error.
func (i *Ingester) Before(f func(table string) error) {
	i.inserting = func(b block) error { return f(b.table) }
}

// Poison makes ClickHouse refuse every block with an event of a name.
func (i *Ingester) Poison(event string) {
	i.inserting = func(b block) error {
		for _, r := range b.rows {
			if b.table == physical.Events && slices.Contains(r.values, any(event)) {
				return &clickhouse.Error{Kind: clickhouse.UserError, Code: 117, Name: "incorrect_data"}
			}
		}
		return nil
	}
}

// SurelyNew reports whether an event of a project would be written without a lookup.
func (i *Ingester) SurelyNew(project int64, id uuid.UUID, at time.Time) bool {
	return i.project(project).seen.surelyNew(id, dayOf(at))
}

// KeptTypes is how many types of properties are remembered for a project although nothing is delivered.
func (i *Ingester) KeptTypes(project int64) int {
	s := i.project(project).delivery
	return len(s.types.known) + len(s.types.found) + len(s.options.KnownTypes)
}

// Patient makes blocks wait for those of other projects until all of these wait, or for ten seconds.
func Patient(i *Ingester) { i.gathering.patience = 10 * time.Second }

// Rows makes batches be written in parts, each as soon as its rows of events have that many bytes of text.
func (i *Ingester) Rows(bytes int) { i.rows = bytes }

// Batches makes imports write that many records at once, and keep that many people and groups in between.
func (i *Ingester) Batches(records, kept int) { i.most, i.state = records, kept }
