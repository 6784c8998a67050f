package cache_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/internal/panics"
)

const fresh = 10 * time.Second

var (
	use       = cache.Policy{Fresh: fresh}
	noStale   = cache.Policy{Fresh: fresh, Mode: cache.NoStale}
	recompute = cache.Policy{Fresh: fresh, Mode: cache.Recompute}
)

// wantCallers compares the answers of callers, in order.
func wantCallers(t *testing.T, callers []*caller, want ...string) {
	t.Helper()
	got := make([]string, len(callers))
	for i, c := range callers {
		got[i] = c.String()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("callers (-want +got):\n%s", diff)
	}
}

// wantLive compares the running loads.
func wantLive(t *testing.T, w *world, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, w.live()); diff != "" {
		t.Errorf("running loads (-want +got):\n%s", diff)
	}
}

func TestConcurrentMissesShareOneLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		k := key(1, "")
		callers := make([]*caller, 256)
		for i := range callers {
			callers[i] = w.call(k, use)
		}
		wantLive(t, w, "A1")
		time.Sleep(time.Second)
		w.end("A1", succeed)
		want := slices.Repeat([]string{"load A1, coalesced, age 1s, fresh for 9s"}, len(callers))
		want[0] = "load A1, miss, age 1s, fresh for 9s"
		wantCallers(t, callers, want...)
		wantLive(t, w)
		wantCallers(t, []*caller{w.call(k, use)}, "load A1, hit, age 1s, fresh for 9s")
	})
}

// Callers that start together, in any order, share one load, including those that look just before a result
// is stored and act just after.
func TestRacingMissesShareOneLoad(t *testing.T) {
	c, err := cache.New(cache.Config{MaxBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const callers = 16
	for round := range int64(1000) {
		var loads atomic.Int32
		start, statuses := make(chan struct{}), make(chan cache.Status, callers)
		for range callers {
			go func() {
				<-start
				answer, err := c.Do(t.Context(), key(round, ""), use, func(context.Context) (*cache.Entry, error) {
					loads.Add(1)
					return cache.NewEntry(new(cache.Result), time.Now(), nil, 0), nil
				})
				if err != nil {
					t.Errorf("Do: %v", err)
				}
				statuses <- answer.Status
			}()
		}
		close(start)
		count := make(map[cache.Status]int)
		for range callers {
			count[<-statuses]++
		}
		if loads.Load() != 1 || count[cache.Miss] != 1 || count[cache.Hit]+count[cache.Coalesced] != callers-1 {
			t.Fatalf("%d loads, answers %v; want one load and one miss", loads.Load(), count)
		}
	}
}

// A call after a miss finds its result, although Ristretto applies writes asynchronously.
func TestMissIsVisibleAtOnce(t *testing.T) {
	c, err := cache.New(cache.Config{MaxBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	load := loadOf("x", 0)
	for i := range int64(2000) {
		for _, want := range []cache.Status{cache.Miss, cache.Hit, cache.Hit} {
			answer, err := c.Do(t.Context(), key(i, ""), cache.Policy{Fresh: time.Hour}, load)
			if err != nil || answer.Status != want {
				t.Fatalf("call of key %d: %v, %v, want %v", i, answer.Status, err, want)
			}
		}
	}
}

// A call after a new computation does not find the earlier result.
func TestRecomputedIsVisibleAtOnce(t *testing.T) {
	c, err := cache.New(cache.Config{MaxBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	stored, anew := cache.Policy{Fresh: time.Hour}, cache.Policy{Fresh: time.Hour, Mode: cache.Recompute}
	for i := range 20_000 {
		want := strconv.Itoa(i)
		ask(t, c, key(1, ""), anew, loadOf(want, 0))
		if got, ok := c.Get(key(1, ""), stored); ok && got.Entry.Meta != want {
			t.Fatalf("after computation %s the stored result is %v", want, got.Entry.Meta)
		}
		if got := ask(t, c, key(1, ""), stored, loadOf("unused", 0)); got != want+" hit" {
			t.Fatalf("after computation %s: %s", want, got)
		}
	}
}

func TestFreshnessIsJudgedByEachCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		k := key(1, "")
		w.call(k, use)
		w.end("A1", succeed)
		time.Sleep(fresh - 1)
		wantCallers(t, []*caller{
			w.call(k, use),
			w.call(k, cache.Policy{Fresh: 5 * time.Second}),
			w.call(k, cache.Policy{Fresh: time.Hour, Now: time.Now().Add(-time.Hour)}),
		},
			"load A1, hit, age 9.999999999s, fresh for 1ns",
			"load A1, stale, age 9.999999999s, fresh for 0s",
			"load A1, hit, age 0s, fresh for 1h0m0s")
		wantLive(t, w, "A2")
	})
}

func TestGetGivesFreshResultsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		k := key(1, "")
		if _, ok := w.c.Get(k, use); ok {
			t.Error("Get found a result in an empty cache")
		}
		w.call(k, use)
		w.end("A1", succeed)
		if answer, ok := w.c.Get(k, use); !ok || answer.Entry.Meta != "A1" || answer.Status != cache.Hit {
			t.Errorf("Get = %+v, %t", answer, ok)
		}
		if _, ok := w.c.Get(k, recompute); ok {
			t.Error("Get returned a result in mode Recompute")
		}
		time.Sleep(fresh)
		if _, ok := w.c.Get(k, use); ok {
			t.Error("Get returned a stale result")
		}
		wantLive(t, w)
	})
}

