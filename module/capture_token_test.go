package module

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api/capture"
)

// TestRereads: callers at the same time and one after another each get a read that began after they asked, with few reads in total.
func TestRereads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s rereads
		var reads atomic.Int64
		read := func(ctx context.Context) error {
			reads.Add(1)
			time.Sleep(10 * time.Millisecond)
			return ctx.Err()
		}
		began := time.Now()
		if err := s.wait(t.Context(), read); err != nil || reads.Load() != 1 || time.Since(began) != 10*time.Millisecond {
			t.Fatalf("the first: %v, %d reads after %s", err, reads.Load(), time.Since(began))
		}
		var all sync.WaitGroup
		var answered, refused atomic.Int64
		for range 10 * rereadWaiting {
			all.Go(func() {
				switch err := s.wait(t.Context(), read); {
				case err == nil:
					answered.Add(1)
				case errors.Is(err, capture.ErrCrowded):
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		all.Wait()
		if answered.Load() != rereadWaiting || refused.Load() != 9*rereadWaiting {
			t.Errorf("of many at once %d are answered and %d refused", answered.Load(), refused.Load())
		}
		if took := time.Since(began); reads.Load() != 2 || took != rereadEvery+10*time.Millisecond {
			t.Errorf("many at once: %d reads after %s", reads.Load(), took)
		}
		// A caller that comes during a read needs another read.
		time.Sleep(time.Second)
		var stale atomic.Bool
		slow := func(ctx context.Context) error {
			reads.Add(1)
			was := stale.Load()
			time.Sleep(50 * time.Millisecond)
			if was {
				stale.Store(false)
			}
			return ctx.Err()
		}
		all.Go(func() { _ = s.wait(t.Context(), slow) })
		time.Sleep(time.Millisecond)
		stale.Store(true)
		if err := s.wait(t.Context(), slow); err != nil || stale.Load() {
			t.Errorf("during a read: %v, and it got that one", err)
		}
		all.Wait()
		failed := errors.New("the store is away")
		if err := s.wait(t.Context(), func(context.Context) error { return failed }); !errors.Is(err, failed) {
			t.Errorf("a read that fails: %v", err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.wait(gone, read); !errors.Is(err, context.Canceled) {
			t.Errorf("a client that is gone: %v", err)
		}
		time.Sleep(time.Second)
	})
}

// TestUnknownTokens: a token that no project has is not looked up again for a moment, and what is remembered is bounded.
func TestUnknownTokens(t *testing.T) {
	var u unknownTokens
	now := time.Now()
	u.add("phc_revoked", now)
	for after, want := range map[time.Duration]bool{0: true, unknownFor - 1: true, unknownFor: false} {
		if got := u.has("phc_revoked", now.Add(after)); got != want {
			t.Errorf("after %s: %t", after, got)
		}
	}
	if u.has("phc_other", now) {
		t.Error("another token is unknown, too")
	}
	for n := range 3 * mostUnknown {
		u.add(fmt.Sprint("phc_", n), now)
		u.add(strings.Repeat("x", longToken+1), now)
	}
	if len(u.tokens) > mostUnknown {
		t.Errorf("%d tokens are remembered", len(u.tokens))
	}
}
