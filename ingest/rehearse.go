package ingest

import (
	"context"
	"hash/maphash"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// rehearse applies a batch to what is known, but writes nothing.
func (s *session) rehearse(ctx context.Context, write func(context.Context) error) error {
	s.refusals = new(refusals)
	if err := s.loadGroupTypes(ctx); err != nil {
		return err
	}
	return write(ctx)
}

// tally counts what an import reports beyond what it writes.
type tally struct {
	seed   maphash.Seed
	people map[uint64]bool // people that are new in a dry run, by the hash of their id
}

// maxTally is how many people a dry run tells apart.
const maxTally = 2_000_000

// noteTimes notes the first and the last time of the events that the project keeps, and the last line.
func (s *session) noteTimes(records []record.Record) {
	for n := range records {
		r := &records[n]
		s.report.Line = max(s.report.Line, r.Line)
		if r.Kind != record.Event || r.Timestamp.Before(s.options.EventsFrom) {
			continue
		}
		if s.report.First.IsZero() || r.Timestamp.Before(s.report.First) {
			s.report.First = r.Timestamp
		}
		if r.Timestamp.After(s.report.Last) {
			s.report.Last = r.Timestamp
		}
	}
}

// countPeople counts the people that a batch brings, before they are marked as stored. A dry run forgets people between batches, so it remembers which ones it
// counted.
func (s *session) countPeople() {
	for id, one := range s.people.persons {
		switch {
		case !one.changed || one.stored != one.deleted:
		case !one.deleted && s.counts(id):
			s.report.People++
		case one.deleted:
			s.report.Merged++
		}
	}
}

func (s *session) counts(id uuid.UUID) bool {
	if !s.options.DryRun {
		return true
	}
	if s.tally.people == nil {
		s.tally.people, s.tally.seed = map[uint64]bool{}, maphash.MakeSeed()
	}
	hash := maphash.Bytes(s.tally.seed, id[:])
	if s.tally.people[hash] || len(s.tally.people) >= maxTally {
		return false
	}
	s.tally.people[hash] = true
	return true
}