func TestCallersLeave(t *testing.T) {
	const left = "waiting for a result: context canceled"
	t.Run("one of several", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			first, second := w.call(key(1, ""), use), w.call(key(1, ""), use)
			first.leave()
			wantLive(t, w, "A1")
			w.end("A1", succeed)
			wantCallers(t, []*caller{first, second}, left, "load A1, coalesced, age 0s, fresh for 10s")
		})
	})
	t.Run("all of them", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			first, second := w.call(key(1, ""), use), w.call(key(1, ""), use)
			first.leave()
			second.leave()
			wantLive(t, w)
			if err := w.loads[0].ctx.Err(); !errors.Is(err, context.Canceled) {
				t.Errorf("context of the load: %v, want it canceled", err)
			}
			third := w.call(key(1, ""), use) // must not join the canceled flight
			w.end("A2", succeed)
			wantCallers(t, []*caller{first, second, third}, left, left, "load A2, miss, age 0s, fresh for 10s")
		})
	})
	t.Run("before it began", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(errors.New("the client hung up"))
			_, err := w.c.Do(ctx, key(1, ""), use, w.load(key(1, "")))
			if diff := cmp.Diff("computing a result: the client hung up", errText(err)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			wantLive(t, w)
		})
	})
	t.Run("a load that ignores its context", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			release := make(chan struct{})
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				_, _ = w.c.Do(ctx, key(1, ""), use, func(context.Context) (*cache.Entry, error) {
					<-release
					return cache.NewEntry(new(cache.Result), time.Now(), "deaf", 0), nil
				})
			}()
			synctest.Wait()
			cancel()
			synctest.Wait()
			second := w.call(key(1, ""), use)
			w.end("A1", succeed)
			close(release) // its older result must not replace the newer one
			synctest.Wait()
			third := w.call(key(1, ""), use)
			wantCallers(t, []*caller{second, third},
				"load A1, miss, age 0s, fresh for 10s", "load A1, hit, age 0s, fresh for 10s")
		})
	})
}

