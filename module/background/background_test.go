package background_test

import (
	"context"
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
