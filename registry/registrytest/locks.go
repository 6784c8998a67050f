package registrytest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// brief is how long to wait for a lock that can't be had.
const brief = 50 * time.Millisecond

func testLocks(t exam) {
	a, b := open(t), open(t)
	holders := map[registry.Store]string{a: "a", b: "b"}
	take := func(s registry.Store, name string, others bool) (release func()) {
		t.Helper()
		got, release, err := s.Lock(t.Context(), name, holders[s])
		if err != nil {
			t.Fatal(err)
		}
		if got != others {
			t.Errorf("another store has held the lock: %t, want %t", got, others)
		}
		return release
	}
	refused := func(s registry.Store, name string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), brief)
		defer cancel()
		if _, _, err := s.Lock(ctx, name, "c"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a lock that is held: %v", err)
		}
		if _, _, err := s.TryLock(t.Context(), name, "c"); !errors.Is(err, registry.ErrHeld) {
			t.Errorf("trying a lock that is held: %v", err)
		}
	}
	try := func(s registry.Store, name string, others bool) (release func()) {
		t.Helper()
		got, release, err := s.TryLock(t.Context(), name, holders[s])
		if err != nil || got != others {
			t.Fatalf("trying a lock that is free: %v; another store has held it: %t, want %t", err, got, others)
		}
		return release
	}
	release := take(a, "people-1", true)
	refused(b, "people-1")
	refused(a, "people-1")
	take(b, "people-2", true)()
	release()
	take(a, "people-1", false)()
	take(b, "people-1", true)()
	take(b, "people-1", false)()
	take(a, "people-1", true)()
	take(b, "people-2", false)()
	release = try(b, "people-2", false)
	refused(a, "people-2")
	refused(b, "people-2")
	release()
	try(a, "people-2", true)()
	take(a, "people-2", false)()
	holders[b] = "c"
	take(b, "people-2", true)()
}

func testKept(t exam) {
	a, b := open(t), open(t)
	keep := func(s registry.Store, name, text string) {
		t.Helper()
		var data []byte
		if text != "" {
			data = []byte(text)
		}
		if err := s.Keep(t.Context(), name, data); err != nil {
			t.Fatal(err)
		}
	}
	is := func(name, want string) {
		t.Helper()
		for _, s := range []registry.Store{a, b} {
			if got, err := s.Kept(t.Context(), name); err != nil || string(got) != want {
				t.Errorf("%s keeps %q: %v, want %q", name, got, err, want)
			}
		}
	}
	is("people-1", "")
	keep(a, "people-1", "")
	keep(a, "people-1", "one\x00")
	keep(b, "people-2", "two")
	is("people-1", "one\x00")
	is("people-2", "two")
	keep(b, "people-1", "another")
	is("people-1", "another")
	keep(a, "people-1", "")
	is("people-1", "")
	is("people-2", "two")
	long := strings.Repeat("many bytes ", 1<<20)
	keep(a, "people-1", long)
	is("people-1", long)
}

func testLocksContended(t exam) {
	const takers, times = 4, 25
	stores := []registry.Store{open(t), open(t)}
	var inside atomic.Int32
	var done sync.WaitGroup
	total := 0 // protected by the lock alone
	for n := range takers {
		done.Go(func() {
			for range times {
				_, release, err := stores[n%len(stores)].Lock(context.WithoutCancel(t.Context()), "people-1", "me")
				if err != nil {
					t.Error(err)
					return
				}
				if inside.Add(1) != 1 {
					t.Error("two hold the lock at once")
				}
				total++
				inside.Add(-1)
				release()
			}
		})
	}
	done.Wait()
	if total != takers*times && !t.Failed() {
		t.Errorf("the lock was held %d times, want %d", total, takers*times)
	}
}

// HoldLock takes a lock and holds it until the process is killed. The child of LockOfTheDead runs it; ready is called when it has the lock.
func HoldLock(s registry.Store, ready func()) error {
	if _, _, err := s.Lock(context.Background(), "people-1", "dead"); err != nil {
		return err
	}
	ready()
	for { // a select of nothing would count as a deadlock
		time.Sleep(time.Hour)
	}
}

// LockOfTheDead checks that the lock of a process that runs HoldLock on place can't be taken until the process is killed.
func LockOfTheDead(t *testing.T, place Place, kill func()) {
	t.Helper()
	s := open(exam{t, place})
	ctx, cancel := context.WithTimeout(t.Context(), brief)
	defer cancel()
	if _, _, err := s.Lock(ctx, "people-1", "me"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the lock of another process: %v", err)
	}
	kill()
	others, release, err := s.Lock(t.Context(), "people-1", "me")
	if err != nil || !others {
		t.Fatalf("the lock of a dead process: %v, others %t", err, others)
	}
	release()
}
