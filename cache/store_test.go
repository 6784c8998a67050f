package cache_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/caddy-analytics/caddy-analytics/cache"
)

func TestConfigErrors(t *testing.T) {
	tests := []struct {
		name   string
		config cache.Config
		want   string
	}{
		{"no size", cache.Config{}, "cache size must be positive, got 0 bytes"},
		{"negative size", cache.Config{MaxBytes: -1}, "cache size must be positive, got -1 bytes"},
		{"negative stale time", cache.Config{MaxBytes: 1, Stale: -1}, "stale time must not be negative, got -1ns"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := cache.New(tt.config)
			if diff := cmp.Diff(tt.want, errText(err)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// loadOf returns a load whose entry takes about size bytes.
func loadOf(meta string, size int) cache.Load {
	return func(context.Context) (*cache.Entry, error) {
		return cache.NewEntry(new(cache.Result), time.Now(), meta, size), nil
	}
}

// ask calls Do and returns the entry's Meta and the status.
func ask(t *testing.T, c *cache.Cache, k cache.Key, p cache.Policy, load cache.Load) string {
	t.Helper()
	answer, err := c.Do(t.Context(), k, p, load)
	if err != nil {
		t.Fatalf("Do: %v", err)
	}
	return answer.Entry.Meta.(string) + " " + answer.Status.String()
}

func TestLargeResultsAreNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		k := key(1, "")
		for _, step := range []struct {
			policy cache.Policy
			load   cache.Load
			want   string
		}{
			{use, loadOf("small", 1<<10), "small miss"},
			{use, loadOf("unused", 0), "small hit"},
			{recompute, loadOf("large", 1<<17), "large refreshed"},
			{use, loadOf("large again", 1<<17), "large again miss"}, // not the older small one
			{use, loadOf("just small enough", 1<<17-1024), "just small enough miss"},
			{use, loadOf("unused", 0), "just small enough hit"},
		} {
			if diff := cmp.Diff(step.want, ask(t, w.c, k, step.policy, step.load)); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			synctest.Wait()
		}
		if got := w.c.Stats().TooLarge; got != 2 {
			t.Errorf("Stats().TooLarge = %d, want 2", got)
		}
	})
}

func TestBudgetIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for i := range int64(500) {
			for range 3 { // some keys are worth more than others
				ask(t, w.c, key(i%50+i/100, ""), use, loadOf("x", 64<<10))
				synctest.Wait()
				if stats := w.c.Stats(); stats.Bytes > budget || stats.Bytes < 0 {
					t.Fatalf("%d bytes are taken of %d", stats.Bytes, budget)
				}
			}
		}
		if stats := w.c.Stats(); stats.Bytes < budget/2 || stats.Evicted+stats.Rejected == 0 {
			t.Errorf("after storing 32 times the budget: %+v", stats)
		}
	})
}

// TestBudgetIsKeptByGrowth: results and pieces that replace smaller ones displace others, or are not kept, even if all are asked for often.
func TestBudgetIsKeptByGrowth(t *testing.T) {
	const keys = 40
	tests := map[string]func(t *testing.T, w *world, n int64, size int){
		"results": func(t *testing.T, w *world, n int64, size int) {
			t.Helper()
			for range 3 {
				ask(t, w.c, key(n, ""), recompute, loadOf("x", size))
				synctest.Wait()
			}
		},
		"pieces": func(t *testing.T, w *world, n int64, size int) {
			t.Helper()
			b := cache.NewBuilder(cache.Limits{})
			_ = b.Columns(nil)
			if err := b.Row([]byte(`["` + strings.Repeat("x", size) + `"]`)); err != nil {
				t.Fatal(err)
			}
			computed := map[cache.Span]*cache.Piece{{From: 1, To: 2}: {Rows: b.Result(), ComputedAt: time.Now()}}
			for range 3 {
				w.c.KeepPieces(w.c.Pieces(key(n, "")), nil, computed, nil)
			}
		},
	}
	for name, store := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				most := int64(budget)
				if name == "results" { // until the next one is stored
					most += budget / 8
				}
				for size := 1 << 10; size < budget/8; size *= 2 {
					for n := range int64(keys) {
						store(t, w, n, size)
						if stats := w.c.Stats(); stats.Bytes > most || stats.Bytes < 0 {
							t.Fatalf("%d bytes are taken of %d after %d of size %d", stats.Bytes, most, n, size)
						}
					}
				}
				if stats := w.c.Stats(); stats.Bytes < budget/4 {
					t.Errorf("only %d bytes are taken of %d", stats.Bytes, budget)
				}
			})
		})
	}
}

func TestExpiredResultsGiveTheirMemoryBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ask(t, w.c, key(1, ""), use, loadOf("x", 10_000))
		synctest.Wait()
		if got := w.c.Stats().Bytes; got < 10_000 {
			t.Fatalf("Stats().Bytes = %d, want more than 10000", got)
		}
		time.Sleep(fresh + stale + 15*time.Second) // Ristretto sweeps every few seconds
		synctest.Wait()
		if got := w.c.Stats().Bytes; got != 0 {
			t.Errorf("Stats().Bytes = %d, want 0", got)
		}
	})
}

// Two different sets of parts never share a result, not even when their hashes collide.
func TestKeysNeverShare(t *testing.T) {
	parts := rapid.Custom(func(rt *rapid.T) cache.KeyParts {
		text := rapid.StringMatching("[ab\x00\x01]{0,3}")
		return cache.KeyParts{
			Project:   rapid.Int64Range(-1, 2).Draw(rt, "project"),
			RowFilter: text.Draw(rt, "row filter"),
			Endpoint:  text.Draw(rt, "endpoint"),
			Version:   rapid.IntRange(0, 2).Draw(rt, "version"),
			Query:     text.Draw(rt, "query"),
			Variables: text.Draw(rt, "variables"),
			Zone:      text.Draw(rt, "zone"),
			Extra:     text.Draw(rt, "extra"),
		}
	})
	c, err := cache.New(cache.Config{MaxBytes: 16 << 20, Stale: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	policy := cache.Policy{Fresh: time.Hour}
	rapid.Check(t, func(rt *rapid.T) {
		mine, theirs := parts.Draw(rt, "mine"), parts.Draw(rt, "theirs")
		same := mine == theirs
		if same != (mine.Key() == theirs.Key()) || same != (mine.Key().String() == theirs.Key().String()) {
			rt.Errorf("keys of %+v and %+v: equal though the parts differ, or different though they are equal", mine, theirs)
		}
		c.Purge(mine.Project)
		c.Purge(theirs.Project)
		ask(t, c, cache.Collide(mine.Key()), policy, loadOf("mine", 0))
		want := "theirs miss"
		if same {
			want = "mine hit"
		}
		if got := ask(t, c, cache.Collide(theirs.Key()), policy, loadOf("theirs", 0)); got != want {
			rt.Errorf("%+v was answered with %q, want %q", theirs, got, want)
		}
	})
}

func TestKeyString(t *testing.T) {
	k := cache.KeyParts{Project: 7, RowFilter: "secret"}.Key()
	if diff := cmp.Diff("cache_7_", k.String()[:8]); diff != "" {
		t.Errorf("key (-want +got):\n%s", diff)
	}
	if len(k.String()) != len("cache_7_")+32 || strings.Contains(k.String(), "secret") {
		t.Errorf("key %s is not a digest", k)
	}
}

func TestZeroKeyIsABug(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer func() {
			if r := recover(); r != "BUG: a cache key must come from KeyParts.Key" {
				t.Errorf("recovered %v", r)
			}
		}()
		_, _ = w.c.Do(t.Context(), cache.Key{}, use, loadOf("x", 0))
	})
}

