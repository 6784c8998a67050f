package cache_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caddy-analytics/caddy-analytics/cache"
)

// paged is the policy of the calls in the tests below: their results may get refs.
var paged = cache.Policy{Fresh: fresh, Refs: true}

// hold is how long a world keeps entries with refs.
const hold = 5 * time.Minute

// refer gets a key's result and returns a ref to it.
func (w *world) refer(t *testing.T, k cache.Key, load cache.Load) cache.Ref {
	t.Helper()
	answer, err := w.c.Do(t.Context(), k, paged, load)
	if err != nil {
		t.Fatalf("Do: %v", err)
	}
	ref := w.c.Refer(k, answer.Entry)
	synctest.Wait()
	return ref
}

// snapshot describes the snapshot of a ref.
func (w *world) snapshot(k cache.Key, ref cache.Ref) string {
	found, answer, ok := w.c.Snapshot(ref, paged)
	switch {
	case !ok:
		return "gone"
	case found != k:
		return "another key"
	}
	return fmt.Sprintf("%s, %s, age %s, fresh for %s", answer.Entry.Meta, answer.Status, answer.Age, answer.FreshFor)
}

func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// Whatever happens to a key, a ref keeps its snapshot; results without a ref are not kept.
func TestRefsOutliveTheirKey(t *testing.T) {
	const old = "old, pinned, age 20s, fresh for 0s"
	tests := []struct {
		name string
		do   func(t *testing.T, w *world, k cache.Key)
		want string // the snapshot of the ref
		now  string // the result of the key then
	}{
		{"nothing", func(*testing.T, *world, cache.Key) {}, "old, hit, age 0s, fresh for 10s", "old hit"},
		{"it goes stale", func(*testing.T, *world, cache.Key) { sleep(2 * fresh) }, old, "old stale"},
		{"a refresh", func(t *testing.T, w *world, k cache.Key) {
			t.Helper()
			sleep(2 * fresh)
			ask(t, w.c, k, paged, loadOf("new", 0))
		}, old, "new hit"},
		{"a refresh that fails for good", func(_ *testing.T, w *world, k cache.Key) {
			sleep(2 * fresh)
			w.call(k, paged)
			w.end("A1", refuse)
		}, old, "new miss"},
		{"a recomputation", func(t *testing.T, w *world, k cache.Key) {
			t.Helper()
			ask(t, w.c, k, recompute, loadOf("new", 0))
		}, "old, hit, age 0s, fresh for 10s", "new hit"},
		{"many recomputations", func(t *testing.T, w *world, k cache.Key) {
			t.Helper()
			for range 100 {
				ask(t, w.c, k, recompute, loadOf("new", 0))
				synctest.Wait()
			}
		}, "old, hit, age 0s, fresh for 10s", "new hit"},
		{"a result too large to be stored", func(t *testing.T, w *world, k cache.Key) {
			t.Helper()
			ask(t, w.c, k, recompute, loadOf("large", 1<<18))
		}, "old, hit, age 0s, fresh for 10s", "new miss"},
		{"another key with the same hash", func(t *testing.T, w *world, k cache.Key) {
			t.Helper()
			ask(t, w.c, cache.Collide(key(2, "")), paged, loadOf("other", 0))
		}, "old, hit, age 0s, fresh for 10s", "new miss"},
		{"a purge", func(_ *testing.T, w *world, _ cache.Key) { w.c.Purge(1) }, "old, hit, age 0s, fresh for 10s", "new miss"},
		{"a purge, a result, a purge", func(t *testing.T, w *world, k cache.Key) {
			t.Helper()
			w.c.Purge(1)
			ask(t, w.c, k, paged, loadOf("between", 0))
			synctest.Wait()
			w.c.Purge(1)
		}, "old, hit, age 0s, fresh for 10s", "new miss"},
		{
			"it may no longer be served", func(*testing.T, *world, cache.Key) { sleep(fresh + stale + time.Second) },
			"old, pinned, age 1m11s, fresh for 0s", "new miss",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				k := cache.Collide(key(1, ""))
				w.letter(k)
				ref := w.refer(t, k, loadOf("old", 0))
				tt.do(t, w, k)
				synctest.Wait()
				for range 2 { // the second time it may be found elsewhere
					if diff := cmp.Diff(tt.want, w.snapshot(k, ref)); diff != "" {
						t.Errorf("Snapshot (-want +got):\n%s", diff)
					}
				}
				if diff := cmp.Diff(tt.now, ask(t, w.c, k, paged, loadOf("new", 0))); diff != "" {
					t.Errorf("Do (-want +got):\n%s", diff)
				}
			})
		})
	}
	t.Run("without a ref", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			k := key(1, "")
			answer, err := w.c.Do(t.Context(), k, paged, loadOf("old", 0))
			if err != nil {
				t.Fatal(err)
			}
			next := w.refer(t, key(2, ""), loadOf("other", 0))
			next.Entry = answer.Entry.ID() // made up
			ask(t, w.c, k, recompute, loadOf("new", 0))
			synctest.Wait()
			if got := w.snapshot(k, next); got != "gone" {
				t.Errorf("a made-up ref returns %s", got)
			}
		})
	})
}

