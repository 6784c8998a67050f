package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// session is the state of taking in records of one project.
type session struct {
	options  Options
	report   Report
	store    *store
	people   *people
	groups   *groups
	members  []givenMember // of this batch
	types    typeLearner
	most     int          // records of a batch of an import
	rows     int          // bytes of text of the rows of events that are made at once
	state    int          // limit in place of maxState; 0 by default
	refused  map[int]bool // lines that ClickHouse refused
	refusals *refusals    // of the project
	// What was deleted of the project, as of this batch.
	deletions Deletions
	intents   Intents
	tally     tally
	lookUp    time.Time // hours of events are not looked up before this time
	// The store's method, except in tests.
	hoursOf func(ctx context.Context, names []string) ([]time.Time, error)
}

func (i *Ingester) newSession(ctx context.Context, options Options) (*session, error) {
	store, err := i.newStore(ctx, options.Project, options.Now)
	if err != nil {
		return nil, err
	}
	store.inserting = i.inserting
	s := &session{store: store, intents: i.Intents, most: cmp.Or(i.most, importedRecords), rows: cmp.Or(i.rows, maxBlock), state: i.state, hoursOf: store.hoursOf}
	s.people = &people{store: store, noRoom: s.leftOut}
	s.groups = &groups{store: store, noRoom: s.leftOut}
	s.forget()
	s.begin(options)
	return s, nil
}

// begin starts a report with other options. What is known about people and groups is kept.
func (s *session) begin(options Options) {
	s.options, s.report, s.refused = options, Report{}, map[int]bool{}
	s.store.now, s.store.written = options.Now, options.Now
	s.people.captured = options.Captured
	s.types = newTypeLearner(options.KnownTypes, options.LearnTypes, options.MaxTypes)
	s.groups.begin(options.GroupTypes)
}

// stamp makes the rows of a batch say that they are written now, which may be long after the call began.
func (s *session) stamp() { s.store.written = s.options.Now.Add(time.Since(s.options.began)) }

// end drops what only the report needed: it may be large, and the session may be idle from now on.
func (s *session) end() {
	s.options, s.report, s.refused, s.types, s.deletions = Options{}, Report{}, nil, typeLearner{}, Deletions{}
}

// loadGroupTypes starts a batch with the group types that are kept.
func (s *session) loadGroupTypes(ctx context.Context) error {
	if s.options.KeepGroupTypes == nil {
		return nil
	}
	types, err := s.options.KeepGroupTypes(ctx, nil)
	if err != nil {
		return fmt.Errorf("looking for group types: %w", err)
	}
	s.groups.begin(types)
	return nil
}

// keepGroupTypes keeps the group types that a batch brings, before anything is written with their index.
func (s *session) keepGroupTypes(ctx context.Context) error {
	if s.options.KeepGroupTypes == nil || !s.groups.found || s.options.DryRun {
		return nil
	}
	if _, err := s.options.KeepGroupTypes(ctx, s.groups.list()); err != nil {
		return fmt.Errorf("keeping group types: %w", err)
	}
	s.groups.found = false
	return nil
}

func (s *session) result() Report {
	report := s.report
	report.Learned, report.Untyped = s.types.learned(), s.types.full
	report.GroupTypes = s.groups.list()
	return report
}

