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

// batch is the records that are written together.
type batch struct {
	records []record.Record
	bytes   int
	seen    map[uuid.UUID]int // how often a text of this batch came before
}

// add puts a record into the batch. An event without uuid gets one.
func (b *batch) add(project int64, r record.Record) {
	b.bytes += len(r.Source)
	if r.Kind == record.Event && !r.HasUUID {
		r.UUID = b.eventUUID(project, r.Source)
	}
	r.Source = nil
	b.records = append(b.records, r)
}

// eventUUID is the uuid of an event that has none. A text that occurs again in the batch is another event.
func (b *batch) eventUUID(project int64, text []byte) uuid.UUID {
	id := eventUUID(project, text)
	again := b.seen[id]
	if b.seen == nil {
		b.seen = map[uuid.UUID]int{}
	}
	b.seen[id]++
	if again == 0 {
		return id
	}
	return eventUUID(project, fmt.Appendf(nil, "%s #%d", text, again))
}

func (b *batch) reset() {
	b.records, b.bytes = b.records[:0], 0
	clear(b.seen)
}
