package execution

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/cache"
)

// Runs are the queries of this process that can be asked about and canceled by an id: those running in the background, those that ended there less
// than RunKept ago, and those that their waiting callers have named. They outlive a config.
//
// A cached answer takes no lock: it looks at a counter and, while background runs are in progress, at a map.
type Runs struct {
	base   context.Context // of the background runs; ends when Runs is closed
	stop   context.CancelCauseFunc
	ended  sync.WaitGroup
	Budget atomic.Int64 // for ended runs, their queries and answers, in bytes

	active atomic.Int64 // background runs in progress
	newest sync.Map     // cache.Key → *Run: the newest background run in progress for a result
	works  sync.Map     // cache.Key → *work: the query that ClickHouse runs for a result

	Queries queryLog // what ran on ClickHouse

	mu      sync.Mutex
	closed  bool
	held    int64 // bytes of the ended runs
	ledgers map[int64]*ledger
}

// ledger holds the runs of one project.
type ledger struct {
	byID    map[string]*Run   // background runs
	waiting map[string][]*Run // runs whose callers wait, by the names that the callers gave
	running int               // background runs in progress, canceled ones included
	ended   []*Run            // of byID, oldest first
	held    int64             // their bytes
	erased  time.Time         // answers computed before it may not be given out any more: see Erase
}

const (
	// RunKept is how long the state of a run is kept after its end: contract api.md, section 1.4.
	RunKept = 10 * time.Minute
	// maxEndedRuns is how many ended runs of a project are kept; older ones are forgotten.
	maxEndedRuns = 1000
)

// Run is one query in progress, or one that has ended.
type Run struct {
	ID     string
	Query  *Query
	From   Origin
	Shows  any  // how to present the answer, for whoever asked; not used here
	force  bool // an answer that is already there will not do
	Start  time.Time
	cancel context.CancelCauseFunc
	// When ClickHouse was sent the query, in Unix nanoseconds; 0 before, and for a run that shares another's computation.
	Picked *atomic.Int64

	// The following fields are guarded by Runs.mu until the run has ended, and fixed from then on.
	End     time.Time    // zero while it is in progress
	Answer  cache.Answer // as whoever asked for it would have got it
	Failure error        // instead of an answer
	forget  *time.Timer
}

// Origin is the saved insight that a run is for; its fields are nil for a query that was sent itself.
type Origin struct{ Insight, Dashboard *int64 }

// Project returns the id of the run's project.
func (r *Run) Project() int64 { return r.Query.Key.Project() }

// decoded is how many times as much memory as its text the node of a query takes at most, about: in lists of short numbers.
const decoded = 20

// size returns about how much memory the run's query and its answer take at most, in bytes. The text of the key has all values of the query.
func (r *Run) size() int64 {
	size := int64((1+decoded)*r.Query.Key.Size() + r.Query.texts())
	if r.Answer.Entry != nil {
		size += r.Answer.Entry.Size()
	}
	return size
}

var (
	// ErrCancelled is returned to those who wait for a query that somebody canceled by its name.
	ErrCancelled = errors.New("the query was cancelled")
	// errTooManyRuns refuses a background run of a project at its limit.
	errTooManyRuns = errors.New("too many background runs are in progress")
	// ErrStopped is returned for background runs of a server that is stopping.
	ErrStopped = errors.New("the runs are closed")
)

// NewRuns returns Runs without any run.
func NewRuns() *Runs {
	rs := &Runs{ledgers: map[int64]*ledger{}}
	rs.base, rs.stop = context.WithCancelCause(context.Background())
	return rs
}

// Close cancels the background runs and waits until they have ended.
func (rs *Runs) Close() error {
	rs.mu.Lock()
	rs.closed = true
	for _, l := range rs.ledgers {
		for _, r := range l.ended {
			r.forget.Stop()
		}
	}
	rs.mu.Unlock()
	rs.stop(ErrStopped)
	rs.ended.Wait()
	return nil
}

// inProgress returns the newest background run in progress for a result, or nil.
func (rs *Runs) inProgress(key cache.Key) *Run {
	if rs.active.Load() == 0 {
		return nil
	}
	found, _ := rs.newest.Load(key)
	r, _ := found.(*Run)
	return r
}

