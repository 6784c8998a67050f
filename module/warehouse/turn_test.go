package warehouse

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
)

// TestWritersWaitWithoutAPlace: while a backup holds the writers, queries have all the places; afterwards the writers get them.
func TestWritersWaitWithoutAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &Warehouse{common: newCommon()}
		places := admission.New(admission.Limits{Places: 2, Project: 1})
		turn := w.placed(places, &ingest.Options{Project: 1})
		release, err := w.Hold(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		const batches = 3
		begun, proceed := 0, make(chan struct{})
		for range batches {
			go func() {
				done, err := turn(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				begun++
				<-proceed
				done()
			}()
		}
		holds := func(want int, when string) {
			t.Helper()
			synctest.Wait()
			if held, _ := places.Of(1); held != want || begun > want {
				t.Errorf("%s, %d places are held, and %d batches begun", when, held, begun)
			}
		}
		holds(0, "during a backup")
		query, err := places.Enter(t.Context(), admission.Request{Project: 1})
		if err != nil {
			t.Fatal(err)
		}
		release()
		synctest.Wait()
		if begun != 0 {
			t.Error("a batch began without a place")
		}
		query.Leave()
		holds(1, "after a backup")
		for range batches {
			proceed <- struct{}{}
		}
		synctest.Wait()
		if held, _ := places.Of(1); held != 0 || begun != batches {
			t.Errorf("at the end, %d places are held, and %d batches begun", held, begun)
		}
	})
}

// TestNoPlaceNoTurn: a writer that gets no place gives back its turn.
func TestNoPlaceNoTurn(t *testing.T) {
	w := &Warehouse{common: newCommon()}
	full := errors.New("no place")
	turn := w.inTurn(1, func(context.Context) (func(), error) { return nil, full })
	if _, err := turn(t.Context()); !errors.Is(err, full) {
		t.Errorf("the turn gives %v", err)
	}
	if !w.gate.TryAcquire(writers) {
		t.Error("the gate is not given back")
	}
}
