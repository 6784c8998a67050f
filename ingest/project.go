package ingest

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// turn is a lock that can be waited for with a context.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

func (t turn) lock(ctx context.Context) (unlock func(), err error) {
	select {
	case t <- struct{}{}:
		return func() { <-t }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// room is where the sessions of one project take turns.
type room struct {
	importing turn // for a whole import
	writing   turn // for a batch; it guards the following fields
	delivery  *session
	last      *session       // the session that wrote last; nil if the state in ClickHouse may have changed since
	settled   bool           // no batch is unfinished, and no insert under way
	types     map[string]int // group types that sessions found
	refused   *refusals
	changed   atomic.Bool // another process may have changed the state
	seen      *seen       // nil if events are always looked up
	alone     bool        // see Ingester
	old       bool        // the project had data before all its values were noted

	things, bytes atomic.Int64 // kept by the delivery
	filter        atomic.Int64 // bytes of seen
	used          atomic.Int64 // when something was last written, in seconds since 1970
}

func (i *Ingester) room(project int64) *room {
	i.mu.Lock()
	defer i.mu.Unlock()
	r := i.rooms[project]
	if r == nil {
		r = &room{alone: i.Alone, importing: newTurn(), writing: newTurn(), types: map[string]int{}, refused: newRefusals()}
		if i.Alone {
			r.seen = newSeen(&i.seenBudget)
		}
		i.rooms[project] = r
	}
	return r
}

// turn waits for its turn among all that write to the project.
func (r *room) turn(ctx context.Context, o *Options) (done func(), err error) {
	unlock, err := r.writing.lock(ctx)
	if err != nil {
		return nil, fmt.Errorf("waiting for another batch of the project: %w", err)
	}
	if o.Turn == nil {
		return unlock, nil
	}
	end, err := o.Turn(ctx)
	if err != nil {
		unlock()
		return nil, err
	}
	return func() { end(); unlock() }, nil
}

const (
	// patience is how long a batch that has a place waits for its turn.
	patience = time.Second
	// grace is how long a batch that has its turn waits for a place.
	grace = 100 * time.Millisecond
)

// placedTurn waits for a place and for a turn. It has no turn while it waits long for a place, and no place while it waits long for a turn.
func (r *room) placedTurn(ctx context.Context, o *Options) (done func(), err error) {
	if o.Enter == nil {
		return r.turn(ctx, o)
	}
	for {
		leave, err := o.Enter(ctx)
		if err != nil {
			return nil, err
		}
		soon, cancel := context.WithTimeout(ctx, patience)
		end, err := r.turn(soon, o)
		late := soon.Err() != nil && ctx.Err() == nil
		cancel()
		if err == nil {
			return func() { end(); leave() }, nil
		}
		leave()
		if !late {
			return nil, err
		}
		if end, err = r.turn(ctx, o); err != nil {
			return nil, err
		}
		soon, cancel = context.WithTimeout(ctx, grace)
		leave, err = o.Enter(soon)
		late = soon.Err() != nil && ctx.Err() == nil
		cancel()
		if err == nil {
			return func() { end(); leave() }, nil
		}
		end()
		if !late {
			return nil, err
		}
	}
}

// write lets a session write a batch. The session reads the state of people anew if another one has written since, or broke off.
func (r *room) write(ctx context.Context, s *session, records []record.Record) error {
	done, err := r.placedTurn(ctx, &s.options)
	if err != nil {
		return err
	}
	defer done()
	return r.writeNow(ctx, s, func(ctx context.Context) error { return s.write(ctx, records) })
}

// inTurn lets a delivery write when it is its turn among all that query ClickHouse.
func (r *room) inTurn(ctx context.Context, s *session, write func(context.Context) error) error {
	if s.options.Turn != nil {
		done, err := s.options.Turn(ctx)
		if err != nil {
			return err
		}
		defer done()
	}
	return r.writeNow(ctx, s, write)
}

func (r *room) writeNow(ctx context.Context, s *session, write func(context.Context) error) error {
	if s.store.gathering != nil {
		defer s.store.gathering.enter()()
	}
	if s.options.DryRun {
		return s.rehearse(ctx, write) // it leaves nothing in the room
	}
	if r.changed.Swap(false) {
		r.last, r.settled = nil, false
	}
	s.refusals = r.refused
	s.store.seen = r.seen
	if r.seen != nil {
		defer func() { r.filter.Store(r.seen.bytes()) }()
	}
	r.used.Store(time.Now().Unix())
	s.lookAtDeletions()
	if !r.settled {
		if r.seen != nil {
			r.seen.forget()
		}
		if err := s.resume(ctx); err != nil {
			return err
		}
		r.last = nil
	}
	if r.last != s {
		s.forget()
		s.people.fresh.forget()
	}
	if err := s.loadGroupTypes(ctx); err != nil {
		return err
	}
	if err := s.beginValues(ctx, r); err != nil {
		return err
	}
	s.groups.share(r.types)
	r.last, r.settled = nil, false
	if err := write(ctx); err != nil {
		return err
	}
	r.last, r.settled = s, true
	s.groups.share(r.types)
	return nil
}

// lookAtDeletions starts a batch with the current deletions. They also apply to an unfinished batch that is completed first.
func (s *session) lookAtDeletions() {
	if s.options.Deletions != nil {
		s.deletions = s.options.Deletions()
		s.store.epoch = s.deletions.Epoch
	}
}

// Forget says that another process may have changed the people of a project, so that they are looked up again.
func (i *Ingester) Forget(project int64) { i.room(project).changed.Store(true) }

// Deliver writes captured events in their order, and what they say about people and groups. It sets Options.Captured. Batches of one project follow each other;
// different projects may be delivered to at once. Lines in the report are the places of the records, counted from 1. The properties of the records may be
// changed.
//
// After an error, some of the records may have been written. Delivering the same records again, in batches of any size, completes them: each event is there
// once, and changed its person once. This needs Ingester.Intents.
func (i *Ingester) Deliver(ctx context.Context, options Options, records []record.Record) (Report, error) {
	room, s, done, err := i.captured(ctx, options)
	if err != nil {
		return Report{}, err
	}
	defer done()
	for n := range records {
		records[n].Line = n + 1
	}
	written := false
	defer func() { // also if it panics
		if !written {
			room.delivery = nil
			i.layout.Store(nil)
		}
	}()
	for batch := range slices.Chunk(records, deliveredRecords) {
		if err := room.inTurn(ctx, s, func(ctx context.Context) error { return s.write(ctx, batch) }); err != nil {
			return s.result(), fmt.Errorf("delivering events: %w", err)
		}
	}
	written = true
	return s.result(), nil
}

// captured takes the turn of a project's deliveries and holds it until done is called.
func (i *Ingester) captured(ctx context.Context, options Options) (r *room, s *session, done func(), err error) {
	options.Captured = true
	if err := options.check(); err != nil {
		return nil, nil, nil, err
	}
	r = i.room(options.Project)
	unlock, err := r.writing.lock(ctx)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("waiting for another batch of the project: %w", err)
	}
	if s, err = i.delivery(ctx, r, options); err != nil {
		unlock()
		return nil, nil, nil, err
	}
	return r, s, func() { r.measure(s); unlock() }, nil
}

// delivery is the session of a project's deliveries.
func (i *Ingester) delivery(ctx context.Context, room *room, options Options) (*session, error) {
	i.use(room)
	if room.delivery != nil {
		room.delivery.begin(options)
		return room.delivery, nil
	}
	s, err := i.newSession(ctx, options)
	if err != nil {
		return nil, err
	}
	s.store.gathering, s.store.reading = &i.gathering, i.reading
	room.delivery = s
	return s, nil
}

// How much of people and groups all deliveries together keep: see maxState.
const (
	maxKept      = 4 * maxState
	maxKeptBytes = 4 * maxStateBytes
)

// use marks a room as the one used last. While all deliveries together keep too much, those least recently used are forgotten.
func (i *Ingester) use(used *room) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.recent = append(slices.DeleteFunc(i.recent, func(r *room) bool { return r == used }), used)
	things, bytes := 0, 0
	for n, r := range slices.Backward(i.recent) {
		things, bytes = things+int(r.things.Load()), bytes+int(r.bytes.Load())
		if r != used && (things > maxKept || bytes > maxKeptBytes) && r.empty() {
			i.recent = slices.Delete(i.recent, n, n+1)
		}
	}
	i.reclaim(time.Now().Add(-seenIdle))
}

// reclaim takes filters of seen events from rooms that were last used before a time, those least recently used first, until there is room for others. The caller
// holds mu.
func (i *Ingester) reclaim(before time.Time) {
	for _, r := range i.recent {
		if i.seenBudget.Load() >= seenSpare {
			return
		}
		if r.filter.Load() > 0 && r.used.Load() < before.Unix() {
			r.unfilter()
		}
	}
}

// unfilter forgets which events were seen, unless the room is in use.
func (r *room) unfilter() {
	select {
	case r.writing <- struct{}{}:
		r.seen.forget()
		r.filter.Store(0)
		<-r.writing
	default:
	}
}

// empty forgets what a delivery knows, unless it is in use.
func (r *room) empty() bool {
	select {
	case r.writing <- struct{}{}:
		r.delivery, r.last = nil, nil
		if r.seen != nil {
			r.seen.forget()
			r.filter.Store(0)
		}
		r.things.Store(0)
		r.bytes.Store(0)
		<-r.writing
		return true
	default:
		return false
	}
}

// measure notes how much a delivery keeps until the next one.
func (r *room) measure(s *session) {
	s.end()
	things, bytes := s.kept()
	r.things.Store(int64(things))
	r.bytes.Store(int64(bytes))
}