// NewRun describes a background run to begin.
type NewRun struct {
	id     string // empty for the query's id, or a new one
	Query  *Query
	from   Origin
	Shows  any           // as in Run
	force  bool          // as in Run
	Most   int           // how many background runs of the project may be in progress
	Picked *atomic.Int64 // as in Run
	Answer func(context.Context) (cache.Answer, error)
	// Called when the run has ended, or is not needed.
	Release func()
}

// Begin begins a background run. If one with the same id is in progress, that one is returned instead, as in PostHog, unless the new run forces a new
// computation: then the other is canceled. The error is ErrStopped or errTooManyRuns.
func (rs *Runs) Begin(j NewRun) (*Run, error) {
	ctx, cancel := context.WithCancelCause(rs.base)
	r := &Run{ID: cmp.Or(j.id, j.Query.ClientID, newRunID()), Query: j.Query, From: j.from, Shows: j.Shows, force: j.force, Start: time.Now(), cancel: cancel, Picked: j.Picked}
	entered, err := rs.enter(r, j.Most)
	if entered != r {
		cancel(nil)
		j.Release()
		return entered, err
	}
	go func() {
		defer rs.ended.Done()
		defer j.Release()
		defer cancel(nil)
		got, err := j.Answer(ctx)
		rs.settle(r, got, err)
	}()
	return r, nil
}

// newRunID returns an id for a run that its caller did not name.
func newRunID() string {
	id := uuid.Must(uuid.NewV7())
	return hex.EncodeToString(id[:])
}

// enter adds a background run and returns it, or the run in progress that makes it unnecessary.
func (rs *Runs) enter(r *Run, most int) (*Run, error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.closed {
		return nil, ErrStopped
	}
	l := rs.ledger(r.Project())
	earlier := l.byID[r.ID]
	if earlier != nil && earlier.End.IsZero() && !r.force {
		return earlier, nil
	}
	if l.running >= most {
		return nil, errTooManyRuns
	}
	if earlier != nil {
		rs.drop(l, earlier)
	}
	l.byID[r.ID] = r
	l.running++
	rs.newest.Store(r.Query.Key, r)
	rs.active.Add(1)
	rs.ended.Add(1)
	return r, nil
}

// ledger returns the project's ledger. The caller holds mu.
func (rs *Runs) ledger(project int64) *ledger {
	l := rs.ledgers[project]
	if l == nil {
		l = &ledger{byID: map[string]*Run{}, waiting: map[string][]*Run{}}
		rs.ledgers[project] = l
	}
	return l
}

// drop forgets a background run, and cancels it if it is in progress. The caller holds mu.
func (rs *Runs) drop(l *ledger, r *Run) {
	if l.byID[r.ID] != r {
		return
	}
	delete(l.byID, r.ID)
	if r.End.IsZero() {
		rs.replaceNewest(l, r)
		r.cancel(ErrCancelled)
		return
	}
	r.forget.Stop()
	l.ended = slices.DeleteFunc(l.ended, func(other *Run) bool { return other == r })
	l.held -= r.size()
	rs.held -= r.size()
}

// replaceNewest replaces a run that is no longer in progress with another one for the same result. The caller holds mu.
func (rs *Runs) replaceNewest(l *ledger, r *Run) {
	if !rs.newest.CompareAndDelete(r.Query.Key, r) {
		return
	}
	var other *Run
	for _, candidate := range l.byID {
		if candidate != r && candidate.End.IsZero() && candidate.Query.Key == r.Query.Key && (other == nil || candidate.Start.After(other.Start)) {
			other = candidate
		}
	}
	if other != nil {
		rs.newest.Store(r.Query.Key, other)
	}
}

// settle records how a background run ended.
func (rs *Runs) settle(r *Run, got cache.Answer, err error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	l := rs.ledger(r.Project())
	l.running--
	rs.replaceNewest(l, r)
	rs.active.Add(-1)
	if rs.closed || l.byID[r.ID] != r { // canceled: nobody can ask about it
		return
	}
	if got.Entry != nil && got.Entry.ComputedAt.Before(l.erased) {
		err = ErrCancelled
	}
	r.End, r.Answer = time.Now(), got
	if err != nil {
		r.Answer, r.Failure = cache.Answer{}, err
	}
	r.forget = time.AfterFunc(RunKept, func() {
		rs.mu.Lock()
		defer rs.mu.Unlock()
		rs.drop(l, r)
	})
	l.ended = append(l.ended, r)
	l.held += r.size()
	rs.held += r.size()
	if len(l.ended) > maxEndedRuns {
		rs.drop(l, l.ended[0])
	}
	for rs.held > max(rs.Budget.Load(), r.size()) {
		rs.dropOldest(r)
	}
}

