package cache_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
)

// TestPeek checks that Peek returns results of any age, for as long as their policy keeps them, and computes nothing.
func TestPeek(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := cache.New(cache.Config{MaxBytes: 1 << 20, Stale: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		key := cache.KeyParts{Project: 1, Query: "q"}.Key()
		policy := cache.Policy{Fresh: time.Minute, Mode: cache.NoStale, Keep: time.Hour}
		if got, ok := c.Peek(key, policy); ok {
			t.Errorf("an empty cache returns %v", got)
		}
		if _, err := c.Do(t.Context(), key, policy, func(context.Context) (*cache.Entry, error) {
			return cache.NewEntry(&cache.Result{}, time.Now(), "past", 0), nil
		}); err != nil {
			t.Fatal(err)
		}
		lasting := policy
		lasting.Lasting = func(e *cache.Entry) bool { return e.Meta == "past" }
		steps := []struct {
			after  time.Duration
			policy cache.Policy
			want   cache.Status
			fresh  time.Duration
		}{
			{0, policy, cache.Hit, time.Minute}, // at once: the result of Do is there
			{59 * time.Second, policy, cache.Hit, time.Second},
			{time.Second, policy, cache.Stale, 0},
			{0, lasting, cache.Hit, time.Minute},
			{58 * time.Minute, policy, cache.Stale, 0}, // past Fresh and Stale, within Keep
			{0, lasting, cache.Hit, time.Minute},
		}
		for i, s := range steps {
			time.Sleep(s.after)
			got, ok := c.Peek(key, s.policy)
			if !ok || got.Status != s.want || got.FreshFor != s.fresh {
				t.Errorf("step %d: %t, %s, fresh for %s", i, ok, got.Status, got.FreshFor)
			}
			synctest.Wait() // until then Get may not see what Do has just returned
			if _, ok := c.Get(key, s.policy); ok != (s.want == cache.Hit) {
				t.Errorf("step %d: Get %t", i, ok)
			}
		}
		time.Sleep(2 * time.Minute)
		if got, ok := c.Peek(key, policy); ok {
			t.Errorf("a result that need not be kept: %v", got)
		}
	})
}
