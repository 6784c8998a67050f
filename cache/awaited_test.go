package cache_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-analytics/caddy-analytics/cache"
)

// TestAwaited checks that a load learns whether a call waits for it, at the start or later.
func TestAwaited(t *testing.T) {
	background := func(p cache.Policy) cache.Policy {
		p.Background = true
		return p
	}
	awaited := func(w *world, load int) bool {
		select {
		case <-cache.Awaited(w.loads[load].ctx):
			return true
		default:
			return false
		}
	}
	if cache.Awaited(t.Context()) != nil {
		t.Error("a context without a load is awaited")
	}
	for _, tt := range []struct {
		name          string
		first         cache.Policy
		then          []cache.Policy
		before, after bool
	}{
		{"a call", use, nil, true, true},
		{"a background call", background(use), nil, false, false},
		{"a background call that another joins", background(use), []cache.Policy{background(noStale)}, false, false},
		{"a background call that a waiting one joins", background(use), []cache.Policy{noStale, use}, false, true},
		{"a call that a background one joins", noStale, []cache.Policy{background(use)}, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				k := key(1, "")
				w.call(k, tt.first)
				if got := awaited(w, 0); got != tt.before {
					t.Errorf("at first: %t", got)
				}
				for _, p := range tt.then {
					w.call(k, p)
				}
				if got := awaited(w, 0); got != tt.after || len(w.loads) != 1 {
					t.Errorf("then: %t, %d loads", got, len(w.loads))
				}
				w.end("A1", succeed)
			})
		})
	}
	t.Run("a refresh", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			k := key(1, "")
			w.call(k, use)
			w.end("A1", succeed)
			time.Sleep(fresh)
			w.call(k, use)
			if awaited(w, 1) {
				t.Error("a background refresh is awaited")
			}
			w.call(k, noStale)
			if !awaited(w, 1) {
				t.Error("a refresh with a waiting call is not awaited")
			}
			w.end("A2", succeed)
		})
	})
	t.Run("the next of two", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			k := key(1, "")
			again := cache.Policy{Mode: cache.Recompute}
			w.call(k, again)
			w.call(k, background(again))
			w.end("A1", succeed)
			if awaited(w, 1) {
				t.Error("a background call is awaited")
			}
			w.call(k, background(again))
			w.call(k, again)
			w.end("A2", succeed)
			if !awaited(w, 2) {
				t.Error("a waiting call shares the next computation, but it is not awaited")
			}
			w.end("A3", succeed)
		})
	})
}
