package module

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/cache"
)

// runs are the queries of this process that can be asked about and cancelled by an id: those that run in the background,
// those that ended there less than runKept ago, and those whose callers wait and have named them. They outlive a config.
//
// No cached answer takes the lock: it looks at a counter and, while background runs are in progress, at a map.
type runs struct {
	base   context.Context // of the background runs; ends when the runs are closed
	stop   context.CancelCauseFunc
	ended  sync.WaitGroup
	budget atomic.Int64 // for the answers of runs that ended, in bytes

	active atomic.Int64 // background runs in progress
	newest sync.Map     // cache.Key → *run: the newest background run in progress for a result
	works  sync.Map     // cache.Key → *work: what ClickHouse does for a result

	queries queryLog // what ClickHouse did

	mu      sync.Mutex
	closed  bool
	held    int64 // bytes of the answers of runs that ended
	ledgers map[int64]*ledger
}

// ledger is the runs of one project.
type ledger struct {
	byID    map[string]*run   // background runs
	waiting map[string][]*run // runs whose callers wait, by the names that these gave
	running int               // background runs in progress, cancelled ones included
	ended   []*run            // of byID, oldest first
	held    int64             // bytes of their answers
}

const (
	// runKept is how long the state of a run is kept after its end: contract section 1.4.
	runKept = 10 * time.Minute
	// maxEndedRuns is the most ended runs that a project has; older ones are forgotten.
	maxEndedRuns = 1000
)

// run is one query on its way.
type run struct {
	id     string
	plan   *plan
	from   origin
	start  time.Time
	cancel context.CancelCauseFunc
	// When ClickHouse was given the query, in Unix nanoseconds; 0 before, and for a run that shares another's computation.
	picked *atomic.Int64

	// What follows is guarded by runs.mu until the run has ended, and then fixed.
	end     time.Time    // zero while it is in progress
	answer  cache.Answer // as whoever asked for it would have got it
	failure *apiError    // in place of an answer
	forget  *time.Timer
}

// origin is the saved insight that a run is for; nil fields for a query that was sent as such.
type origin struct{ insight, dashboard *int64 }

func (r *run) project() int64 { return r.plan.key.Project() }

// size is the memory that the run's answer takes, in bytes.
func (r *run) size() int64 {
	if r.answer.Entry == nil {
		return 0
	}
	return r.answer.Entry.Size()
}

var (
	// errCancelled is for those who wait for a query that somebody cancelled by its name.
	errCancelled error = validation("", "query_was_cancelled", "The query was cancelled.")
	// errTooManyRuns refuses a background run of a project that has as many as it may.
	errTooManyRuns = errors.New("too many background runs are in progress")
	// errStopped is for background runs of a server that stops.
	errStopped error = serverError(http.StatusServiceUnavailable, "error", "The server is stopping. Please try again later.", errors.New("the runs are closed"))
)

func newRuns() *runs {
	rs := &runs{ledgers: map[int64]*ledger{}}
	rs.base, rs.stop = context.WithCancelCause(context.Background())
	return rs
}

// close cancels what runs in the background, and waits until it has ended.
func (rs *runs) close() error {
	rs.mu.Lock()
	rs.closed = true
	for _, l := range rs.ledgers {
		for _, r := range l.ended {
			r.forget.Stop()
		}
	}
	rs.mu.Unlock()
	rs.stop(errStopped)
	rs.ended.Wait()
	return nil
}

// inProgress is the newest background run for a result that is in progress, or nil.
func (rs *runs) inProgress(key cache.Key) *run {
	if rs.active.Load() == 0 {
		return nil
	}
	found, _ := rs.newest.Load(key)
	r, _ := found.(*run)
	return r
}

// job is what a background run does.
type job struct {
	id     string // empty for the plan's, or a new one
	plan   *plan
	from   origin
	most   int           // how many background runs of the project may be in progress
	picked *atomic.Int64 // as in run
	answer func(context.Context) (cache.Answer, error)
	// Called when the job is done, or need not be done.
	release func()
}

