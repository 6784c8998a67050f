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

// projectState is what the sessions of one project share, and where they take turns.
type projectState struct {
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

	entries, bytes atomic.Int64 // kept by the delivery
	filter         atomic.Int64 // bytes of seen
	used           atomic.Int64 // when something was last written, in seconds since 1970
}

// project returns the state of a project.
func (i *Ingester) project(id int64) *projectState {
	i.mu.Lock()
	defer i.mu.Unlock()
	p := i.projects[id]
	if p == nil {
		p = &projectState{alone: i.Alone, importing: newTurn(), writing: newTurn(), types: map[string]int{}, refused: newRefusals()}
		if i.Alone {
			p.seen = newSeen(&i.seenBudget)
		}
		i.projects[id] = p
	}
	return p
}

// turn waits for its turn among all that write to the project.
func (p *projectState) turn(ctx context.Context, o *Options) (done func(), err error) {
	unlock, err := p.writing.lock(ctx)
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
func (p *projectState) placedTurn(ctx context.Context, o *Options) (done func(), err error) {
	if o.Enter == nil {
		return p.turn(ctx, o)
	}
	for {
		leave, err := o.Enter(ctx)
		if err != nil {
			return nil, err
		}
		soon, cancel := context.WithTimeout(ctx, patience)
		end, err := p.turn(soon, o)
		late := soon.Err() != nil && ctx.Err() == nil
		cancel()
		if err == nil {
			return func() { end(); leave() }, nil
		}
		leave()
		if !late {
			return nil, err
		}
		if end, err = p.turn(ctx, o); err != nil {
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
func (p *projectState) write(ctx context.Context, s *session, records []record.Record) error {
	done, err := p.placedTurn(ctx, &s.options)
	if err != nil {
		return err
	}
	defer done()
	return p.writeNow(ctx, s, func(ctx context.Context) error { return s.write(ctx, records) })
}

// inTurn lets a delivery write when it is its turn among all that query ClickHouse.
func (p *projectState) inTurn(ctx context.Context, s *session, write func(context.Context) error) error {
	if s.options.Turn != nil {
		done, err := s.options.Turn(ctx)
		if err != nil {
			return err
		}
		defer done()
	}
	return p.writeNow(ctx, s, write)
}

func (p *projectState) writeNow(ctx context.Context, s *session, write func(context.Context) error) error {
	if s.store.gathering != nil {
		defer s.store.gathering.enter()()
	}
	if s.options.DryRun {
		return s.rehearse(ctx, write) // it leaves nothing behind
	}
	if p.changed.Swap(false) {
		p.last, p.settled = nil, false
	}
	s.refusals = p.refused
	s.store.seen = p.seen
	if p.seen != nil {
		defer func() { p.filter.Store(p.seen.bytes()) }()
	}
	p.used.Store(time.Now().Unix())
	s.stamp()
	if err := s.loadGroupTypes(ctx); err != nil { // it also reads what other servers have written, such as deletions
		return err
	}
	s.lookAtDeletions()
	if !p.settled {
		if p.seen != nil {
			p.seen.forget()
		}
		if err := s.resume(ctx); err != nil {
			return err
		}
		p.last = nil
	}
	if p.last != s {
		s.forget()
		s.people.fresh.forget()
	}
	if err := s.beginValues(ctx, p); err != nil {
		return err
	}
	s.groups.share(p.types)
	p.last, p.settled = nil, false
	if err := write(ctx); err != nil {
		return err
	}
	p.last, p.settled = s, true
	s.groups.share(p.types)
	return nil
}

// Forget says that another process may have changed the people of a project, so that they are looked up again.
func (i *Ingester) Forget(project int64) { i.project(project).changed.Store(true) }

// How much of people and groups all deliveries together keep: see maxState.
const (
	maxKept      = 4 * maxState
	maxKeptBytes = 4 * maxStateBytes
)

// use marks a project as the one used last. While all deliveries together keep too much, those least recently used are forgotten.
func (i *Ingester) use(used *projectState) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.recent = append(slices.DeleteFunc(i.recent, func(p *projectState) bool { return p == used }), used)
	entries, bytes := 0, 0
	for n, p := range slices.Backward(i.recent) {
		entries, bytes = entries+int(p.entries.Load()), bytes+int(p.bytes.Load())
		if p != used && (entries > maxKept || bytes > maxKeptBytes) && p.tryForget() {
			i.recent = slices.Delete(i.recent, n, n+1)
		}
	}
	i.reclaim(time.Now().Add(-seenIdle))
}

// reclaim takes filters of seen events from projects that were last used before a time, those least recently used first, until there is room for others. The
// caller holds mu.
func (i *Ingester) reclaim(before time.Time) {
	for _, p := range i.recent {
		if i.seenBudget.Load() >= seenSpare {
			return
		}
		if p.filter.Load() > 0 && p.used.Load() < before.Unix() {
			p.tryForgetSeen()
		}
	}
}

// tryForgetSeen forgets which events were seen, unless the project is in use.
func (p *projectState) tryForgetSeen() {
	p.try(func() {
		p.seen.forget()
		p.filter.Store(0)
	})
}

// tryForget forgets what a delivery knows, unless it is in use, and reports whether it did.
func (p *projectState) tryForget() bool {
	return p.try(func() {
		p.delivery, p.last = nil, nil
		if p.seen != nil {
			p.seen.forget()
			p.filter.Store(0)
		}
		p.entries.Store(0)
		p.bytes.Store(0)
	})
}

// try calls do unless the project is in use, and reports whether it did.
func (p *projectState) try(do func()) bool {
	select {
	case p.writing <- struct{}{}:
		do()
		<-p.writing
		return true
	default:
		return false
	}
}

// measure notes how much a delivery keeps until the next one.
func (p *projectState) measure(s *session) {
	s.end()
	entries, bytes := s.kept()
	p.entries.Store(int64(entries))
	p.bytes.Store(int64(bytes))
}
