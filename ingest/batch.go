package ingest

import (
	"fmt"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// The namespace of ids derived from content. It must never change: repeated imports rely on it.
var namespace = uuid.MustParse("6f1d5d0e-3b53-5a7e-9a52-0c3f6f6b9d11")

// eventUUID is the uuid of an event that came without one. The same text in the same project yields the same uuid.
func eventUUID(project int64, text []byte) uuid.UUID {
	return uuid.NewSHA1(namespace, append(fmt.Appendf(nil, "event %d ", project), text...))
}

// PersonUUID is the id of the person created for a distinct id.
func PersonUUID(project int64, distinctID string) uuid.UUID {
	return uuid.NewSHA1(namespace, fmt.Appendf(nil, "person %d %s", project, distinctID))
}

// memberUUID is the id of a row of members. The same member yields the same id.
func memberUUID(project int64, m cohortMember) uuid.UUID {
	return uuid.NewSHA1(namespace, fmt.Appendf(nil, "member %d %d %s", project, m.cohort, m.person))
}

// How much is written at once. Imports write large batches, because each insert costs ClickHouse more than its rows: parts that must be merged later, and the
// columns of JSON paths.
const (
	deliveredRecords = 10_000

	importedRecords = 30_000
	importedBytes   = 20 << 20 // of their source
)

// batch holds the records of an import that are written together.
type batch struct {
	records []record.Record
	bytes   int
	bad     []*record.Error // the bad records among them
	end     error           // what ended the reading after them, io.EOF at the end of the input; nil if there is more to read
}

func (b *batch) isFull(most int) bool {
	return len(b.records) >= most || b.bytes >= importedBytes || len(b.bad) >= most
}

// add puts a record into the batch. An event without uuid gets one.
func (b *batch) add(r record.Record, repeats *repeats, project int64) {
	b.bytes += len(r.Source)
	if r.Kind == record.Event && !r.HasUUID {
		r.UUID = repeats.eventUUID(project, r.Source)
	}
	repeats.count(&r)
	r.Source = nil
	b.records = append(b.records, r)
}

func (b *batch) reset() {
	clear(b.records)
	*b = batch{records: b.records[:0], bad: b.bad[:0]}
}

// repeats assigns uuids to events without one. A text that occurs again within a window is a different event. The size of windows must not change: repeated
// imports of a file rely on it.
type repeats struct {
	seen           map[uuid.UUID]int // how often a text occurred in this window, by its uuid
	records, bytes int               // of this window
}

const (
	windowRecords = 10_000
	windowBytes   = 16 << 20
)

func (w *repeats) eventUUID(project int64, text []byte) uuid.UUID {
	id := eventUUID(project, text)
	again := w.seen[id]
	if w.seen == nil {
		w.seen = map[uuid.UUID]int{}
	}
	w.seen[id]++
	if again == 0 {
		return id
	}
	return eventUUID(project, fmt.Appendf(nil, "%s #%d", text, again))
}

// count counts a record and starts a new window when the current one is full.
func (w *repeats) count(r *record.Record) {
	w.records++
	w.bytes += len(r.Source)
	if w.records >= windowRecords || w.bytes >= windowBytes {
		clear(w.seen)
		w.records, w.bytes = 0, 0
	}
}
