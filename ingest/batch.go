package ingest

import (
	"fmt"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// The namespace of the ids that are made from content. It must never change: importing again relies on it.
var namespace = uuid.MustParse("6f1d5d0e-3b53-5a7e-9a52-0c3f6f6b9d11")

// eventUUID is the uuid of an event that has none: the same text in the same project has the same one.
func eventUUID(project int64, text []byte) uuid.UUID {
	return uuid.NewSHA1(namespace, append(fmt.Appendf(nil, "event %d ", project), text...))
}

// personUUID is the id of the person that a distinct id makes.
func personUUID(project int64, distinctID string) uuid.UUID {
	return uuid.NewSHA1(namespace, fmt.Appendf(nil, "person %d %s", project, distinctID))
}

// memberUUID is the id of a row of members: the same member has the same one.
func memberUUID(project int64, m cohortMember) uuid.UUID {
	return uuid.NewSHA1(namespace, fmt.Appendf(nil, "member %d %d %s", project, m.cohort, m.person))
}

// How much is written at once. An import writes large batches, because of what each costs ClickHouse beside its rows: parts to be merged later, and
// the columns of JSON paths.
const (
	deliveredRecords = 10_000

	importedRecords = 50_000
	importedBytes   = 24 << 20 // of their source
)

// batch is the records of an import that are written together.
type batch struct {
	records []record.Record
	bytes   int
	bad     []*record.Error // between them
	end     error           // after them: io.EOF, or what ended the reading; nil if there is more to read
}

func (b *batch) isFull() bool {
	return len(b.records) >= importedRecords || b.bytes >= importedBytes || len(b.bad) >= importedRecords
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

// repeats gives uuids to events that have none. A text that occurs again in the same window is another event. Windows must stay as they are:
// importing a file again relies on them.
type repeats struct {
	seen           map[uuid.UUID]int // how often a text of this window came before
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

// count counts a record, and begins a new window after the last one of a window.
func (w *repeats) count(r *record.Record) {
	w.records++
	w.bytes += len(r.Source)
	if w.records >= windowRecords || w.bytes >= windowBytes {
		clear(w.seen)
		w.records, w.bytes = 0, 0
	}
}
