// Package admission decides who may run on ClickHouse now and who waits. It shares a number of places between projects. Each shard of ClickHouse has
// its own places, and everything said here about projects applies to those of one shard.
//
// A free place goes to the waiting project that holds the fewest places, and among equals to the one not served for the longest time. Running queries
// can't be stopped in favor of others, so some places are reserved for projects that hold none: see [Limits.Spare]. Within a project, queries that
// somebody waits for come first, in order of arrival. A [Class] limits how many queries of one kind run at a time.
package admission

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Limits bound how many queries run and wait.
type Limits struct {
	Places  int // running queries of all projects of a shard; at least 1
	Project int // running queries of one project; at least 1
	Queue   int // waiting queries of one project
}

// Spare returns how many of the places only projects that hold none may take: a quarter, and at least one if there are two or more. A project that
// comes to a busy server finds a free place there, whatever the others run.
func (l Limits) Spare() int {
	if l.Places < 2 {
		return 0
	}
	return max(1, l.Places/4)
}

// The reasons why a request gets no place.
var (
	ErrQueueFull = errors.New("the queue of the project is full")
	ErrTooLong   = errors.New("no place became free in time")
)

// Request asks for a place.
type Request struct {
	Project int64
	// Closed once somebody waits for the query; [Awaited] is already closed. Until then, the project's awaited queries come first. nil: nobody ever waits.
	Awaited <-chan struct{}
	// The longest that the request waits. Zero: until its context ends.
	Wait time.Duration
	// The request may join the queue however long that is, and makes it no longer for others.
	Uncounted bool
	Class     *Class // nil: only the places limit how many run
}

// Class is a kind of queries of which only a few run at a time on each shard, however many places there are. One that has to wait for others of its
// class holds no place, and one that waits for a place of its project keeps no other project's from running.
type Class struct {
	Most int // at least 1
}

// Awaited is for requests that somebody waits for from the start.
var Awaited = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Scheduler hands out places. Its methods are safe for concurrent use.
type Scheduler struct {
	of func(project int64) string // returns the shard of a project

	mu       sync.Mutex
	limits   Limits
	serial   uint64 // of the newest turn or request
	projects map[int64]*share
	shards   map[string]*shard
}

// shard is what the projects of one shard hold and wait for. Scheduler.mu guards it.
type shard struct {
	held    int
	of      map[*Class]int                 // how many of them by class
	waiting map[*Class]map[*share]struct{} // the projects with requests in a queue
}

// share is what one project holds and waits for. Scheduler.mu guards it.
type share struct {
	project int64
	gone    bool // the project was deleted
	on      *shard
	held    int
	waiting int
	counted int    // of the waiting ones, those that count as its queue
	turn    uint64 // when the project was last served or, if later, began to ask
	queues  map[*Class]*queues
}

// queues hold the tickets that wait.
type queues [priorities]list.List

type priority int

const (
	awaited priority = iota
	background
	priorities
)

// ticket is a request in a queue, or one that got its place.
type ticket struct {
	share   *share
	class   *Class
	counted bool
	queue   priority
	serial  uint64        // of its arrival in the queue
	at      *list.Element // nil once it is out of the queue
	granted *Place        // set before ready is closed
	ready   chan struct{}
}

// New returns a scheduler for one shard.
func New(limits Limits) *Scheduler { return NewSharded(limits, func(int64) string { return "" }) }

// NewSharded returns a scheduler for shards. of returns the shard of a project, which must not change.
func NewSharded(limits Limits, of func(project int64) string) *Scheduler {
	return &Scheduler{of: of, limits: limits, projects: map[int64]*share{}, shards: map[string]*shard{}}
}

// Limits returns the current limits.
func (s *Scheduler) Limits() Limits {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.limits
}

// SetLimits replaces the limits. Queries that have a place keep it, and count.
func (s *Scheduler) SetLimits(limits Limits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limits = limits
	for _, on := range s.shards {
		s.dispatch(on)
	}
}