func (s *session) bad(line int, reason error) {
	s.report.Bad++
	if len(s.report.BadLines) < maxBad || s.options.Captured {
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

// How much is kept between batches: distinct ids and groups, and bytes of their properties. Beyond that, everything is forgotten and looked up again.
const (
	maxState      = 50_000
	maxStateBytes = 64 << 20

	// Imports have larger batches, and would otherwise look up the people of each.
	maxImportState = 2 * maxState
)

// overLimit reports whether more is kept than should be.
func (s *session) overLimit() bool {
	most := maxState
	if !s.options.Captured {
		most = maxImportState
	}
	entries, bytes := s.kept()
	return entries > cmp.Or(s.state, most) || bytes > maxStateBytes
}

// kept returns how many people and groups are kept, and their bytes.
func (s *session) kept() (entries, bytes int) {
	return 1 + len(s.people.ids) + len(s.groups.known), s.people.bytes() + s.groups.bytes()
}

func (s *session) forget() {
	s.people.forget()
	s.groups.forget()
}

// load looks up what records mention and is not known yet.
func (s *session) load(ctx context.Context, records []record.Record) error {
	if s.overLimit() {
		s.forget()
	}
	if err := s.people.load(ctx, records); err != nil {
		return err
	}
	return s.groups.load(ctx, records)
}

// loadSome does what load does for the first records, and returns how many: half as many as long as their people and groups are too large to be held at once.
func (s *session) loadSome(ctx context.Context, records []record.Record) (int, error) {
	defer s.store.bound(false)()
	for n := len(records); ; n /= 2 {
		s.store.bounded = n > 1
		err := s.load(ctx, records[:n])
		if !s.store.bounded || !tooLarge(err) {
			return n, err
		}
		s.forget() // of some distinct ids, the person is not known yet
	}
}

// write applies and writes the records of a batch in their order: all at once, or some after the others if their rows or their people are large.
func (s *session) write(ctx context.Context, records []record.Record) error {
	given := make([]*event, len(records))
	for n := range records {
		if records[n].Kind == record.Event {
			late, drop := s.isLate(&records[n])
			given[n] = newEvent(&records[n], s.options.Captured, late)
			given[n].deleted = drop
			if s.options.AnonymizeIPs {
				records[n].Properties = records[n].Properties.Without("$ip")
			}
		}
	}
	for _, e := range given {
		if e != nil && !s.drops(e) && !s.isAlone(e) {
			s.groups.learn(e.Record)
		}
	}
	if err := s.people.fresh.load(ctx, s.store, len(records)); err != nil {
		return err
	}
	known, err := s.store.knownEvents(ctx, records)
	if err != nil {
		return err
	}
	for most := len(records); len(records) > 0; most *= 2 {
		if most, err = s.loadSome(ctx, records[:min(most, len(records))]); err != nil {
			return err
		}
		applied, events, err := s.apply(ctx, records[:most], given, known)
		if err != nil {
			return err
		}
		if err := s.writeApplied(ctx, events); err != nil {
			return err
		}
		records, given = records[applied:], given[applied:]
	}
	return nil
}

// writeApplied writes the rows of events, and what was applied with them. Persons and groups are written before the events, because an interrupted import that
// is run again skips events that are already there, with what they say. Overrides come first of all, because they are found by comparison with the other
// tables. Before that, what changes is kept as an intent, if there is a place for it.
func (s *session) writeApplied(ctx context.Context, events []eventRow) error {
	if !s.options.Captured {
		if err := s.groups.date(ctx); err != nil {
			return err
		}
		if err := s.people.findAlone(ctx); err != nil {
			return err
		}
	}
	if s.options.DryRun {
		s.members = nil
		s.countPeople()
		s.people.written()
		s.groups.written()
		return nil
	}
	if err := s.keepGroupTypes(ctx); err != nil {
		return err
	}
	members, err := s.memberRows(ctx)
	if err != nil {
		return err
	}
	computed, err := s.computedRows(ctx)
	if err != nil {
		return err
	}
	moved, ids := s.people.idRows()
	overrides, persons := newBlock(physical.Overrides, idColumns, moved), newBlock(physical.Persons, personColumns, s.people.rows())
	s.findMoved(ctx, &overrides, &persons)
	state := slices.DeleteFunc([]block{
		overrides,
		persons,
		newBlock("person_distinct_id2", idColumns, ids),
		newBlock("groups", groupColumns, s.groups.rows()),
		newBlock(physical.StaticMembers, memberColumns, members),
		{table: physical.ComputedMembers, columns: computedColumns, rows: computed},
	}, func(b block) bool { return len(b.rows) == 0 })
	if err := s.finish(ctx, state, events); err != nil {
		return err
	}
	s.countPeople()
	s.people.written()
	s.groups.written()
	return nil
}

// finish writes the changes of people and groups, then the events. If there are changes, it first keeps them as an intent, with the events whose rows would
// come out differently after them.
func (s *session) finish(ctx context.Context, state []block, events []eventRow) error {
	all, unsettled := newBlock(physical.Events, eventColumns, make([]row, len(events))), newBlock(physical.Events, eventColumns, nil)
	for n := range events {
		all.rows[n] = events[n].row
		if events[n].unsettled() {
			unsettled.rows = append(unsettled.rows, events[n].row)
		}
	}
	if err := s.keepValues(ctx); err != nil {
		return err
	}
	kept := s.intents != nil && len(state) > 0
	if kept {
		if err := s.keep(ctx, append(slices.Clip(state), unsettled)); err != nil {
			return fmt.Errorf("keeping what is to be written: %w", err)
		}
	}
	for _, b := range append(state, all) {
		if err := s.insert(ctx, b); err != nil {
			return err
		}
	}
	if kept || s.intents != nil && s.refusals.changed {
		if err := s.keep(ctx, nil); err != nil {
			return fmt.Errorf("noting that a batch is written: %w", err)
		}
	}
	return nil
}

// apply applies records until the rows of the events that are new are large. It returns how many records it has applied, and these rows.
func (s *session) apply(ctx context.Context, records []record.Record, given []*event, known knownEvents) (n int, events []eventRow, err error) {
	events = make([]eventRow, 0, len(records))
	for size := 0; n < len(records) && size < s.rows; n++ {
		r, rows := &records[n], len(events)
		switch r.Kind {
		case record.Person:
			err = s.person(ctx, r)
		case record.Group:
			s.group(r)
		case record.Cohort:
			s.cohort(r)
		case record.Event:
			events, err = s.event(ctx, given[n], known, events)
		}
		if err != nil {
			return 0, nil, err
		}
		for _, row := range events[rows:] {
			size += row.size()
		}
		if !s.options.Captured {
			r.Properties, given[n] = nil, nil // the row has them now; captured events may be delivered again
		}
	}
	return n, events, nil
}

func (s *session) person(ctx context.Context, r *record.Record) error {
	if !r.CreatedAt.Before(physical.CreatedBefore(s.options.Now)) {
		s.bad(r.Line, fmt.Errorf("its created_at %s is more than a day in the future", r.CreatedAt.Format(time.RFC3339)))
		return nil
	}
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

// wasRefused reports whether ClickHouse refused a captured event before, and counts it as bad if so.
func (s *session) wasRefused(r *record.Record) bool {
	if !s.options.Captured || len(s.refusals.keys) == 0 {
		return false
	}
	reason, refused := s.refusals.reasons[rowKey(r)]
	if refused {
		s.bad(r.Line, errors.New(reason))
	}
	return refused
}

// drops reports whether an event is not kept.
func (s *session) drops(e *event) bool {
	return s.tooOld(e) || s.options.Captured && (e.deleted || e.pointless())
}

// isAlone reports whether an event has neither person nor groups.
func (s *session) isAlone(e *event) bool { return s.options.Captured && e.personless }

func (s *session) tooOld(e *event) bool { return e.Timestamp.Before(s.options.EventsFrom) }

// event applies an event, and appends its row unless the event is known.
func (s *session) event(ctx context.Context, e *event, known knownEvents, rows []eventRow) ([]eventRow, error) {
	switch {
	case s.tooOld(e):
		s.report.TooOld++
		return rows, nil
	case s.drops(e):
		s.report.Dropped++
		return rows, nil
	}
	key, on := keyOf(e.Record), dayOf(e.Timestamp)
	there := known.has(key, on)
	if !there && s.wasRefused(e.Record) {
		return rows, nil
	}
	s.report.Events++
	alone := s.isAlone(e)
	keys := s.groups.ofEvent(e.Record, alone)
	if there {
		s.report.Duplicates++
		s.learn(e)
		return rows, nil
	}
	known.add(key, on)
	p, err := s.people.ofEvent(ctx, e)
	if err != nil {
		return nil, err
	}
	s.learn(e)
	if !alone {
		s.identifyGroup(e)
	}
	row := s.eventRow(e, p, keys)
	other, _ := s.people.mergedID(e.Record)
	row.merges = other != ""
	return append(rows, row), nil
}

// identifyGroup applies a $groupidentify to its group.
func (s *session) identifyGroup(e *event) {
	name, key, set := groupIdentify(e.Record)
	if key == "" {
		return
	}
	index, ok := s.groups.index(name)
	if !ok {
		return
	}
	g := s.describeGroup(e.Line, groupID{index, key}, set)
	if s.options.Captured {
		g.begin(e.Line, e.Timestamp)
	} else {
		g.seen(e.Line, e.Timestamp)
	}
}

// learn learns types from an event. Events that are already there count too: the import that wrote them may have broken off before what it had learned was
// kept.
func (s *session) learn(e *event) {
	s.types.observe(eventScope, 0, e.Properties)
	s.types.observe(personScope, 0, e.PersonProperties)
	s.types.observe(personScope, 0, e.setOnce)
	s.types.observe(personScope, 0, e.set)
}
