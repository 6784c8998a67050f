package ingest

import (
	"context"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// session is what is known while records of one project are taken in.
type session struct {
	options Options
	report  Report
	store   *store
	people  *people
	groups  *groups
	members []givenMember // of this batch
	types   typeLearner
	refused map[int]bool // lines that the server would not take
}

func newSession(ctx context.Context, client *clickhouse.Client, options Options) (*session, error) {
	store, err := newStore(ctx, client, options.Project, options.Now)
	if err != nil {
		return nil, err
	}
	s := &session{
		options: options,
		store:   store,
		types:   newTypeLearner(options.KnownTypes, options.LearnTypes, options.MaxTypes),
		refused: map[int]bool{},
	}
	s.people = &people{store: store, noRoom: s.leftOut}
	s.groups = &groups{store: store, noRoom: s.leftOut, types: map[string]int{}}
	s.forget()
	for _, t := range options.GroupTypes {
		s.groups.types[t.Name] = t.Index
	}
	return s, nil
}

func (s *session) result() Report {
	report := s.report
	report.Learned, report.Untyped = s.types.learned(), s.types.full
	report.GroupTypes = s.groups.list()
	return report
}

func (s *session) bad(line int, reason error) {
	s.report.Bad++
	if len(s.report.BadLines) < maxBad {
		s.report.BadLines = append(s.report.BadLines, BadLine{Line: line, Reason: reason.Error()})
	}
}

// leftOut counts a property for which its person or group has no room.
func (s *session) leftOut(line int) {
	s.report.LeftOut++
	if s.report.LeftOutAt == 0 {
		s.report.LeftOutAt = line
	}
}

// How much is kept between batches: distinct ids and groups, and bytes of their properties. Beyond it all is
// forgotten and looked up again.
const (
	maxState      = 50_000
	maxStateBytes = 64 << 20
)

func (s *session) forget() {
	s.people.forget()
	s.groups.forget()
}

// load looks up what a batch speaks of and is not known yet.
func (s *session) load(ctx context.Context, records []record.Record) error {
	if len(s.people.ids)+len(s.groups.known) > maxState || s.people.bytes()+s.groups.bytes() > maxStateBytes {
		s.forget()
	}
	if err := s.people.load(ctx, records); err != nil {
		return err
	}
	return s.groups.load(ctx, records)
}

// write applies the records of a batch in their order. Persons and groups are written before the events, because
// an import that broke off passes over the events that are there, and over what they say, when it is run again.
// Overrides come first of all: they are found out by comparing with what the other tables hold.
func (s *session) write(ctx context.Context, records []record.Record) error {
	if err := s.load(ctx, records); err != nil {
		return err
	}
	events, err := s.apply(ctx, records)
	if err != nil {
		return err
	}
	if err := s.groups.date(ctx); err != nil {
		return err
	}
	members, err := s.memberRows(ctx)
	if err != nil {
		return err
	}
	moved, ids := s.people.idRows()
	for _, t := range []struct {
		name string
		rows []row
	}{
		{"person_distinct_id_overrides", moved},
		{"person", s.people.rows()},
		{"person_distinct_id2", ids},
		{"groups", s.groups.rows()},
		{physical.StaticMembers, members},
		{physical.Events, events},
	} {
		if err := s.insert(ctx, t.name, t.rows); err != nil {
			return err
		}
	}
	s.people.written()
	s.groups.written()
	return nil
}

// apply takes in what records say, and returns the rows of the events that are new.
func (s *session) apply(ctx context.Context, records []record.Record) ([]row, error) {
	known, err := s.store.knownEvents(ctx, records)
	if err != nil {
		return nil, err
	}
	events := make([]row, 0, len(records))
	for n := range records {
		r := &records[n]
		switch r.Kind {
		case record.Person:
			err = s.person(ctx, r)
		case record.Group:
			s.group(r)
		case record.Cohort:
			s.cohort(r)
		case record.Event:
			events, err = s.event(ctx, r, known, events)
		}
		if err != nil {
			return nil, err
		}
	}
	return events, nil
}

func (s *session) person(ctx context.Context, r *record.Record) error {
	if err := s.people.describe(ctx, r); err != nil {
		return err
	}
	s.types.observe(personScope, 0, r.Properties)
	s.report.Persons++
	return nil
}

func (s *session) group(r *record.Record) {
	id, err := s.groups.identify(r)
	if err != nil {
		s.bad(r.Line, err)
		return
	}
	s.describeGroup(r.Line, id, r.Properties).created(r)
	s.report.Groups++
}

func (s *session) describeGroup(line int, id groupID, properties record.Object) *group {
	s.types.observe(groupScope, id.index, properties)
	return s.groups.describe(line, id, properties)
}

// event adds the row of an event that is not known.
func (s *session) event(ctx context.Context, r *record.Record, known map[uuid.UUID]bool, rows []row) ([]row, error) {
	s.report.Events++
	keys := s.groups.ofEvent(r)
	if known[r.UUID] {
		s.report.Duplicates++
		s.learn(r)
		return rows, nil
	}
	known[r.UUID] = true
	id, p, err := s.people.ofEvent(ctx, r)
	if err != nil {
		return nil, err
	}
	s.learn(r)
	if name, key, set := groupIdentify(r); key != "" {
		if index, ok := s.groups.index(name); ok {
			s.describeGroup(r.Line, groupID{index, key}, set).seen(r.Line, r.Timestamp)
		}
	}
	return append(rows, s.eventRow(r, id, p, keys)), nil
}

// learn takes the types that an event shows. Events that are there already are asked again: the import
// that wrote them may have broken off before anyone kept what it had learned.
func (s *session) learn(r *record.Record) {
	s.types.observe(eventScope, 0, r.Properties)
	s.types.observe(personScope, 0, r.Properties.Get("$set_once").Object())
	s.types.observe(personScope, 0, r.Properties.Get("$set").Object())
}
