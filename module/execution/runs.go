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

// Runs are the queries of this process that can be asked about and cancelled by an id: those that run in the background,
// those that ended there less than RunKept ago, and those whose callers wait and have named them. They outlive a config.
//
// No cached answer takes the lock: it looks at a counter and, while background runs are in progress, at a map.
type Runs struct {
	base   context.Context // of the background runs; ends when the runs are closed
	stop   context.CancelCauseFunc
	ended  sync.WaitGroup
	Budget atomic.Int64 // for the answers of runs that ended, in bytes

	active atomic.Int64 // background runs in progress
	newest sync.Map     // cache.Key → *Run: the newest background run in progress for a result
	works  sync.Map     // cache.Key → *work: what ClickHouse does for a result

	Queries queryLog // what ClickHouse did

	mu      sync.Mutex
	closed  bool
	held    int64 // bytes of the answers of runs that ended
	ledgers map[int64]*ledger
}

// ledger is the runs of one project.
type ledger struct {
	byID    map[string]*Run   // background runs
	waiting map[string][]*Run // runs whose callers wait, by the names that these gave
	running int               // background runs in progress, cancelled ones included
	ended   []*Run            // of byID, oldest first
	held    int64             // bytes of their answers
	erased  time.Time         // answers computed before it are nobody's any more: see Erase
}

const (
	// RunKept is how long the state of a run is kept after its end: contract section 1.4.
	RunKept = 10 * time.Minute
	// maxEndedRuns is the most ended runs that a project has; older ones are forgotten.
	maxEndedRuns = 1000
)

// Run is one query on its way.
type Run struct {
	ID     string
	Query  *Query
	From   Origin
	Shows  any  // how whoever asked shows the answer; it is for them alone
	force  bool // nobody is content with what is there
	Start  time.Time
	cancel context.CancelCauseFunc
	// When ClickHouse was given the query, in Unix nanoseconds; 0 before, and for a run that shares another's computation.
	Picked *atomic.Int64

	// What follows is guarded by Runs.mu until the run has ended, and then fixed.
	End     time.Time    // zero while it is in progress
	Answer  cache.Answer // as whoever asked for it would have got it
	Failure error        // in place of an answer
	forget  *time.Timer
}

// Origin is the saved insight that a run is for; nil fields for a query that was sent as such.
type Origin struct{ Insight, Dashboard *int64 }

// Project is the id of the project whose run it is.
func (r *Run) Project() int64 { return r.Query.Key.Project() }

// size is the memory that the run's answer takes, in bytes.
func (r *Run) size() int64 {
	if r.Answer.Entry == nil {
		return 0
	}
	return r.Answer.Entry.Size()
}

var (
	// ErrCancelled is for those who wait for a query that somebody cancelled by its name.
	ErrCancelled = errors.New("the query was cancelled")
	// errTooManyRuns refuses a background run of a project that has as many as it may.
	errTooManyRuns = errors.New("too many background runs are in progress")
	// ErrStopped is for background runs of a server that stops.
	ErrStopped = errors.New("the runs are closed")
)

// NewRuns returns a list without runs.
func NewRuns() *Runs {
	rs := &Runs{ledgers: map[int64]*ledger{}}
	rs.base, rs.stop = context.WithCancelCause(context.Background())
	return rs
}

// Close cancels what runs in the background, and waits until it has ended.
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

// inProgress is the newest background run for a result that is in progress, or nil.
func (rs *Runs) inProgress(key cache.Key) *Run {
	if rs.active.Load() == 0 {
		return nil
	}
	found, _ := rs.newest.Load(key)
	r, _ := found.(*Run)
	return r
}

// NewRun is what a background run does.
type NewRun struct {
	id     string // empty for the query's, or a new one
	Query  *Query
	from   Origin
	Shows  any           // as in Run
	force  bool          // as in Run
	Most   int           // how many background runs of the project may be in progress
	Picked *atomic.Int64 // as in Run
	Answer func(context.Context) (cache.Answer, error)
	// Called when the job is done, or need not be done.
	Release func()
}

// Begin begins a background run. One of the same id that is in progress is given in its place, as in PostHog, unless the
// new one wants everything anew: then the other is cancelled. The error is ErrStopped or errTooManyRuns.
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

// newRunID is the id of a run that its caller did not name.
func newRunID() string {
	id := uuid.Must(uuid.NewV7())
	return hex.EncodeToString(id[:])
}

// enter lists a background run, and gives it or the one that it need not repeat.
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

// ledger is the project's. The caller holds mu.
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

// replaceNewest puts another run in progress for the same result in the place of one that no longer is. The caller holds mu.
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

// settle notes how a background run ended.
func (rs *Runs) settle(r *Run, got cache.Answer, err error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	l := rs.ledger(r.Project())
	l.running--
	rs.replaceNewest(l, r)
	rs.active.Add(-1)
	if rs.closed || l.byID[r.ID] != r { // cancelled: nobody can ask
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

// Erase forgets the answers of a project that were computed from what there was before a time, also those that are still to come: rows
// of it are deleted.
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

// dropOldest makes room: it forgets the oldest answer of the project that holds most, but not that of spared. The caller
// holds mu, and knows that there is another one.
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
	oldest := slices.IndexFunc(most.ended, func(r *Run) bool { return r != spared && r.size() > 0 })
	rs.drop(most, most.ended[oldest])
}

// follow lists a query whose caller waits and has named it. The context ends when it is cancelled by that name; done takes
// it off the list.
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

// Find gives the run of an id: a background run, else one whose caller waits; nil when there is none. Of one that has ended
// every field may be read.
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

// PickedUp is when ClickHouse was given the run's query; zero while it waits for its turn. A run that shares another's
// computation counts as picked up from its start, or from when that one was.
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

// Cancelled reports what a cancel found.
type Cancelled struct{ Stopped, Forgotten, Left int }

// Cancel cancels all that goes by an id: what waits for its turn, what runs unless queuedOnly, and the state of what has
// ended. A computation that others share goes on for them.
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
