package execution

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestTooManyCompiles: a compile that waits in too long a queue, or for too long, ends with a 429.
func TestTooManyCompiles(t *testing.T) {
	before := compilePlaces
	t.Cleanup(func() { compilePlaces = before })
	synctest.Test(t, func(t *testing.T) {
		compilePlaces = admission.New(processorLimits(1))
		held, err := takeCompilePlace(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		results := make(chan error, maxWaiting)
		for range maxWaiting {
			go func() {
				_, err := takeCompilePlace(t.Context(), 1)
				results <- err
			}()
		}
		synctest.Wait()
		if _, err := takeCompilePlace(t.Context(), 1); !IsRefusal(err) {
			t.Errorf("in a full queue: %v", err)
		}
		for range maxWaiting {
			if err := <-results; !IsRefusal(err) {
				t.Errorf("after %s: %v", processorPatience, err)
			}
		}
		held.Leave()
		again, err := takeCompilePlace(t.Context(), 2)
		if err != nil {
			t.Fatalf("once the place is free: %v", err)
		}
		again.Leave()
	})
}

// TestCompileTimeCounts: every 25 ms that a request's compiles begin after the first cost one query of the key's rate.
func TestCompileTimeCounts(t *testing.T) {
	e, key := newExecutor(t), &registry.Key{ID: "k"}
	e.Limits = NewLimiter(registry.Rate{Queries: 5, Per: time.Hour})
	left := func() int {
		a := e.Limits.OfKey(key.ID)
		return a.Left(noon)
	}
	c := e.CompilesOf(&Caller{Key: key, Project: &registry.Project{ID: 1}})
	for i, tt := range []struct {
		took time.Duration
		left int
	}{
		{24 * time.Millisecond, 5},
		{time.Millisecond, 5},
		{time.Microsecond, 4},
		{24 * time.Millisecond, 4},
		{50 * time.Millisecond, 2},
	} {
		if c.count(tt.took, noon); left() != tt.left {
			t.Errorf("compile %d: %d queries are left, want %d", i+1, left(), tt.left)
		}
	}
	e.CompilesOf(&Caller{Key: key, Project: &registry.Project{ID: 1}}).count(90*time.Millisecond, noon)
	if left() != 0 {
		t.Errorf("%d queries are left", left())
	}
	Uncounted(1).count(time.Second, noon) // an operator's
}

// TestCompileDeadline: the time limit of a compile covers its own work, not that of others.
func TestCompileDeadline(t *testing.T) {
	e, key := newExecutor(t), &registry.Key{ID: "k"}
	c := e.CompilesOf(&Caller{Key: key, Project: &registry.Project{ID: 1}})
	work := func(end time.Time) func(expired func() error) error {
		return func(expired func() error) error {
			for time.Now().Before(end) {
				if err := expired(); err != nil {
					return err
				}
			}
			return nil
		}
	}
	err := c.do(t.Context(), work(time.Now().Add(time.Minute)))
	if !errors.Is(err, compiler.ErrTooSlow) {
		t.Errorf("working without end: %v", err)
	}
	if c.counted != 4 && c.counted != 3 {
		t.Errorf("it cost %d queries", c.counted)
	}
	if err := c.do(t.Context(), work(time.Now().Add(time.Minute))); !errors.Is(err, compiler.ErrTooSlow) {
		t.Errorf("the second compile of the request: %v", err)
	}
	again := e.CompilesOf(&Caller{Key: key, Project: &registry.Project{ID: 1}})
	if err := again.do(t.Context(), func(expired func() error) error {
		time.Sleep(2 * maxCompiling)
		return expired()
	}); err != nil && processorClock {
		t.Errorf("waiting for others: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := again.do(ctx, work(time.Now().Add(time.Minute))); !errors.Is(err, context.Canceled) {
		t.Errorf("for a client that is gone: %v", err)
	}
}