// begin begins a background run. One of the same id that is in progress is given in its place, as the peer does, unless the
// mode wants everything anew: then that one is cancelled. The error is errStopped or errTooManyRuns.
func (rs *runs) begin(j job) (*run, error) {
	ctx, cancel := context.WithCancelCause(rs.base)
	r := &run{id: cmp.Or(j.id, j.plan.clientID, newRunID()), plan: j.plan, from: j.from, start: time.Now(), cancel: cancel, picked: j.picked}
	entered, err := rs.enter(r, j.most)
	if entered != r {
		cancel(nil)
		j.release()
		return entered, err
	}
	go func() {
		defer rs.ended.Done()
		defer j.release()
		defer cancel(nil)
		got, err := j.answer(ctx)
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
func (rs *runs) enter(r *run, most int) (*run, error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.closed {
		return nil, errStopped
	}
	l := rs.ledger(r.project())
	earlier := l.byID[r.id]
	if earlier != nil && earlier.end.IsZero() && r.plan.mode != cache.Recompute {
		return earlier, nil
	}
	if l.running >= most {
		return nil, errTooManyRuns
	}
	if earlier != nil {
		rs.drop(l, earlier)
	}
	l.byID[r.id] = r
	l.running++
	rs.newest.Store(r.plan.key, r)
	rs.active.Add(1)
	rs.ended.Add(1)
	return r, nil
}

// ledger is the project's. The caller holds mu.
func (rs *runs) ledger(project int64) *ledger {
	l := rs.ledgers[project]
	if l == nil {
		l = &ledger{byID: map[string]*run{}, waiting: map[string][]*run{}}
		rs.ledgers[project] = l
	}
	return l
}

// drop forgets a background run, and cancels it if it is in progress. The caller holds mu.
func (rs *runs) drop(l *ledger, r *run) {
	if l.byID[r.id] != r {
		return
	}
	delete(l.byID, r.id)
	if r.end.IsZero() {
		rs.replaceNewest(l, r)
		r.cancel(errCancelled)
		return
	}
	r.forget.Stop()
	l.ended = slices.DeleteFunc(l.ended, func(other *run) bool { return other == r })
	l.held -= r.size()
	rs.held -= r.size()
}

// replaceNewest puts another run in progress for the same result in the place of one that no longer is. The caller holds mu.
func (rs *runs) replaceNewest(l *ledger, r *run) {
	if !rs.newest.CompareAndDelete(r.plan.key, r) {
		return
	}
	var other *run
	for _, candidate := range l.byID {
		if candidate != r && candidate.end.IsZero() && candidate.plan.key == r.plan.key && (other == nil || candidate.start.After(other.start)) {
			other = candidate
		}
	}
	if other != nil {
		rs.newest.Store(r.plan.key, other)
	}
}

// settle notes how a background run ended.
func (rs *runs) settle(r *run, got cache.Answer, err error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	l := rs.ledger(r.project())
	l.running--
	rs.replaceNewest(l, r)
	rs.active.Add(-1)
	if rs.closed || l.byID[r.id] != r { // cancelled: nobody can ask
		return
	}
	r.end, r.answer = time.Now(), got
	if err != nil {
		r.answer, r.failure = cache.Answer{}, toAPIError(err, r.plan.text)
	}
	r.forget = time.AfterFunc(runKept, func() {
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
	for rs.held > max(rs.budget.Load(), r.size()) {
		rs.dropOldest(r)
	}
}

// dropOldest makes room: it forgets the oldest answer of the project that holds most, but not that of spared. The caller
// holds mu, and knows that there is another one.
func (rs *runs) dropOldest(spared *run) {
	var most *ledger
	var bytes int64
	for project, l := range rs.ledgers {
		held := l.held
		if project == spared.project() {
			held -= spared.size()
		}
		if held > bytes {
			most, bytes = l, held
		}
	}
	oldest := slices.IndexFunc(most.ended, func(r *run) bool { return r != spared && r.size() > 0 })
	rs.drop(most, most.ended[oldest])
}

// follow lists a query whose caller waits and has named it. The context ends when it is cancelled by that name; done takes
// it off the list.
func (rs *runs) follow(ctx context.Context, p *plan) (following context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	r := &run{id: p.clientID, plan: p, start: time.Now(), cancel: cancel, picked: new(atomic.Int64)}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	l := rs.ledger(r.project())
	l.waiting[r.id] = append(l.waiting[r.id], r)
	return ctx, func() {
		cancel(nil)
		rs.mu.Lock()
		defer rs.mu.Unlock()
		l.waiting[r.id] = slices.DeleteFunc(l.waiting[r.id], func(other *run) bool { return other == r })
		if len(l.waiting[r.id]) == 0 {
			delete(l.waiting, r.id)
		}
	}
}

// find gives the run of an id: a background run, else one whose caller waits; nil when there is none. Of one that has ended
// every field may be read.
func (rs *runs) find(project int64, id string) (r *run, ended bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	l := rs.ledgers[project]
	if l == nil {
		return nil, false
	}
	if r := l.byID[id]; r != nil {
		return r, !r.end.IsZero()
	}
	if waiting := l.waiting[id]; len(waiting) > 0 {
		return waiting[0], false
	}
	return nil, false
}

// runNotFound is the contract's text for an id that is not known.
func runNotFound(id string, project int64) string {
	return fmt.Sprintf("Query %s not found for team %d", id, project)
}

// pickedUp is when ClickHouse was given the run's query; zero while it waits for its turn. A run that shares another's
// computation counts as picked up from its start, or from when that one was.
func (rs *runs) pickedUp(r *run, ended bool) time.Time {
	at := time.Time{}
	if own := r.picked.Load(); own != 0 {
		at = time.Unix(0, own)
	} else if w := rs.work(r.plan.key); w != nil && !ended {
		at = w.began
	} else if ended {
		at = r.start
	}
	if at.IsZero() || at.After(r.start) {
		return at
	}
	return r.start
}

// cancelled tells what a cancel found.
type cancelled struct{ stopped, forgotten, left int }

// cancelID cancels all that goes by an id: what waits for its turn, what runs unless queuedOnly, and the state of what has
// ended. A computation that others share goes on for them.
func (rs *runs) cancelID(project int64, id string, queuedOnly bool) cancelled {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	var out cancelled
	l := rs.ledgers[project]
	if l == nil {
		return out
	}
	spared := func(r *run) bool { return queuedOnly && rs.work(r.plan.key) != nil }
	if r := l.byID[id]; r != nil {
		switch {
		case !r.end.IsZero():
			out.forgotten++
			rs.drop(l, r)
		case spared(r):
			out.left++
		default:
			out.stopped++
			rs.drop(l, r)
		}
	}
	for _, r := range l.waiting[id] {
		if spared(r) {
			out.left++
			continue
		}
		out.stopped++
		r.cancel(errCancelled)
	}
	return out
}
