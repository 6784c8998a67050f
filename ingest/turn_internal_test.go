package ingest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// counted is something that one holder at a time has.
type counted struct {
	turn
	waiting int
}

func newCounted() *counted { return &counted{turn: newTurn()} }

func (c *counted) take(ctx context.Context) (func(), error) {
	c.waiting++
	defer func() { c.waiting-- }()
	return c.lock(ctx)
}

// begin lets a batch wait for its place and its turn, and yields what ends the batch.
func begin(t *testing.T, p *projectState, o *Options) <-chan func() {
	t.Helper()
	begun := make(chan func())
	go func() {
		done, err := p.placedTurn(t.Context(), o)
		if err != nil {
			t.Error(err)
		}
		begun <- done
	}()
	return begun
}

// TestWaitForPlace: a batch that waits for a place keeps nobody from writing.
func TestWaitForPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places, turns, p := newCounted(), newCounted(), &projectState{writing: newTurn()}
		query, err := places.take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		begun := begin(t, p, &Options{Enter: places.take, Turn: turns.take})
		synctest.Wait()
		if places.waiting != 1 {
			t.Fatal("the batch does not wait for a place")
		}
		end, err := p.turn(t.Context(), &Options{Turn: turns.take})
		if err != nil {
			t.Fatal(err)
		}
		end()
		query()
		(<-begun)()
		if len(places.turn)+len(turns.turn)+len(p.writing) > 0 {
			t.Error("after the batch something is held")
		}
	})
}

// TestWaitForTurn: a batch whose turn does not come soon, as during a backup, leaves its place to queries, and enters again when the turn has come.
func TestWaitForTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places, turns, p := newCounted(), newCounted(), &projectState{writing: newTurn()}
		backup, err := turns.take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		begun := begin(t, p, &Options{Enter: places.take, Turn: turns.take})
		time.Sleep(time.Minute)
		synctest.Wait()
		query, err := places.take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		backup()
		time.Sleep(2 * grace)
		synctest.Wait()
		if places.waiting != 1 || len(turns.turn) > 0 {
			t.Errorf("after the backup %d batches wait for a place, and the turn is taken: %t", places.waiting, len(turns.turn) > 0)
		}
		query()
		(<-begun)()
		if len(places.turn)+len(turns.turn)+len(p.writing) > 0 {
			t.Error("after the batch something is held")
		}
	})
}

// TestTurnWon: a batch that waited long for its turn, and then finds a place, keeps the turn.
func TestTurnWon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places, p := newCounted(), &projectState{writing: newTurn()}
		given := 0
		slow := func(ctx context.Context) (func(), error) { // takes longer than a batch with a place waits
			select {
			case <-time.After(2 * patience):
				given++
				return func() {}, nil
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		done, err := p.placedTurn(t.Context(), &Options{Enter: places.take, Turn: slow})
		if err != nil {
			t.Fatal(err)
		}
		if len(places.turn) != 1 || given != 1 {
			t.Errorf("the batch begins with %d places, after %d turns", len(places.turn), given)
		}
		done()
	})
}

// TestNoTurn: a batch that gets no place or no turn holds nothing.
func TestNoTurn(t *testing.T) {
	refused := errors.New("refused")
	refuse := func(context.Context) (func(), error) { return func() { t.Error("left") }, refused }
	for name, o := range map[string]func(take func(context.Context) (func(), error)) Options{
		"no place": func(take func(context.Context) (func(), error)) Options { return Options{Enter: refuse, Turn: take} },
		"no turn":  func(take func(context.Context) (func(), error)) Options { return Options{Enter: take, Turn: refuse} },
	} {
		other, p := newCounted(), &projectState{writing: newTurn()}
		options := o(other.take)
		if _, err := p.placedTurn(t.Context(), &options); !errors.Is(err, refused) {
			t.Errorf("%s: %v", name, err)
		}
		if len(other.turn)+len(p.writing) > 0 {
			t.Errorf("%s: something is held", name)
		}
	}
}

// TestGoneWhileWaiting: a batch whose caller goes away while it waits for its turn holds nothing.
func TestGoneWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, after := range []time.Duration{patience / 2, time.Minute} {
			places, turns, p := newCounted(), newCounted(), &projectState{writing: newTurn()}
			if _, err := turns.take(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), after)
			if _, err := p.placedTurn(ctx, &Options{Enter: places.take, Turn: turns.take}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("gone after %v: %v", after, err)
			}
			cancel()
			if len(places.turn)+len(p.writing) > 0 {
				t.Errorf("gone after %v: something is held", after)
			}
		}
	})
}