// Enter waits for a place, which the caller must leave. The error is ErrQueueFull, ErrTooLong, or the cause of the context's end.
func (s *Scheduler) Enter(ctx context.Context, r Request) (*Place, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	t, err := s.join(r)
	if err != nil {
		return nil, err
	}
	select {
	case <-t.ready: // without a timer
		return t.granted, nil
	default:
	}
	var tooLong <-chan time.Time
	if r.Wait > 0 {
		timer := time.NewTimer(r.Wait)
		defer timer.Stop()
		tooLong = timer.C
	}
	becomesAwaited := r.Awaited
	if t.queue == awaited {
		becomesAwaited = nil
	}
	for {
		select {
		case <-t.ready:
			return t.granted, nil
		case <-becomesAwaited:
			becomesAwaited = nil
			s.promote(t)
		case <-tooLong:
			return s.quit(t, ErrTooLong)
		case <-ctx.Done():
			place, err := s.quit(t, context.Cause(ctx))
			if err == nil {
				place.Leave()
			}
			return nil, context.Cause(ctx)
		}
	}
}

// HasRoom reports whether a request that had to wait would be let into its project's queue now.
func (s *Scheduler) HasRoom(r Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.projects[r.Project]
	return known == nil || known.counted < s.limits.Queue
}

// Forget forgets a deleted project, once nothing of it runs or waits.
func (s *Scheduler) Forget(project int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.projects[project]; p != nil {
		p.gone = true
		s.drop(p)
	}
}

// drop removes a deleted project that holds and waits for nothing.
func (s *Scheduler) drop(p *share) {
	if p.gone && p.held == 0 && p.waiting == 0 {
		delete(s.projects, p.project)
	}
}

// Each yields how many queries of each project run and wait. A project that has asked once stays listed, until it is forgotten.
func (s *Scheduler) Each(yield func(project int64, running, waiting int)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.projects {
		yield(p.project, p.held, p.waiting)
	}
}

// Of returns how many queries of a project run and wait.
func (s *Scheduler) Of(project int64) (running, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.projects[project]; p != nil {
		return p.held, p.waiting
	}
	return 0, 0
}

// Most returns how many queries of one project run at a time when no other project has any.
func (l Limits) Most() int { return max(1, min(l.Project, l.Places-l.Spare())) }

func (r Request) priority() priority {
	select {
	case <-r.Awaited:
		return awaited
	default: // also for nil
		return background
	}
}

// join adds a request to its project's queue, where it may get a place at once.
func (s *Scheduler) join(r Request) (*ticket, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.projects[r.Project]
	if p == nil {
		p = &share{project: r.Project, on: s.shard(s.of(r.Project)), queues: map[*Class]*queues{}}
		s.projects[r.Project] = p
	}
	t := &ticket{share: p, class: r.Class, counted: !r.Uncounted, queue: r.priority(), ready: make(chan struct{})}
	if p.held == 0 && p.waiting == 0 {
		s.serial++
		p.turn = s.serial
	}
	before := p.counted
	s.enqueue(t)
	s.dispatch(p.on)
	if t.at != nil && before >= s.limits.Queue && t.counted {
		s.dequeue(t)
		return nil, ErrQueueFull
	}
	return t, nil
}

// promote moves a request that somebody now waits for after the others that are awaited.
func (s *Scheduler) promote(t *ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.at == nil {
		return
	}
	s.dequeue(t)
	t.queue = awaited
	s.enqueue(t)
	s.dispatch(t.share.on) // it may now come before other projects
}

// shard returns a shard by its name.
func (s *Scheduler) shard(name string) *shard {
	on := s.shards[name]
	if on == nil {
		on = &shard{of: map[*Class]int{}, waiting: map[*Class]map[*share]struct{}{}}
		s.shards[name] = on
	}
	return on
}

// quit removes a request from its queue. If it got a place in the meantime, quit returns the place instead of err.
func (s *Scheduler) quit(t *ticket, err error) (*Place, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.at == nil {
		return t.granted, nil
	}
	s.dequeue(t)
	s.drop(t.share)
	return nil, err
}

