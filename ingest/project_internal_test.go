package ingest

import (
	"testing"
	"time"
)

// TestKeptDeliveries delivers to many projects: the people of the most recently used ones are kept, as far as there is room.
func TestKeptDeliveries(t *testing.T) {
	i := New(nil)
	use := func(project int64, entries, bytes int64) *projectState {
		p := i.project(project)
		i.use(p)
		p.delivery = &session{}
		p.entries.Store(entries)
		p.bytes.Store(bytes)
		return p
	}
	busy := use(1000, maxKept/2, 0)
	busy.writing <- struct{}{}
	states := make([]*projectState, 100)
	for n := range states {
		entries, bytes := int64(maxKept/8), int64(0)
		if n%2 == 0 {
			entries, bytes = 1, maxKeptBytes/8
		}
		states[n] = use(int64(n+1), entries, bytes)
	}
	i.use(states[99])
	var kept []int
	for n, p := range states {
		if p.delivery != nil {
			kept = append(kept, n)
		}
	}
	if len(kept) != 14 || kept[0] != 86 {
		t.Errorf("these are kept: %v", kept)
	}
	if busy.delivery == nil {
		t.Error("one that is in use is forgotten")
	}
	<-busy.writing
	i.use(states[99])
	if busy.delivery != nil {
		t.Error("one that is not used any more is kept")
	}
	if len(i.recent) != len(kept) {
		t.Errorf("%d are remembered", len(i.recent))
	}
}

// TestReclaim: when little room is left for filters of seen events, projects that are idle lose theirs, those least recently used first.
func TestReclaim(t *testing.T) {
	i := New(nil)
	i.Alone = true
	began := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	states := make([]*projectState, 1024)
	for n := range states {
		p := i.project(int64(n + 1))
		if !p.seen.grow() {
			t.Fatalf("there is no room for filter %d", n)
		}
		p.filter.Store(p.seen.bytes())
		p.used.Store(began.Add(time.Duration(n) * time.Minute).Unix())
		i.recent, states[n] = append(i.recent, p), p
	}
	if i.seenBudget.Load() != 0 {
		t.Errorf("%d bytes are left", i.seenBudget.Load())
	}
	states[3].writing <- struct{}{} // it is in use
	check := func(when string, want int) {
		t.Helper()
		kept := 0
		for n, p := range states {
			idle := n <= want && n != 3
			if has := len(p.seen.filters) > 0; has == idle || has != (p.filter.Load() > 0) {
				t.Errorf("%s: project %d has a filter: %t", when, n, has)
			} else if has {
				kept++
			}
		}
		if left := seenBytes - i.seenBudget.Load(); left != int64(kept)*states[3].seen.bytes() {
			t.Errorf("%s: %d bytes are taken by %d filters", when, left, kept)
		}
	}
	i.reclaim(began.Add(100 * time.Minute)) // the first hundred are idle
	check("as far as there are idle ones", 99)
	i.reclaim(began.Add(500 * time.Minute))
	check("until enough is free", 256) // a quarter of them, beside the one in use
	i.reclaim(began.Add(2000 * time.Minute))
	check("when enough is free", 256)
}
