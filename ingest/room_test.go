package ingest

import "testing"

// TestKeptDeliveries delivers to many projects: the people of the most recently used ones are kept, as far as there is room.
func TestKeptDeliveries(t *testing.T) {
	i := New(nil)
	use := func(project int64, things, bytes int64) *room {
		r := i.room(project)
		i.use(r)
		r.delivery = &session{}
		r.things.Store(things)
		r.bytes.Store(bytes)
		return r
	}
	busy := use(1000, maxKept/2, 0)
	busy.writing <- struct{}{}
	rooms := make([]*room, 100)
	for n := range rooms {
		things, bytes := int64(maxKept/8), int64(0)
		if n%2 == 0 {
			things, bytes = 1, maxKeptBytes/8
		}
		rooms[n] = use(int64(n+1), things, bytes)
	}
	i.use(rooms[99])
	var kept []int
	for n, r := range rooms {
		if r.delivery != nil {
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
	i.use(rooms[99])
	if busy.delivery != nil {
		t.Error("one that is not used any more is kept")
	}
	if len(i.recent) != len(kept) {
		t.Errorf("%d are remembered", len(i.recent))
	}
}