func (s *Scheduler) enqueue(t *ticket) {
	p := t.share
	of := p.queues[t.class]
	if of == nil {
		of = &queues{}
		p.queues[t.class] = of
	}
	s.serial++
	t.serial = s.serial
	t.at = of[t.queue].PushBack(t)
	p.add(t, 1)
	waiting := p.on.waiting[t.class]
	if waiting == nil {
		waiting = map[*share]struct{}{}
		p.on.waiting[t.class] = waiting
	}
	waiting[p] = struct{}{}
}

func (s *Scheduler) dequeue(t *ticket) {
	p := t.share
	of := p.queues[t.class]
	of[t.queue].Remove(t.at)
	t.at = nil
	p.add(t, -1)
	if of.first() == nil {
		delete(p.on.waiting[t.class], p)
	}
}

// add counts tickets that begin to wait, or cease to.
func (p *share) add(t *ticket, n int) {
	p.waiting += n
	if t.counted {
		p.counted += n
	}
}

// dispatch gives the free places of a shard to waiting requests. It is called after every change, so that no request waits while a place is free for it.
func (s *Scheduler) dispatch(on *shard) {
	for {
		var next *ticket
		for class, projects := range on.waiting {
			if class != nil && on.of[class] >= class.Most {
				continue
			}
			for p := range projects {
				if !s.mayTake(p) {
					continue
				}
				if t := p.queues[class].first(); next == nil || t.before(next) {
					next = t
				}
			}
		}
		if next == nil {
			return
		}
		s.dequeue(next)
		p := next.share
		on.held++
		on.of[next.class]++
		p.held++
		s.serial++
		p.turn = s.serial
		next.granted = &Place{scheduler: s, share: p, class: next.class, yields: p.held > 1 || next.queue == background}
		close(next.ready)
	}
}

// mayTake reports whether a place is free for a project.
func (s *Scheduler) mayTake(p *share) bool {
	free := s.limits.Places - p.on.held
	if p.held > 0 {
		free -= s.limits.Spare()
	}
	return free > 0 && p.held < s.limits.Project
}

// first returns the ticket to serve next, or nil.
func (q *queues) first() *ticket {
	for i := range q {
		if front := q[i].Front(); front != nil {
			t, _ := front.Value.(*ticket)
			return t
		}
	}
	return nil
}

// before reports whether a ticket is served before another: if its project holds fewer places; or as many, but somebody waits for its query; or else
// if its project's last turn was earlier. Within a project, the one that came first.
func (t *ticket) before(other *ticket) bool {
	p, q := t.share, other.share
	switch {
	case p.held != q.held:
		return p.held < q.held
	case t.queue != other.queue:
		return t.queue < other.queue
	case p != q:
		return p.turn < q.turn
	}
	return t.serial < other.serial
}

// Place lets one query of a project run.
type Place struct {
	scheduler *Scheduler
	share     *share
	class     *Class
	yields    bool
	left      atomic.Bool
	keepers   atomic.Int32 // the number of Keep calls that have not ended; one less after Leave
}

// Covers reports whether the place is held, and by the project.
func (p *Place) Covers(project int64) bool {
	return p != nil && p.scheduler != nil && !p.left.Load() && p.share.project == project
}

// Yields reports whether the query in this place should leave the processor to others: its project already held a place when it got this one, or
// nobody waited for the query. Places alone do not share fairly when one query can use all cores.
func (p *Place) Yields() bool { return p.yields }

// Leave gives the place back, unless it is kept. It may be called more than once.
func (p *Place) Leave() {
	if !p.left.Swap(true) {
		p.release()
	}
}

// Keep keeps the place from being given back until end is called, even if it is left: its query goes on although nobody waits for it. The place must
// not have been left yet. end may be called more than once.
func (p *Place) Keep() (end func()) {
	p.keepers.Add(1)
	return sync.OnceFunc(p.release)
}

// release gives the place back when it has been left and is not kept.
func (p *Place) release() {
	if p.keepers.Add(-1) >= 0 {
		return
	}
	s := p.scheduler
	s.mu.Lock()
	defer s.mu.Unlock()
	p.share.on.held--
	p.share.on.of[p.class]--
	p.share.held--
	s.dispatch(p.share.on)
	s.drop(p.share)
}