// Erase forgets the answers of a project that were computed from data before a time, including those still in progress: some of its rows are deleted.
func (rs *Runs) Erase(project int64, before time.Time) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	l := rs.ledger(project)
	if before.After(l.erased) {
		l.erased = before
	}
	for _, r := range slices.Clone(l.ended) {
		if r.Answer.Entry != nil && r.Answer.Entry.ComputedAt.Before(l.erased) {
			rs.drop(l, r)
		}
	}
}

// dropOldest makes room: it forgets the oldest ended run of the project that holds the most bytes, but never spared. The caller holds mu and knows that there
// is another one.
func (rs *Runs) dropOldest(spared *Run) {
	var most *ledger
	var bytes int64
	for project, l := range rs.ledgers {
		held := l.held
		if project == spared.Project() {
			held -= spared.size()
		}
		if held > bytes {
			most, bytes = l, held
		}
	}
	oldest := slices.IndexFunc(most.ended, func(r *Run) bool { return r != spared })
	rs.drop(most, most.ended[oldest])
}

// follow adds a query that its waiting caller has named. The context ends when the query is canceled by that name; done removes the query.
func (rs *Runs) follow(ctx context.Context, q *Query) (following context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	r := &Run{ID: q.ClientID, Query: q, Start: time.Now(), cancel: cancel, Picked: new(atomic.Int64)}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	l := rs.ledger(r.Project())
	l.waiting[r.ID] = append(l.waiting[r.ID], r)
	return ctx, func() {
		cancel(nil)
		rs.mu.Lock()
		defer rs.mu.Unlock()
		l.waiting[r.ID] = slices.DeleteFunc(l.waiting[r.ID], func(other *Run) bool { return other == r })
		if len(l.waiting[r.ID]) == 0 {
			delete(l.waiting, r.ID)
		}
	}
}

// Find returns the run with an id: a background run, or else one whose caller waits; nil if there is none. If it has ended, every field may be read.
func (rs *Runs) Find(project int64, id string) (r *Run, ended bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	l := rs.ledgers[project]
	if l == nil {
		return nil, false
	}
	if r := l.byID[id]; r != nil {
		return r, !r.End.IsZero()
	}
	if waiting := l.waiting[id]; len(waiting) > 0 {
		return waiting[0], false
	}
	return nil, false
}

// PickedUp returns when ClickHouse was sent the run's query; zero while the run waits for its turn. A run that shares another's computation counts as
// picked up at its start, or when the other one was, if that is later.
func (rs *Runs) PickedUp(r *Run, ended bool) time.Time {
	at := time.Time{}
	if own := r.Picked.Load(); own != 0 {
		at = time.Unix(0, own)
	} else if w := rs.Work(r.Query.Key); w != nil && !ended {
		at = w.began
	} else if ended {
		at = r.Start
	}
	if at.IsZero() || at.After(r.Start) {
		return at
	}
	return r.Start
}

// Cancelled counts what a cancel found.
type Cancelled struct{ Stopped, Forgotten, Left int }

// Cancel cancels everything that has an id: queries that wait for their turn, running ones unless queuedOnly, and the state of ended ones. A
// computation that others share goes on for them.
func (rs *Runs) Cancel(project int64, id string, queuedOnly bool) Cancelled {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	var out Cancelled
	l := rs.ledgers[project]
	if l == nil {
		return out
	}
	spared := func(r *Run) bool { return queuedOnly && rs.Work(r.Query.Key) != nil }
	if r := l.byID[id]; r != nil {
		switch {
		case !r.End.IsZero():
			out.Forgotten++
			rs.drop(l, r)
		case spared(r):
			out.Left++
		default:
			out.Stopped++
			rs.drop(l, r)
		}
	}
	for _, r := range l.waiting[id] {
		if spared(r) {
			out.Left++
			continue
		}
		out.Stopped++
		r.cancel(ErrCancelled)
	}
	return out
}