func TestStaleWhileRevalidate(t *testing.T) {
	setUp := func(w *world) cache.Key {
		k := key(1, "")
		w.call(k, use)
		w.end("A1", succeed)
		time.Sleep(fresh)
		return k
	}
	const old = "load A1, stale, age 10s, fresh for 0s"
	t.Run("one refresh that blocks no call", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			k := setUp(w)
			callers := []*caller{w.call(k, use), w.call(k, use), w.call(k, use)}
			wantCallers(t, callers, old, old, old)
			wantLive(t, w, "A2")
			if err := w.loads[1].ctx.Err(); err != nil {
				t.Errorf("the refresh ended with the call that began it: %v", err)
			}
			w.end("A2", succeed)
			wantCallers(t, []*caller{w.call(k, use)}, "load A2, hit, age 0s, fresh for 10s")
		})
	})
	t.Run("a call that does not accept stale joins the refresh", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			k := setUp(w)
			callers := []*caller{w.call(k, use), w.call(k, noStale), w.call(k, noStale)}
			callers[1].leave()
			w.end("A2", succeed)
			wantCallers(t, callers, old, "waiting for a result: context canceled", "load A2, coalesced, age 0s, fresh for 10s")
		})
	})
	t.Run("too old", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			k := setUp(w)
			time.Sleep(stale)
			c := w.call(k, use)
			w.end("A2", succeed)
			wantCallers(t, []*caller{c}, "load A2, miss, age 0s, fresh for 10s")
		})
	})
	t.Run("an outage is hidden from callers", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			k := setUp(w)
			w.call(k, use)
			w.end("A2", fail)
			wantCallers(t, []*caller{w.call(k, use)}, old)
			wantLive(t, w) // no burst of refreshes
			time.Sleep(refreshRetry)
			wantCallers(t, []*caller{w.call(k, use)}, "load A1, stale, age 12s, fresh for 0s")
			wantLive(t, w, "A3")
			if diff := cmp.Diff([]string{"load A2: connection refused"}, w.reported); diff != "" {
				t.Errorf("reported (-want +got):\n%s", diff)
			}
		})
	})
	t.Run("a refresh that is not admitted", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			k := setUp(w)
			w.call(k, use)
			w.end("A2", turnAway)
			wantCallers(t, []*caller{w.call(k, use)}, old)
			wantLive(t, w)
			time.Sleep(refreshRetry)
			w.call(k, use)
			w.end("A3", succeed)
			wantCallers(t, []*caller{w.call(k, use)}, "load A3, hit, age 0s, fresh for 10s")
		})
	})
	t.Run("a refresh that takes too long", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			k := setUp(w)
			w.call(k, use)
			time.Sleep(refreshTimeout)
			synctest.Wait()
			wantLive(t, w)
			wantCallers(t, []*caller{w.call(k, use)}, "load A1, stale, age 25s, fresh for 0s")
		})
	})
	t.Run("another flight that is abandoned does not count as a refresh", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			k := setUp(w)
			first := w.call(k, noStale)
			wantCallers(t, []*caller{w.call(k, use)}, old)
			wantLive(t, w, "A2")
			first.leave()
			wantCallers(t, []*caller{w.call(k, use)}, old)
			wantLive(t, w, "A3")
		})
	})
	t.Run("an error from before a purge", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			k := setUp(w)
			w.call(k, use)
			w.c.Purge(1)
			w.call(k, use)
			w.end("A3", succeed)
			w.end("A2", refuse)
			wantCallers(t, []*caller{w.call(k, use)}, "load A3, hit, age 0s, fresh for 10s")
		})
	})
	t.Run("an error reaches the next caller", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			k := setUp(w)
			w.call(k, use)
			w.end("A2", refuse)
			c := w.call(k, use)
			w.end("A3", refuse)
			wantCallers(t, []*caller{c}, "load A3: unknown column")
		})
	})
}

func TestStaleIfError(t *testing.T) {
	tests := []struct {
		name   string
		after  time.Duration // since the stored result began
		policy cache.Policy
		ends   outcome
		want   string
	}{
		{"no stale, outage", 11 * time.Second, noStale, fail, "load A1, stale-error, age 12s, fresh for 0s, load A2: connection refused"},
		{"recompute, outage, stale", 11 * time.Second, recompute, fail, "load A1, stale-error, age 12s, fresh for 0s, load A2: connection refused"},
		{"recompute, outage, fresh", 2 * time.Second, recompute, fail, "load A1, stale-error, age 3s, fresh for 7s, load A2: connection refused"},
		{"outage, too old while it lasted", fresh + stale - time.Second, noStale, fail, "load A2: connection refused"},
		{"outage, too old", fresh + stale, use, fail, "load A2: connection refused"},
		{"not admitted", 11 * time.Second, noStale, turnAway, "load A2: too many queries"},
		{"error", 11 * time.Second, noStale, refuse, "load A2: unknown column"},
		{"panic", 11 * time.Second, noStale, crash, "BUG: a panic: load A2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				k := key(1, "")
				w.call(k, use)
				w.end("A1", succeed)
				time.Sleep(tt.after)
				callers := []*caller{w.call(k, tt.policy)}
				time.Sleep(time.Second)
				w.end("A2", tt.ends)
				wantCallers(t, callers, tt.want)
			})
		})
	}
}

func TestErrorsAreNotStored(t *testing.T) {
	for _, o := range []outcome{fail, refuse, turnAway, crash, vanish} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.call(key(1, ""), use)
			w.end("A1", o)
			c := w.call(key(1, ""), use)
			w.end("A2", succeed)
			wantCallers(t, []*caller{c}, "load A2, miss, age 0s, fresh for 10s")
		})
	}
}

