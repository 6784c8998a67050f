package memory_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/memory"
)

// now returns a context that gives up at once where a loan would have to wait.
func now(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func take(t *testing.T, l *memory.Loan, bytes int64, want bool) {
	t.Helper()
	if err := l.Take(now(t), bytes); (err == nil) != want {
		t.Errorf("%d more bytes for project %d: %v, want granted: %t", bytes, l.Project, err, want)
	}
}

// TestShares: a project has at most half of what the others leave.
func TestShares(t *testing.T) {
	pool := memory.NewPool(1000)
	loan := func(project int64) *memory.Loan { return &memory.Loan{Pool: pool, Project: project} }
	take(t, loan(1), 501, false)
	first, second, third := loan(1), loan(1), loan(2)
	take(t, first, 300, true)
	take(t, second, 200, true)
	take(t, second, 1, false) // half of all
	take(t, third, 200, true)
	take(t, third, 51, false) // half of what project 1 leaves is 250
	take(t, third, 50, true)
	take(t, loan(3), 126, false)
	other := loan(3)
	take(t, other, 125, true)
	take(t, other, 1, false)
	for _, l := range []*memory.Loan{first, second, third, other} {
		l.Return()
		l.Return() // a second time changes nothing
	}
	if lent := pool.Lent(); lent != 0 {
		t.Errorf("%d bytes are lent after everything was returned", lent)
	}
	take(t, loan(4), 501, false)
	take(t, loan(4), loan(4).Most(), true)
}

// TestSharedBody: a body that is sent to several clients counts once, until it was sent to all of them.
func TestSharedBody(t *testing.T) {
	pool := memory.NewPool(1100)
	body := make([]byte, 400)
	var loans []*memory.Loan
	for range 5 {
		l := &memory.Loan{Pool: pool, Project: 1}
		take(t, l, 50, true) // for drawing it
		if err := l.Hold(now(t), body); err != nil {
			t.Fatal(err)
		}
		loans = append(loans, l)
	}
	if lent := pool.Lent(); lent != 400 {
		t.Errorf("%d bytes are lent, want 400", lent)
	}
	another := &memory.Loan{Pool: pool, Project: 1}
	if err := another.Hold(now(t), make([]byte, 400)); err == nil {
		t.Error("the project gets more than its share for another body")
	}
	for n, l := range loans {
		if lent := pool.Lent(); lent != 400 {
			t.Errorf("%d bytes are lent after %d of 5 clients have it, want 400", lent, n)
		}
		l.Return()
	}
	if lent := pool.Lent(); lent != 0 {
		t.Errorf("%d bytes are lent after all clients have it", lent)
	}
}

// TestWait: a loan waits for memory, but not forever, and not longer than its request.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := memory.NewPool(1000)
		one, two := &memory.Loan{Pool: pool, Project: 1}, &memory.Loan{Pool: pool, Project: 2}
		if err := one.Take(t.Context(), 500); err != nil {
			t.Fatal(err)
		}
		if err := two.Take(t.Context(), 300); !errors.Is(err, memory.ErrNone) {
			t.Errorf("while there is no memory: %v", err)
		}
		gone := errors.New("the client went away")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(gone) })
		if err := two.Take(ctx, 300); !errors.Is(err, gone) {
			t.Errorf("when the request ends: %v", err)
		}
		time.AfterFunc(time.Second, one.Return)
		if err := two.Take(t.Context(), 300); err != nil {
			t.Errorf("when memory comes back: %v", err)
		}
		if lent := pool.Lent(); lent != 300 {
			t.Errorf("%d bytes are lent, want 300", lent)
		}
	})
}

// TestNilLoan: without a pool, everything is granted.
func TestNilLoan(t *testing.T) {
	var l *memory.Loan
	if err := errors.Join(l.Take(now(t), l.Most()), l.Hold(now(t), []byte("x"))); err != nil {
		t.Error(err)
	}
	l.Return()
}

// TestDeadline: larger bodies have more time.
func TestDeadline(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for size, want := range map[int]time.Duration{1 << 20: 94 * time.Second, 64 << 20: 15 * time.Minute} {
		if got := memory.Deadline(at, size).Sub(at); got != want {
			t.Errorf("%d bytes may take %s, want %s", size, got, want)
		}
	}
}
