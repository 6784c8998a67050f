package module

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// slowRegistry is a registry whose reads a test controls.
type slowRegistry struct {
	known, written atomic.Uint64
	reads          atomic.Int64
	answers        chan error // of each read
}

func (r *slowRegistry) refresh(context.Context) error { // like the real one, it waits for others whatever ctx says
	r.reads.Add(1)
	written := r.written.Load()
	err := <-r.answers
	if err == nil {
		r.known.Store(written)
	}
	return err
}

func newSlowRegistry() (*slowRegistry, *catchUp) {
	r := &slowRegistry{answers: make(chan error)}
	r.written.Store(5)
	return r, &catchUp{refresh: r.refresh, revision: r.known.Load}
}

// TestCatchUpWithSlowRegistry: requests come while the registry is being read slowly.
func TestCatchUpWithSlowRegistry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c := newSlowRegistry()
		took := func(want bool) time.Duration {
			t.Helper()
			began := time.Now()
			if got := c.to(t.Context(), 5); got != want {
				t.Errorf("the revision is known: %t", got)
			}
			return time.Since(began)
		}
		if got := took(false); got != catchUpWait {
			t.Errorf("the first question waited for %s", got)
		}
		if got := took(false); got != 0 {
			t.Errorf("a question waited for %s while the registry was known to be away", got)
		}
		if got := r.reads.Load(); got != 1 {
			t.Errorf("%d questions are at the registry", got)
		}
		r.answers <- nil
		synctest.Wait()
		if got := took(true); got != 0 {
			t.Errorf("what is known took %s", got)
		}
		r.written.Store(6)
		go func() { r.answers <- nil }()
		if !c.to(t.Context(), 6) {
			t.Error("the registry that is back is not read")
		}
	})
}

// TestCatchUpWithFailingRegistry: the registry fails, and answers again.
func TestCatchUpWithFailingRegistry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c := newSlowRegistry()
		go func() { r.answers <- errors.New("away") }()
		if c.to(t.Context(), 5) {
			t.Error("a registry that fails was read")
		}
		began := time.Now()
		if c.to(t.Context(), 5) || time.Since(began) != 0 {
			t.Errorf("a question waited for %s while the registry was known to be away", time.Since(began))
		}
		r.answers <- nil // for that request
		synctest.Wait()
		if !c.to(t.Context(), 5) {
			t.Error("the registry that is back is not read")
		}
		if c.revision() != 5 || r.reads.Load() != 2 {
			t.Errorf("%d reads", r.reads.Load())
		}
	})
}

// TestCatchUpWithEarlierRead: a request comes while the current read began before the request's write.
func TestCatchUpWithEarlierRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c := newSlowRegistry()
		first, second := make(chan bool), make(chan bool)
		go func() { first <- c.to(t.Context(), 5) }()
		synctest.Wait()
		r.written.Store(6)
		go func() { second <- c.to(t.Context(), 6) }()
		synctest.Wait()
		r.answers <- nil
		r.answers <- nil
		if !<-first || !<-second {
			t.Error("what was written is not known")
		}
		go func() { r.answers <- nil }()
		if c.to(t.Context(), 7) || r.reads.Load() != 3 {
			t.Errorf("what nobody wrote is known, or was looked for more than once: %d reads", r.reads.Load())
		}
	})
}

// TestCatchUpOfCallerWhoLeft: the caller goes away, which says nothing about the registry.
func TestCatchUpOfCallerWhoLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, c := newSlowRegistry()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if c.to(ctx, 5) {
			t.Error("the revision is known")
		}
		go func() { r.answers <- nil }()
		if !c.to(t.Context(), 5) {
			t.Error("the registry was not waited for")
		}
	})
}