func TestRecompute(t *testing.T) {
	t.Run("ignores a fresh result and replaces it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			k := key(1, "")
			w.call(k, use)
			w.end("A1", succeed)
			forced := w.call(k, recompute)
			wantCallers(t, []*caller{w.call(k, use)}, "load A1, hit, age 0s, fresh for 10s")
			w.end("A2", succeed)
			wantCallers(t, []*caller{forced, w.call(k, use)},
				"load A2, refreshed, age 0s, fresh for 10s", "load A2, hit, age 0s, fresh for 10s")
		})
	})
	t.Run("does not share a computation that began before it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			k := key(1, "")
			callers := []*caller{w.call(k, use), w.call(k, recompute), w.call(k, recompute), w.call(k, use)}
			wantLive(t, w, "A1")
			w.end("A1", succeed)
			wantLive(t, w, "A2")
			w.end("A2", succeed)
			wantCallers(t, callers,
				"load A1, miss, age 0s, fresh for 10s", "load A2, refreshed, age 0s, fresh for 10s",
				"load A2, coalesced, age 0s, fresh for 10s", "load A1, coalesced, age 0s, fresh for 10s")
		})
	})
	t.Run("starts over when the other waiters have left", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			k := key(1, "")
			callers := []*caller{w.call(k, use), w.call(k, recompute)}
			callers[1].leave()
			callers = append(callers, w.call(k, recompute))
			w.end("A1", succeed)
			w.end("A2", succeed)
			wantCallers(t, callers,
				"load A1, miss, age 0s, fresh for 10s", "waiting for a result: context canceled",
				"load A2, refreshed, age 0s, fresh for 10s")
		})
	})
	t.Run("continues when earlier waiters leave", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			k := key(1, "")
			first, forced := w.call(k, use), w.call(k, recompute)
			first.leave()
			wantLive(t, w, "A2")
			w.end("A2", succeed)
			wantCallers(t, []*caller{forced}, "load A2, refreshed, age 0s, fresh for 10s")
		})
	})
}

func TestPanicsReachAllWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		k := key(1, "")
		callers := []*caller{w.call(k, use), w.call(k, use)}
		w.end("A1", crash)
		const text = "BUG: a panic: load A1"
		wantCallers(t, callers, text, text)
		var crash *panics.Error
		if !errors.As(callers[0].err, &crash) || !strings.Contains(string(crash.Stack), "world_test.go") {
			t.Errorf("%#v has no stack of the panic", callers[0].err)
		}
		if diff := cmp.Diff([]string{text}, w.reported); diff != "" {
			t.Errorf("reported (-want +got):\n%s", diff)
		}
	})
}

func TestLoadWithoutEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_, err := w.c.Do(t.Context(), key(1, ""), use, func(context.Context) (*cache.Entry, error) { return nil, nil })
		want := "BUG: the load of a result returned neither an entry nor an error"
		if diff := cmp.Diff(want, errText(err)); diff != "" {
			t.Errorf("error (-want +got):\n%s", diff)
		}
	})
}

// A load sees the values of the call's context, such as a request id, but not its deadline.
func TestLoadContext(t *testing.T) {
	type name struct{}
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), name{}, "request 7"), time.Minute)
		defer cancel()
		go func() { _, _ = w.c.Do(ctx, key(1, ""), use, w.load(key(1, ""))) }()
		synctest.Wait()
		got := w.loads[0].ctx
		if got.Value(name{}) != "request 7" {
			t.Error("the load does not see the values of the call's context")
		}
		if _, ok := got.Deadline(); ok {
			t.Error("the load has the deadline of one of its callers")
		}
	})
}

func TestStatus(t *testing.T) {
	tests := []struct {
		status cache.Status
		name   string
		cached bool
	}{
		{cache.Hit, "hit", true},
		{cache.Miss, "miss", false},
		{cache.Stale, "stale", true},
		{cache.StaleError, "stale-error", true},
		{cache.Coalesced, "coalesced", false},
		{cache.Refreshed, "refreshed", false},
		{cache.Renewed, "renewed", true},
		{cache.Pinned, "pinned", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.status.String() != tt.name || tt.status.Cached() != tt.cached {
				t.Errorf("%s, cached %t; want %s, %t", tt.status, tt.status.Cached(), tt.name, tt.cached)
			}
		})
	}
}

func TestEntriesHaveIDsOfTheirOwn(t *testing.T) {
	result := new(cache.Result)
	one, other := cache.NewEntry(result, time.Time{}, nil, 0), cache.NewEntry(result, time.Time{}, nil, 0)
	if one.ID() == other.ID() {
		t.Errorf("two entries have ID %d", one.ID())
	}
}
