package admission_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/admission"
)

// enter takes a place that must be free.
func enter(t *testing.T, s *admission.Scheduler, project int64) *admission.Place {
	t.Helper()
	place, err := s.Enter(t.Context(), admission.Request{Project: project, Awaited: admission.Awaited, Wait: time.Nanosecond})
	if err != nil {
		t.Fatalf("project %d gets no place: %v", project, err)
	}
	return place
}

// TestNewcomerFindsAPlace: whatever one project runs, another project's first query does not wait.
func TestNewcomerFindsAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := admission.New(admission.Limits{Places: 4, Project: 10, Queue: 80})
		var places []*admission.Place
		for range 3 {
			places = append(places, enter(t, s, 1))
		}
		if _, err := s.Enter(t.Context(), admission.Request{Project: 1, Awaited: admission.Awaited, Wait: time.Minute}); !errors.Is(err, admission.ErrTooLong) {
			t.Errorf("a fourth place of four for one project: %v", err)
		}
		places = append(places, enter(t, s, 2))
		for _, p := range places {
			p.Leave()
		}
	})
}

// TestYields: each project's first awaited query has the processor before all others.
func TestYields(t *testing.T) {
	s := admission.New(admission.Limits{Places: 8, Project: 10, Queue: 80})
	first, second, other := enter(t, s, 1), enter(t, s, 1), enter(t, s, 2)
	unawaited, err := s.Enter(t.Context(), admission.Request{Project: 3})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		place *admission.Place
		want  bool
	}{
		"first of its project":  {first, false},
		"second of its project": {second, true},
		"first of another":      {other, false},
		"nobody waits":          {unawaited, true},
	} {
		if got := tt.place.Yields(); got != tt.want {
			t.Errorf("%s: Yields() = %t", name, got)
		}
	}
}

// TestShares: projects that request as much as they can get end up with equal parts, however much each requests, and nothing stays unused except the
// reserved places.
func TestShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := admission.New(admission.Limits{Places: 16, Project: 10, Queue: 1000})
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var served [4]atomic.Int64
		for project, clients := range []int{1: 100, 2: 20, 3: 8} {
			for range clients {
				all.Go(func() {
					for ctx.Err() == nil {
						place, err := s.Enter(ctx, admission.Request{Project: int64(project), Awaited: admission.Awaited})
						if err != nil {
							return
						}
						served[project].Add(1)
						time.Sleep(time.Second)
						place.Leave()
					}
				})
			}
		}
		time.Sleep(1000*time.Second + time.Millisecond)
		stop()
		all.Wait()
		for project := 1; project <= 3; project++ {
			if n := served[project].Load(); n < 3950 || n > 4050 { // a third of 12 places for 1000 seconds
				t.Errorf("project %d was served %d times, want about 4000", project, n)
			}
		}
	})
}

// TestOneOfManyIsServedSoon: with a single place, a project waits for at most one query of each other project.
func TestOneOfManyIsServedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := admission.New(admission.Limits{Places: 1, Project: 10, Queue: 80})
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for project := range int64(5) {
			for range 10 {
				all.Go(func() {
					for {
						place, err := s.Enter(ctx, admission.Request{Project: project, Awaited: admission.Awaited})
						if err != nil {
							return
						}
						time.Sleep(time.Second)
						place.Leave()
					}
				})
			}
		}
		time.Sleep(100*time.Second + time.Millisecond)
		began := time.Now()
		place, err := s.Enter(ctx, admission.Request{Project: 9, Awaited: admission.Awaited, Wait: time.Minute})
		if waited := time.Since(began); err != nil || waited > 6*time.Second {
			t.Errorf("a newcomer waits %s: %v", waited, err)
		} else {
			place.Leave()
		}
		stop()
		all.Wait()
	})
}

// TestCovers: a place covers only its own project, until it is left.
func TestCovers(t *testing.T) {
	s := admission.New(admission.Limits{Places: 2, Project: 2, Queue: 2})
	place := enter(t, s, 7)
	var none *admission.Place
	if !place.Covers(7) || place.Covers(8) || none.Covers(7) || new(admission.Place).Covers(0) {
		t.Error("a place covers another project, or not its own")
	}
	place.Leave()
	if place.Covers(7) {
		t.Error("a place that was left covers its project")
	}
}

func TestUncounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := admission.New(admission.Limits{Places: 1, Project: 1, Queue: 0})
		place := enter(t, s, 1)
		if s.HasRoom(admission.Request{Project: 1}) {
			t.Error("there is room in a queue of none")
		}
		if _, err := s.Enter(t.Context(), admission.Request{Project: 1}); !errors.Is(err, admission.ErrQueueFull) {
			t.Errorf("beyond the queue: %v", err)
		}
		time.AfterFunc(time.Hour, place.Leave)
		second, err := s.Enter(t.Context(), admission.Request{Project: 1, Uncounted: true})
		if err != nil {
			t.Fatalf("uncounted: %v", err)
		}
		second.Leave()
	})
}

// TestUncountedTakeNoRoom: however many uncounted requests wait, others may join the queue, and get free places.
func TestUncountedTakeNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := admission.New(admission.Limits{Places: 3, Project: 2, Queue: 1})
		rare := &admission.Class{Most: 1}
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if place, err := s.Enter(ctx, admission.Request{Project: 1, Uncounted: true, Class: rare}); err == nil {
					<-ctx.Done()
					place.Leave()
				}
			})
		}
		synctest.Wait()
		if !s.HasRoom(admission.Request{Project: 1}) {
			t.Error("there is no room in an empty queue")
		}
		place := enter(t, s, 1) // a free one
		if _, err := s.Enter(t.Context(), admission.Request{Project: 1, Wait: time.Minute}); !errors.Is(err, admission.ErrTooLong) {
			t.Errorf("the first in the queue: %v", err)
		}
		place.Leave()
		stop()
		all.Wait()
	})
}

// TestEndsLoseNoPlace: requests whose contexts end at any moment leave all places free.
func TestEndsLoseNoPlace(t *testing.T) {
	s := admission.New(admission.Limits{Places: 3, Project: 2, Queue: 1000})
	var all sync.WaitGroup
	var running, most atomic.Int64
	for i := range 64 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			for range 300 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(200))*time.Microsecond)
				place, err := s.Enter(ctx, admission.Request{Project: int64(i % 4), Awaited: admission.Awaited, Wait: time.Duration(random.IntN(200)) * time.Microsecond})
				if err == nil {
					most.Store(max(most.Load(), running.Add(1)))
					running.Add(-1)
					place.Leave()
				}
				cancel()
			}
		})
	}
	all.Wait()
	if most.Load() > 3 {
		t.Errorf("%d ran at once", most.Load())
	}
	s.Each(func(project int64, running, waiting int) {
		if running != 0 || waiting != 0 {
			t.Errorf("at the end %d queries of project %d run and %d wait", running, project, waiting)
		}
	})
	for project := range int64(3) {
		enter(t, s, project)
	}
}

func BenchmarkEnter(b *testing.B) {
	s := admission.New(admission.Limits{Places: 40, Project: 10, Queue: 80})
	b.ReportAllocs()
	for b.Loop() {
		place, err := s.Enter(b.Context(), admission.Request{Project: 1, Awaited: admission.Awaited})
		if err != nil {
			b.Fatal(err)
		}
		place.Leave()
	}
}

// TestForget: a deleted project is no longer listed once nothing of it runs.
func TestForget(t *testing.T) {
	s := admission.New(admission.Limits{Places: 2, Project: 2, Queue: 2})
	listed := func() (projects []int64) {
		s.Each(func(project int64, _, _ int) { projects = append(projects, project) })
		slices.Sort(projects)
		return projects
	}
	first, other := enter(t, s, 1), enter(t, s, 2)
	s.Forget(1)
	if got := listed(); !slices.Equal(got, []int64{1, 2}) {
		t.Errorf("while its query runs, %v are listed", got)
	}
	first.Leave()
	other.Leave()
	s.Forget(3)
	if got := listed(); !slices.Equal(got, []int64{2}) {
		t.Errorf("%v are listed", got)
	}
	enter(t, s, 1).Leave()
}

