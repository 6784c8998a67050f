package background_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/module/background"
	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite/sqlitetest"
)

// TestLook: work is repeated at its interval and when the bell rings, also after a panic, until the worker is closed.
func TestLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, bell := background.New(nil, zap.NewNop()), background.NewBell()
		var looks, rounds atomic.Int64
		w.Look(time.Second, bell, func() { looks.Add(1); panic("broken") })
		w.Every(time.Minute, func() { rounds.Add(1) })
		expect := func(when string, wantLooks, wantRounds int64) {
			t.Helper()
			synctest.Wait()
			if looks.Load() != wantLooks || rounds.Load() != wantRounds {
				t.Errorf("%s: %d looks and %d rounds, want %d and %d", when, looks.Load(), rounds.Load(), wantLooks, wantRounds)
			}
		}
		expect("at first", 1, 0)
		bell.Ring()
		expect("after the bell", 2, 0)
		time.Sleep(61 * time.Second)
		expect("after a minute", 63, 1)
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if w.Go(func() { looks.Add(1) }) {
			t.Error("work begins after the end")
		}
		bell.Ring()
		time.Sleep(time.Hour)
		expect("after the end", 63, 1)
	})
}

// TestClose: Close stops work in progress and waits for it.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, ended := background.New(nil, zap.NewNop()), false
		w.Go(func() {
			<-w.Context().Done()
			time.Sleep(time.Second)
			ended = true
		})
		if err := w.Close(); err != nil || !ended {
			t.Errorf("the work has ended: %t; %v", ended, err)
		}
	})
}

// TestLock: who gets the lock sees what others have written, and gives the lock back if that can't be read.
func TestLock(t *testing.T) {
	path := sqlitetest.Path(t)
	open := func() *registry.Registry {
		t.Helper()
		return sqlitetest.OpenAt(t, path, registry.Options{Poll: time.Hour})
	}
	ours, others := open(), open()
	p, err := others.CreateProject(t.Context(), registry.NewProject{Name: "p"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	w := background.New(ours, zap.NewNop())
	release, err := w.Lock(t.Context(), "work")
	if err != nil {
		t.Fatal(err)
	}
	if ours.Snapshot().Project(p.ID) == nil {
		t.Error("the project of another server is not there")
	}
	release()
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if _, err := w.Lock(w.Context(), "work"); err == nil {
		t.Error("a lock is taken after the end")
	}
	release, err = background.New(others, zap.NewNop()).Lock(t.Context(), "work")
	if err != nil {
		t.Fatal(err)
	}
	release()
}

// TestTryLock: a lock that is held is not waited for; one that is free is like one that was waited for.
func TestTryLock(t *testing.T) {
	path := sqlitetest.Path(t)
	ours, others := sqlitetest.OpenAt(t, path, registry.Options{Poll: time.Hour}), sqlitetest.OpenAt(t, path, registry.Options{Poll: time.Hour})
	_, release, err := others.Lock(t.Context(), "work", "other")
	if err != nil {
		t.Fatal(err)
	}
	w := background.New(ours, zap.NewNop())
	if _, err := w.TryLock(t.Context(), "work"); !errors.Is(err, registry.ErrHeld) {
		t.Errorf("a lock of another server: %v", err)
	}
	p, err := others.CreateProject(t.Context(), registry.NewProject{Name: "p"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	release()
	release, err = w.TryLock(t.Context(), "work")
	if err != nil {
		t.Fatal(err)
	}
	if ours.Snapshot().Project(p.ID) == nil {
		t.Error("the project of another server is not there")
	}
	release()
}

// TestElsewhere: work of another server is waited for until it is done, and not for longer than a second.
func TestElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := background.New(nil, zap.NewNop())
		began := time.Now()
		done := func() bool { return time.Since(began) < 400*time.Millisecond }
		if err := w.Elsewhere(done); err != nil || time.Since(began) != 400*time.Millisecond {
			t.Errorf("it is done after 400 ms, and the wait ends after %s: %v", time.Since(began), err)
		}
		began = time.Now()
		if err := w.Elsewhere(func() bool { return true }); err != nil || time.Since(began) != time.Second {
			t.Errorf("it is not done, and the wait ends after %s: %v", time.Since(began), err)
		}
		if err := errors.Join(w.Close(), w.Elsewhere(func() bool { return true })); !errors.Is(err, context.Canceled) {
			t.Errorf("after the end: %v", err)
		}
	})
}

// TestWatch: work that is no longer wanted is ended once, and work whose context ends is left alone.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var unwanted atomic.Bool
		var ended atomic.Int64
		watch := func(ctx context.Context) {
			background.Watch(ctx, func() bool { return !unwanted.Load() }, func() { ended.Add(1) })
		}
		ctx, cancel := context.WithCancel(t.Context())
		go watch(ctx)
		time.Sleep(time.Minute)
		cancel()
		synctest.Wait()
		go watch(t.Context())
		time.Sleep(time.Minute)
		if n := ended.Load(); n != 0 {
			t.Errorf("wanted work was ended %d times", n)
		}
		unwanted.Store(true)
		time.Sleep(time.Second)
		synctest.Wait()
		if n := ended.Load(); n != 1 {
			t.Errorf("unwanted work was ended %d times", n)
		}
	})
}