func TestPurge(t *testing.T) {
	t.Run("forgets one project", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			page := func(k cache.Key) {
				synctest.Wait()
				answer, _ := w.c.Get(k, use)
				w.c.Page(answer.Entry, cache.PageKey{}, cache.Identity, func(dst []byte) []byte { return append(dst, "page"...) })
			}
			ask(t, w.c, key(1, ""), use, loadOf("one", 0))
			page(key(1, ""))
			one := w.c.Stats().Bytes
			ask(t, w.c, key(2, ""), use, loadOf("two", 0))
			page(key(2, ""))
			w.c.Purge(1)
			if stats := w.c.Stats(); stats.Bytes != one { // both take the same
				t.Errorf("%d bytes are taken, want %d", stats.Bytes, one)
			}
			got := []string{
				ask(t, w.c, key(1, ""), use, loadOf("one anew", 0)),
				ask(t, w.c, key(2, ""), use, loadOf("two anew", 0)),
			}
			if diff := cmp.Diff([]string{"one anew miss", "two hit"}, got); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
		})
	})
	t.Run("while a load runs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			before := w.call(key(1, ""), use)
			w.c.Purge(1)
			after := w.call(key(1, ""), use)
			wantLive(t, w, "A1", "A2")
			w.end("A2", succeed)
			w.end("A1", succeed) // last, but what it read is older than the purge
			wantCallers(t, []*caller{before, after, w.call(key(1, ""), use)},
				"load A1, miss, age 0s, fresh for 10s",
				"load A2, miss, age 0s, fresh for 10s",
				"load A2, hit, age 0s, fresh for 10s")
		})
	})
	t.Run("lets a call that waits to recompute go on", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.call(key(1, ""), use)
			forced := w.call(key(1, ""), recompute)
			w.c.Purge(1)
			synctest.Wait()
			w.end("A2", succeed)
			wantCallers(t, []*caller{forced}, "load A2, refreshed, age 0s, fresh for 10s")
		})
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		stored := key(2, "")
		ask(t, w.c, stored, use, loadOf("stored", 0))
		synctest.Wait()
		entry, _ := w.c.Get(stored, use)
		waiting := []*caller{w.call(key(1, ""), use), w.call(key(1, ""), recompute)}
		w.c.Close()
		wantLive(t, w) // Close has waited for them
		synctest.Wait()
		wantCallers(t, waiting, "the cache is closed: load A1: context canceled", "the cache is closed")
		if cause := context.Cause(w.loads[0].ctx); !errors.Is(cause, cache.ErrClosed) {
			t.Errorf("cause of the load's end: %v", cause)
		}
		wantCallers(t, []*caller{w.call(stored, use), w.call(key(1, ""), recompute)}, "the cache is closed", "the cache is closed")
		body := w.c.Page(entry.Entry, cache.PageKey{}, cache.Identity, func(dst []byte) []byte { return append(dst, "page"...) })
		if string(body.Bytes) != "page" {
			t.Errorf("page after Close: %q", body.Bytes)
		}
		w.c.Purge(2)
		w.c.Close()
		wantLive(t, w)
	})
}

// Calls of every kind run concurrently with Close and each other. The race detector, and Ristretto, which panics
// when used after it was closed, find mistakes.
func TestCloseUnderLoad(t *testing.T) {
	for range 20 {
		c, err := cache.New(cache.Config{MaxBytes: 1 << 20, Stale: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		var calls, warm sync.WaitGroup
		for g := range 8 {
			warm.Add(1)
			calls.Go(func() {
				for i := 0; useAll(t, c, g == 0, i); i++ {
					if i == 50 {
						warm.Done()
					}
				}
			})
		}
		warm.Wait()
		c.Close()
		calls.Wait()
	}
}

// useAll makes call i of a series with calls of every kind. It reports whether the cache is open.
func useAll(t *testing.T, c *cache.Cache, purges bool, i int) (open bool) {
	t.Helper()
	policy := cache.Policy{Fresh: time.Duration(i%2) * time.Hour, Mode: cache.Mode(i % 3)}
	answer, err := c.Do(t.Context(), key(int64(i%20), ""), policy, loadOf("x", i%1000))
	if err != nil {
		if !errors.Is(err, cache.ErrClosed) {
			t.Errorf("Do: %v", err)
		}
		return false
	}
	c.Page(answer.Entry, cache.PageKey{Offset: i % 3}, cache.Gzip, func(dst []byte) []byte { return append(dst, "page"...) })
	for range 100 { // hits, which only the gate protects
		c.GetPage(answer.Entry, cache.PageKey{Offset: i % 3}, cache.Gzip)
	}
	if purges && i%100 == 0 {
		c.Purge(int64(i % 20))
		c.Stats()
	}
	return true
}
