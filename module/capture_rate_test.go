package module

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestCaptureRate sends requests of several sizes to a token with ten events a second.
func TestCaptureRate(t *testing.T) {
	most := Rate{Queries: 10, Per: time.Second}
	began := time.Unix(1_800_000_000, 0)
	steps := []struct {
		at     time.Duration
		events int
		want   time.Duration
	}{
		{0, 4, 0},
		{0, 6, 0},
		{0, 1, 100 * time.Millisecond},
		{100 * time.Millisecond, 1, 0},
		{100 * time.Millisecond, 25, time.Second}, // more than a period: accepted once a whole one is unused
		{time.Second, 25, 100 * time.Millisecond},
		{1100 * time.Millisecond, 25, 0},
		{1100 * time.Millisecond, 1, 1600 * time.Millisecond}, // 15 have to come back first
		{2 * time.Second, 1, 700 * time.Millisecond},
		{2700 * time.Millisecond, 1, 0},
		{2700 * time.Millisecond, 10, time.Second},
		{time.Second, 1, 100 * time.Millisecond}, // a slow request that began before those that were taken already
		{2700 * time.Millisecond, 1, 100 * time.Millisecond},
	}
	var c capturing
	wait := func(most Rate, token string, events int, at time.Duration) time.Duration {
		_, wait := c.limit(most, token, events, began.Add(at))
		return wait.Round(time.Millisecond)
	}
	for n, step := range steps {
		if got := wait(most, "a", step.events, step.at); got != step.want {
			t.Errorf("step %d, %d events after %s: wait %s, want %s", n, step.events, step.at, got, step.want)
		}
	}
	if got := wait(most, "b", 10, 0); got != 0 {
		t.Errorf("another token waits %s", got)
	}
	if got := wait(Rate{Queries: 20, Per: most.Per}, "b", 20, 0); got != 0 {
		t.Errorf("with another rate it waits %s", got)
	}
	for range 20 { // each time, the events are not kept
		giveBack, refused := c.limit(most, "c", 25, began)
		if refused != 0 {
			t.Fatalf("after those before were given back: wait %s", refused)
		}
		giveBack()
	}
	if got := wait(most, "c", 11, 0); got != 0 {
		t.Errorf("after all were given back: wait %s", got)
	}
	if got := wait(most, "c", 1, 0); got != 200*time.Millisecond {
		t.Errorf("11 of 10 events are taken: wait %s, want 0.2s", got)
	}

	var taken atomic.Int64
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if wait(most, "new", 1, 0) == 0 {
				taken.Add(1)
			}
		})
	}
	all.Wait()
	if taken.Load() != 10 {
		t.Errorf("%d of 50 requests at once are taken", taken.Load())
	}
}
