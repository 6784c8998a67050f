package module

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/cache"
)

// bench is a registry of runs and the jobs that a test has begun there.
type bench struct {
	*runs
	t        *testing.T
	released atomic.Int64
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{runs: newRuns(), t: t}
	b.budget.Store(1 << 20)
	return b
}

// end closes the registry; every job must have been released then.
func (b *bench) end(jobs int64) {
	b.t.Helper()
	if err := b.close(); err != nil {
		b.t.Error(err)
	}
	if got := b.released.Load(); got != jobs {
		b.t.Errorf("%d of %d jobs were released", got, jobs)
	}
}

// planOf is a plan of project 7 or another one.
func planOf(id, query string, mode cache.Mode, project ...int64) *plan {
	parts := cache.KeyParts{Project: 7, Query: query}
	if len(project) > 0 {
		parts.Project = project[0]
	}
	return &plan{clientID: id, key: parts.Key(), mode: mode}
}

// start begins a run that ends as finish says: nil waits for its cancel.
func (b *bench) start(p *plan, most int, finish func() (cache.Answer, error)) (*run, error) {
	return b.begin(job{
		plan: p, most: most, picked: new(atomic.Int64), release: func() { b.released.Add(1) },
		answer: func(ctx context.Context) (cache.Answer, error) {
			if finish != nil {
				return finish()
			}
			<-ctx.Done()
			return cache.Answer{}, context.Cause(ctx)
		},
	})
}

// answerOf is an answer that takes about so many bytes.
func answerOf(size int) func() (cache.Answer, error) {
	return func() (cache.Answer, error) {
		return cache.Answer{Entry: cache.NewEntry(&cache.Result{}, time.Now(), &outcome{}, size), Status: cache.Miss}, nil
	}
}

// state tells in a word what is known of an id.
func (b *bench) state(project int64, id string) string {
	r, ended := b.find(project, id)
	switch {
	case r == nil:
		return "unknown"
	case !ended:
		return "in progress"
	case r.failure != nil:
		return r.failure.Error()
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
			"bad":  func() (cache.Answer, error) { return cache.Answer{}, validation("", "invalid_input", "no") },
			"odd":  func() (cache.Answer, error) { return cache.Answer{}, errors.New("secret") },
		} {
			if _, err := b.start(planOf(id, id, cache.NoStale), 10, func() (cache.Answer, error) {
				time.Sleep(time.Hour) // however long it runs
				return finish()
			}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour - time.Second)
		b.want(7, "good", "in progress")
		if b.inProgress(planOf("", "good", 0).key) == nil {
			t.Error("nothing is in progress for the result")
		}
		time.Sleep(time.Second + runKept - time.Millisecond)
		b.want(7, "good", "complete")
		b.want(7, "bad", "400 invalid_input: no")
		b.want(7, "odd", "500 error: A server error occurred.")
		b.want(8, "good", "unknown")
		if b.inProgress(planOf("", "good", 0).key) != nil {
			t.Error("the ended run is in progress for the result")
		}
		time.Sleep(2 * time.Millisecond)
		b.want(7, "good", "unknown")
		if b.held != 0 || len(b.ledgers[7].ended) != 0 {
			t.Errorf("%d bytes and %d runs are held when all is forgotten", b.held, len(b.ledgers[7].ended))
		}
		b.end(3)
	})
}

func TestRunsOfOneID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		start := func(p *plan) *run {
			t.Helper()
			r, err := b.start(p, 10, nil)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		first := start(planOf("same", "a", cache.NoStale))
		if again := start(planOf("same", "b", cache.NoStale)); again != first {
			t.Error("a second run began under the id of one that is in progress")
		}
		if other := start(planOf("same", "a", cache.NoStale, 8)); other == first {
			t.Error("another project got the run")
		}
		forced := start(planOf("same", "a", cache.Recompute))
		synctest.Wait()
		if forced == first || b.inProgress(forced.plan.key) != forced {
			t.Error("force did not take the earlier one's place")
		}
		if got := b.released.Load(); got != 2 {
			t.Errorf("%d jobs were released, want the one that was not needed and the one that was cancelled", got)
		}
		unnamed, second := start(planOf("", "a", cache.NoStale)), start(planOf("", "a", cache.NoStale))
		if len(unnamed.id) != 32 || unnamed.id == second.id {
			t.Errorf("ids of runs without a name: %s, %s", unnamed.id, second.id)
		}
		b.end(6)
		b.want(7, "same", "in progress") // the server stopped: nothing is noted any more
		if _, err := b.start(planOf("late", "a", cache.NoStale), 10, nil); !errors.Is(err, errStopped) {
			t.Errorf("a run after the end: %v", err)
		}
	})
}

func TestCancelRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		begin := func(p *plan, finish func() (cache.Answer, error)) {
			t.Helper()
			if _, err := b.start(p, 10, finish); err != nil {
				t.Fatal(err)
			}
		}
		running, queued := planOf("running", "running", cache.NoStale), planOf("queued", "queued", cache.NoStale)
		begin(running, nil)
		begin(queued, nil)
		begin(planOf("companion", "queued", cache.NoStale), nil)
		b.cancelID(7, "companion", false)
		if r := b.inProgress(queued.key); r == nil || r.id != "queued" {
			t.Errorf("in progress when the newest of two runs was cancelled: %v", r)
		}
		begin(planOf("ended", "ended", cache.NoStale), answerOf(10))
		b.works.Store(running.key, new(work))
		waiting, done := b.follow(t.Context(), running)
		synctest.Wait()
		steps := []struct {
			id         string
			project    int64
			queuedOnly bool
			want       cancelled
		}{
			{"running", 8, false, cancelled{}},
			{"nobody", 7, false, cancelled{}},
			{"running", 7, true, cancelled{left: 2}},
			{"queued", 7, true, cancelled{stopped: 1}},
			{"ended", 7, true, cancelled{forgotten: 1}},
			{"running", 7, false, cancelled{stopped: 2}},
		}
		for _, s := range steps {
			got := b.cancelID(s.project, s.id, s.queuedOnly)
			if diff := cmp.Diff(s.want, got, cmp.AllowUnexported(cancelled{})); diff != "" {
				t.Errorf("cancelling %s of project %d (-want +got):\n%s", s.id, s.project, diff)
			}
		}
		if !errors.Is(context.Cause(waiting), errCancelled) {
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
			_, err := b.start(planOf("", "q", cache.NoStale), 2, nil)
			if (i == 2) != errors.Is(err, errTooManyRuns) {
				t.Errorf("run %d: %v", i, err)
			}
		}
		const each = 100 << 10
		end := func(project int64, id string, size int) {
			t.Helper()
			if _, err := b.start(planOf(id, id, cache.NoStale, project), 1, answerOf(size)); err != nil {
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
		if b.held > b.budget.Load() {
			t.Errorf("%d bytes are held, more than %d", b.held, b.budget.Load())
		}
		end(10, "huge", 2<<20) // larger than all may be together: it alone is kept
		b.want(10, "huge", "complete")
		b.want(8, "modest", "unknown")
		end(8, "next", each)
		b.want(10, "huge", "unknown")
		for i := range maxEndedRuns + 1 {
			end(11, fmt.Sprint("small", i), 0)
		}
		b.want(11, "small0", "unknown")
		b.want(11, "small1", "complete")
		b.end(3 + 1 + 20 + 1 + 1 + maxEndedRuns + 1)
	})
}