// TestShards: projects of a shard that does not answer and holds all of its places take none of the other shards' places.
func TestShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := admission.NewSharded(admission.Limits{Places: 2, Project: 2, Queue: 8}, func(project int64) string {
			return map[bool]string{true: "east"}[project >= 100]
		})
		waiting := admission.Request{Project: 103, Wait: time.Minute}
		hung := []*admission.Place{enter(t, s, 101), enter(t, s, 102)}
		if _, err := s.Enter(t.Context(), waiting); !errors.Is(err, admission.ErrTooLong) {
			t.Errorf("a third place of two on a shard: %v", err)
		}
		began := time.Now()
		places := []*admission.Place{enter(t, s, 1), enter(t, s, 2)}
		if took := time.Since(began); took != 0 {
			t.Errorf("projects of another shard waited for %v", took)
		}
		got := make(chan *admission.Place)
		go func() { got <- enter(t, s, 103) }()
		synctest.Wait()
		places[0].Leave()
		synctest.Wait()
		if running, waits := s.Of(103); running != 0 || waits != 1 {
			t.Errorf("a place of another shard is given away: %d run, %d wait", running, waits)
		}
		s.SetLimits(admission.Limits{Places: 3, Project: 2, Queue: 8})
		for _, place := range append(hung, places[1], <-got) {
			place.Leave()
		}
	})
}

// TestClass: only so many queries of a class run on each shard. One that waits for a place of its project keeps no other project's from running, and one
// that waits for its class holds no place.
func TestClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := func(project int64) string { return strconv.FormatInt(project/100, 10) }
		s := admission.NewSharded(admission.Limits{Places: 4, Project: 1, Queue: 8}, of)
		rare := &admission.Class{Most: 1}
		ask := func(project int64) (*admission.Place, error) {
			return s.Enter(t.Context(), admission.Request{Project: project, Awaited: admission.Awaited, Wait: time.Minute, Class: rare})
		}
		busy := enter(t, s, 1)
		var waits sync.WaitGroup
		waits.Go(func() {
			if _, err := ask(1); !errors.Is(err, admission.ErrTooLong) {
				t.Errorf("a second query of a project that may run one: %v", err)
			}
		})
		synctest.Wait()
		second, err := ask(2)
		if err != nil {
			t.Fatalf("while another project's waits for a place: %v", err)
		}
		if _, err := ask(3); !errors.Is(err, admission.ErrTooLong) {
			t.Errorf("a second one of the class: %v", err)
		}
		if running, waiting := s.Of(3); running != 0 || waiting != 0 {
			t.Errorf("it left %d running and %d waiting", running, waiting)
		}
		other, err := ask(100)
		if err != nil {
			t.Errorf("one on another shard: %v", err)
		}
		waits.Go(func() {
			if third, err := ask(3); err != nil {
				t.Errorf("after the first has ended: %v", err)
			} else {
				third.Leave()
			}
		})
		synctest.Wait()
		for _, place := range []*admission.Place{busy, second, other} {
			place.Leave()
		}
		waits.Wait()
	})
}

// TestKeep: a place that is kept is given back once it is left and its query has ended, in any order.
func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			name string
			end  func(place *admission.Place, first, second func())
		}{
			{"left first", func(place *admission.Place, first, second func()) {
				place.Leave()
				place.Leave()
				first()
				first()
				second()
			}},
			{"left last", func(place *admission.Place, first, second func()) { first(); second(); second(); place.Leave() }},
			{"left between", func(place *admission.Place, first, second func()) { second(); place.Leave(); first() }},
		} {
			s := admission.New(admission.Limits{Places: 1, Project: 1, Queue: 10})
			place := enter(t, s, 1)
			first, second := place.Keep(), place.Keep()
			step := func(do func()) func() {
				return func() {
					if _, err := s.Enter(t.Context(), admission.Request{Project: 1, Awaited: admission.Awaited, Wait: time.Second}); !errors.Is(err, admission.ErrTooLong) {
						t.Errorf("%s: another query got the place: %v", tt.name, err)
					}
					do()
				}
			}
			tt.end(place, step(first), step(second))
			enter(t, s, 1).Leave()
		}
	})
}