// A ref works at once, even if the store does not have the result yet or never gets it.
func TestRefsToPendingResults(t *testing.T) {
	for name, interfere := range map[string]func(w *world){
		"undisturbed":             func(*world) {},
		"purged before the store": func(w *world) { w.c.Purge(1) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				k := key(1, "")
				w.letter(k)
				var ref cache.Ref
				var got []string
				go func() {
					answer, err := w.c.Do(t.Context(), k, paged, w.load(k))
					if err != nil {
						t.Errorf("Do: %v", err)
						return
					}
					ref = w.c.Refer(k, answer.Entry) // without waiting for anything
					got = append(got, w.snapshot(k, ref))
				}()
				synctest.Wait()
				interfere(w)
				w.end("A1", succeed)
				got = append(got, w.snapshot(k, ref))
				if diff := cmp.Diff([]string{"A1, hit, age 0s, fresh for 10s", "A1, hit, age 0s, fresh for 10s"}, got); diff != "" {
					t.Errorf("Snapshot, at once and later (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// An entry that the store does not keep is held once it has a ref.
func TestRefsToUnstoredResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := cache.New(cache.Config{MaxBytes: 16 << 20})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for i := range int64(20) {
			k := key(i, "")
			answer, err := c.Do(t.Context(), k, cache.Policy{}, loadOf("x", 0)) // not fresh for a moment
			if err != nil {
				t.Fatal(err)
			}
			ref := c.Refer(k, answer.Entry)
			synctest.Wait()
			if _, found, ok := c.Snapshot(ref, cache.Policy{}); !ok || found.Entry != answer.Entry {
				t.Fatalf("key %d: the snapshot is gone", i)
			}
		}
	})
}

// An entry with a ref is kept for a time after its last use, wherever it is, and no longer.
func TestRefsExpire(t *testing.T) {
	for name, displace := range map[string]func(t *testing.T, w *world, k cache.Key){
		"of a key's result": func(*testing.T, *world, cache.Key) { sleep(fresh + stale) },
		"of a displaced one": func(t *testing.T, w *world, k cache.Key) {
			t.Helper()
			ask(t, w.c, k, recompute, loadOf("new", 0))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				k := key(1, "")
				ref := w.refer(t, k, loadOf("old", 0))
				displace(t, w, k)
				for range 10 {
					w.snapshot(k, ref) // at any time, it counts
					sleep(time.Second)
					w.snapshot(k, ref)
					sleep(hold - time.Second)
					if got := w.snapshot(k, ref); !strings.HasPrefix(got, "old, pinned") {
						t.Fatalf("used all the time: %s", got)
					}
				}
				sleep(hold*9/8 + time.Second)
				if got := w.snapshot(k, ref); got != "gone" {
					t.Errorf("no longer used: %s", got)
				}
				sleep(fresh + stale + hold)
				if got := w.c.Stats().Bytes; got != 0 {
					t.Errorf("%d bytes are taken", got)
				}
			})
		})
	}
}

// A snapshot counts once, whether it is stored under its key, held, or first one and then the other; held snapshots stay within the budget.
func TestHeldSnapshotsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		k := key(1, "")
		const size = 10_000
		w.refer(t, k, loadOf("old", size))
		one := w.c.Stats().Bytes
		ref := w.refer(t, k, loadOf("unused", 0))
		if got := w.c.Stats().Bytes; got != one {
			t.Errorf("referred to twice: %d bytes, want %d", got, one)
		}
		for i := range int64(3) {
			ask(t, w.c, k, recompute, loadOf("new", size))
			synctest.Wait()
			w.refer(t, k, loadOf("unused", 0))
			w.snapshot(k, ref)
			if got, want := w.c.Stats().Bytes, (i+2)*one; got < want || got > want+want/8 {
				t.Errorf("%d snapshots: %d bytes, want about %d", i+2, got, want)
			}
		}
		w.c.Purge(1)
		if got, want := w.c.Stats().Bytes, 4*one; got < want || got > want+want/8 {
			t.Errorf("after a purge: %d bytes, want about %d", got, want)
		}
		for range 500 { // a client that recomputes everything and pages through nothing
			ask(t, w.c, k, recompute, loadOf("new", 64<<10))
			synctest.Wait()
			w.refer(t, k, loadOf("unused", 0))
			if stats := w.c.Stats(); stats.Bytes > budget {
				t.Fatalf("%d bytes are taken of %d", stats.Bytes, budget)
			}
		}
	})
}

