package execution

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/cache"
)

// bench is a Runs with the jobs that a test has begun in it.
type bench struct {
	*Runs
	t        *testing.T
	released atomic.Int64
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{Runs: NewRuns(), t: t}
	b.Budget.Store(1 << 20)
	return b
}

// end closes the Runs; every job must have been released by then.
func (b *bench) end(jobs int64) {
	b.t.Helper()
	if err := b.Close(); err != nil {
		b.t.Error(err)
	}
	if got := b.released.Load(); got != jobs {
		b.t.Errorf("%d of %d jobs were released", got, jobs)
	}
}

// queryOf is a query of project 7 or another one.
func queryOf(id, query string, project ...int64) *Query {
	parts := cache.KeyParts{Project: 7, Query: query}
	if len(project) > 0 {
		parts.Project = project[0]
	}
	return &Query{ClientID: id, Key: parts.Key()}
}

// start begins a run that ends as finish says; nil waits for its cancellation.
func (b *bench) start(q *Query, most int, finish func() (cache.Answer, error)) (*Run, error) {
	return b.Begin(b.job(q, most, finish))
}

// job is what start begins.
func (b *bench) job(q *Query, most int, finish func() (cache.Answer, error)) NewRun {
	return NewRun{
		Query: q, Most: most, Picked: new(atomic.Int64), Release: func() { b.released.Add(1) },
		Answer: func(ctx context.Context) (cache.Answer, error) {
			if finish != nil {
				return finish()
			}
			<-ctx.Done()
			return cache.Answer{}, context.Cause(ctx)
		},
	}
}

// answerOf is an answer that takes about so many bytes.
func answerOf(size int) func() (cache.Answer, error) {
	return func() (cache.Answer, error) {
		return cache.Answer{Entry: cache.NewEntry(&cache.Result{}, time.Now(), &Details{}, size), Status: cache.Miss}, nil
	}
}

// state describes in a word what is known of an id.
func (b *bench) state(project int64, id string) string {
	r, ended := b.Find(project, id)
	switch {
	case r == nil:
		return "unknown"
	case !ended:
		return "in progress"
	case r.Failure != nil:
		return r.Failure.Error()
	}
	return "complete"
}

func (b *bench) want(project int64, id, state string) {
	b.t.Helper()
	if got := b.state(project, id); got != state {
		b.t.Errorf("run %s of project %d is %s, want %s", id, project, got, state)
	}
}

func TestRunIsKeptTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		for id, finish := range map[string]func() (cache.Answer, error){
			"good": answerOf(1000),
			"bad":  func() (cache.Answer, error) { return cache.Answer{}, errors.New("no") },
		} {
			if _, err := b.start(queryOf(id, id), 10, func() (cache.Answer, error) {
				time.Sleep(time.Hour) // however long it runs
				return finish()
			}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour - time.Second)
		b.want(7, "good", "in progress")
		if b.inProgress(queryOf("", "good").Key) == nil {
			t.Error("nothing is in progress for the result")
		}
		time.Sleep(time.Second + RunKept - time.Millisecond)
		b.want(7, "good", "complete")
		b.want(7, "bad", "no")
		b.want(8, "good", "unknown")
		if b.inProgress(queryOf("", "good").Key) != nil {
			t.Error("the ended run is in progress for the result")
		}
		time.Sleep(2 * time.Millisecond)
		b.want(7, "good", "unknown")
		if b.held != 0 || len(b.ledgers[7].ended) != 0 {
			t.Errorf("%d bytes and %d runs are held when all is forgotten", b.held, len(b.ledgers[7].ended))
		}
		b.end(2)
	})
}

func TestRunsOfOneID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		start := func(q *Query) *Run {
			t.Helper()
			r, err := b.start(q, 10, nil)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		first := start(queryOf("same", "a"))
		if again := start(queryOf("same", "b")); again != first {
			t.Error("a second run began under the id of one that is in progress")
		}
		if other := start(queryOf("same", "a", 8)); other == first {
			t.Error("another project got the run")
		}
		force := b.job(queryOf("same", "a"), 10, nil)
		force.force = true
		forced, err := b.Begin(force)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if forced == first || b.inProgress(forced.Query.Key) != forced {
			t.Error("force did not take the earlier one's place")
		}
		if got := b.released.Load(); got != 2 {
			t.Errorf("%d jobs were released, want the one that was not needed and the one that was cancelled", got)
		}
		unnamed, second := start(queryOf("", "a")), start(queryOf("", "a"))
		if len(unnamed.ID) != 32 || unnamed.ID == second.ID {
			t.Errorf("ids of runs without a name: %s, %s", unnamed.ID, second.ID)
		}
		b.end(6)
		b.want(7, "same", "in progress") // the server stopped: nothing is recorded any more
		if _, err := b.start(queryOf("late", "a"), 10, nil); !errors.Is(err, ErrStopped) {
			t.Errorf("a run after the end: %v", err)
		}
	})
}

func TestCancelRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		begin := func(q *Query, finish func() (cache.Answer, error)) {
			t.Helper()
			if _, err := b.start(q, 10, finish); err != nil {
				t.Fatal(err)
			}
		}
		running, queued := queryOf("running", "running"), queryOf("queued", "queued")
		begin(running, nil)
		begin(queued, nil)
		begin(queryOf("companion", "queued"), nil)
		b.Cancel(7, "companion", false)
		if r := b.inProgress(queued.Key); r == nil || r.ID != "queued" {
			t.Errorf("in progress when the newest of two runs was cancelled: %v", r)
		}
		begin(queryOf("ended", "ended"), answerOf(10))
		b.works.Store(running.Key, new(work))
		waiting, done := b.follow(t.Context(), running)
		synctest.Wait()
		steps := []struct {
			id         string
			project    int64
			queuedOnly bool
			want       Cancelled
		}{
			{"running", 8, false, Cancelled{}},
			{"nobody", 7, false, Cancelled{}},
			{"running", 7, true, Cancelled{Left: 2}},
			{"queued", 7, true, Cancelled{Stopped: 1}},
			{"ended", 7, true, Cancelled{Forgotten: 1}},
			{"running", 7, false, Cancelled{Stopped: 2}},
		}
		for _, s := range steps {
			got := b.Cancel(s.project, s.id, s.queuedOnly)
			if diff := cmp.Diff(s.want, got, cmp.AllowUnexported(Cancelled{})); diff != "" {
				t.Errorf("cancelling %s of project %d (-want +got):\n%s", s.id, s.project, diff)
			}
		}
		if !errors.Is(context.Cause(waiting), ErrCancelled) {
			t.Errorf("who waits is told %v", context.Cause(waiting))
		}
		done()
		for _, id := range []string{"running", "queued", "ended"} {
			b.want(7, id, "unknown")
		}
		synctest.Wait()
		if active := b.active.Load(); active != 0 || b.ledgers[7].running != 0 || len(b.ledgers[7].waiting) != 0 {
			t.Errorf("%d runs are active, the project counts %d, and knows %d that wait", active, b.ledgers[7].running, len(b.ledgers[7].waiting))
		}
		b.end(4)
	})
}

func TestRunsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		for i := range 3 {
			_, err := b.start(queryOf("", "q"), 2, nil)
			if (i == 2) != errors.Is(err, errTooManyRuns) {
				t.Errorf("run %d: %v", i, err)
			}
		}
		const each = 100 << 10
		end := func(project int64, id string, size int) {
			t.Helper()
			if _, err := b.start(queryOf(id, id, project), 1, answerOf(size)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		end(8, "modest", each)
		for i := range 20 {
			end(9, fmt.Sprint("greedy", i), each)
		}
		b.want(8, "modest", "complete")
		b.want(9, "greedy10", "unknown")
		b.want(9, "greedy19", "complete")
		if b.held > b.Budget.Load() {
			t.Errorf("%d bytes are held, more than %d", b.held, b.Budget.Load())
		}
		end(10, "huge", 2<<20) // larger than the total limit: it is kept alone
		b.want(10, "huge", "complete")
		b.want(8, "modest", "unknown")
		end(8, "next", each)
		b.want(10, "huge", "unknown")
		for i := range maxEndedRuns + 1 {
			end(11, fmt.Sprint("small", i), 0)
		}
		b.want(11, "small0", "unknown")
		b.want(11, "small1", "complete")
		for i := range 20 { // what failed at once has no answer, but a query
			id := fmt.Sprint("long", i)
			if _, err := b.start(queryOf(id, id+strings.Repeat("x", each), 12), 1, func() (cache.Answer, error) {
				return cache.Answer{}, errors.New("refused")
			}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		b.want(12, "long0", "unknown")
		b.end(3 + 1 + 20 + 1 + 1 + 20 + maxEndedRuns + 1)
	})
}
