package ingest

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestSeen(t *testing.T) {
	t.Parallel()
	var budget atomic.Int64
	budget.Store(700 << 10)
	s := newSeen(&budget)
	now := time.Unix(1e9, 0)
	id := uuid.New()
	if s.surelyNew(id, 100) {
		t.Error("an event is new before anything is known")
	}
	s.from, s.to = 99, 103
	for on, want := range map[day]bool{99: false, 100: true, 102: true, 103: false} {
		if s.surelyNew(id, on) != want {
			t.Errorf("an event of day %d is surely new: %t", on, !want)
		}
	}
	var ids []uuid.UUID
	for range 100_000 {
		ids = append(ids, uuid.New())
		s.add(ids[len(ids)-1], 101, now)
	}
	for _, id := range ids {
		if s.surelyNew(id, 100) {
			t.Fatal("an event that was added is new")
		}
	}
	wrong := 0
	for range 10_000 {
		if !s.surelyNew(uuid.New(), 101) {
			wrong++
		}
	}
	if wrong > 200 {
		t.Errorf("%d of 10,000 new events are taken for others", wrong)
	}
	for range 200_000 { // there is no room for these
		s.add(uuid.New(), 101, now)
	}
	if s.surelyNew(id, 101) || budget.Load() != 700<<10 || !s.again.Equal(now.Add(seenPause)) {
		t.Errorf("a full filter: %d bytes are free, again at %s", budget.Load(), s.again)
	}
}