// A ref is valid at every moment, while other calls recompute the same key and purge the project.
func TestRefsUnderLoad(t *testing.T) {
	c, err := cache.New(cache.Config{MaxBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	k := key(1, "")
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 60 {
				p := cache.Policy{Fresh: time.Hour, Refs: true, Mode: cache.Mode(i+g) % 3}
				answer, err := c.Do(t.Context(), k, p, loadOf("x", 0))
				if err != nil {
					t.Errorf("Do: %v", err)
					return
				}
				ref := c.Refer(k, answer.Entry)
				for range 10 {
					if _, found, ok := c.Snapshot(ref, p); !ok || found.Entry != answer.Entry {
						t.Errorf("call %d of caller %d: the snapshot is gone", i, g)
						return
					}
				}
				if i%20 == 19 {
					c.Purge(1)
				}
			}
		})
	}
	all.Wait()
}

// TestPagesByRefAreTheSnapshot reads a result in pages of any size while its key is recomputed, purged and grows stale: together
// the pages are the rows of the first page's result.
func TestPagesByRefAreTheSnapshot(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rapid.SyncTest(rt, func(rt *rapid.T) {
			w := newWorld(rt)
			k := key(1, "")
			compute := func(p cache.Policy) cache.Answer {
				n := rapid.IntRange(0, 40).Draw(rt, "rows")
				answer, err := w.c.Do(context.Background(), k, p, loadRows(naive{rows: rowsOf(n)}.result(t)))
				if err != nil {
					rt.Fatalf("Do: %v", err)
				}
				return answer
			}
			first := compute(paged)
			ref := w.c.Refer(k, first.Entry)
			want := string(first.Entry.Result.AppendRows(nil, 0, -1))
			var got []string
			for offset, more := 0, true; more; {
				rapid.SampledFrom([]func(){
					func() {},
					synctest.Wait,
					func() { sleep(time.Duration(rapid.IntRange(1, 299).Draw(rt, "seconds")) * time.Second) },
					func() { w.c.Purge(1) },
					func() { compute(cache.Policy{Fresh: fresh, Refs: true, Mode: cache.Recompute}) },
					func() {
						another := compute(paged)
						w.c.Refer(k, another.Entry)
					},
				}).Draw(rt, "meanwhile")()
				_, page, ok := w.c.Snapshot(ref, paged)
				if !ok {
					rt.Fatalf("the snapshot is gone at row %d", offset)
				}
				limit := rapid.IntRange(1, 15).Draw(rt, "limit")
				if text := string(page.Entry.Result.AppendRows(nil, offset, limit)); text != "[]" {
					got = append(got, text[1:len(text)-1])
				}
				offset += page.Entry.Result.PageLen(offset, limit)
				more = page.Entry.Result.HasMore(offset, 0)
			}
			if diff := cmp.Diff(want, "["+strings.Join(got, ",")+"]"); diff != "" {
				rt.Errorf("all pages (-want +got):\n%s", diff)
			}
		})
	})
}

// TestDeepPagesCostTheSame compares the allocations of pages at different offsets.
func TestDeepPagesCostTheSame(t *testing.T) {
	result := naive{rows: rowsOf(50_000)}.result(t)
	cost := func(offset int) float64 {
		var dst []byte
		allocations := testing.AllocsPerRun(100, func() { dst = result.AppendRows(nil, offset, 100) })
		if len(dst) < 2_000 {
			t.Errorf("the page at row %d has %d bytes", offset, len(dst))
		}
		return allocations
	}
	first := cost(0)
	for _, offset := range []int{25_000, 49_000, 49_900} {
		if got := cost(offset); got != first || got > 2 {
			t.Errorf("the page at row %d takes %v allocations, that at row 0 takes %v", offset, got, first)
		}
	}
}

// BenchmarkPage slices pages from a result of the maximum size for pages: the offset makes no difference.
func BenchmarkPage(b *testing.B) {
	result := naive{rows: rowsOf(50_000)}.result(b)
	dst := make([]byte, 0, 64<<10)
	for _, offset := range []int{0, 100, 25_000, 49_000, 49_900} {
		b.Run(fmt.Sprintf("offset %d", offset), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if dst = result.AppendRows(dst[:0], offset, 100); len(dst) < 2_000 {
					b.Fatalf("%d bytes", len(dst))
				}
			}
		})
	}
}
