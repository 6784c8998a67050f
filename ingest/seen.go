package ingest

import (
	"context"
	"errors"
	"hash/maphash"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
)

// seen reports which events of the last days ClickHouse does not have, so that new events are not looked up there: a lookup reads the uuids
// of a whole day, and takes longer with each event of it. It is a Bloom filter of all events that are there, or that somebody tried to
// write. An event that is not in it is not in ClickHouse. A few that are in it are not in ClickHouse either; they are looked up.
//
// It is forgotten whenever a batch broke off or another process may have written events.
type seen struct {
	budget   *atomic.Int64 // bytes that all filters may still take
	from, to day           // the days of which it has all events; none if to is before from
	filters  []bloom       // the last one gets new events
	again    time.Time     // not before then are events loaded, after there was no room for them
}

const (
	// seenBytes is what the filters of all projects may take: about 32 million events.
	seenBytes = 64 << 20
	// seenLoaded is how many events are loaded when the process starts to write into a project.
	seenLoaded = 2_000_000
	// seenPause is how long a project does without, if there is no room for its events.
	seenPause = 10 * time.Minute
)

func newSeen(budget *atomic.Int64) *seen { return &seen{budget: budget, to: -1} }

// forget knows nothing any more.
func (s *seen) forget() {
	for _, f := range s.filters {
		s.budget.Add(f.bytes())
	}
	s.filters, s.from, s.to = nil, 0, -1
}

// surelyNew reports whether ClickHouse does not have an event, on this day or the days before and after it.
func (s *seen) surelyNew(id uuid.UUID, on day) bool {
	if on-1 < s.from || on+1 > s.to {
		return false
	}
	h := hash(id)
	for i := range s.filters {
		if s.filters[i].has(h) {
			return false
		}
	}
	return true
}

// add adds an event that will be written.
func (s *seen) add(id uuid.UUID, on day, now time.Time) {
	if on < s.from || on > s.to {
		return
	}
	if last := len(s.filters) - 1; last < 0 || s.filters[last].full() {
		if !s.grow() {
			s.forget()
			s.again = now.Add(seenPause)
			return
		}
	}
	s.filters[len(s.filters)-1].add(hash(id))
}

// grow adds a filter, four times as large as the last one if there is room for that.
func (s *seen) grow() bool {
	const first, most = 1 << 10, 1 << 19 // blocks: 64 KiB, 32 MiB
	blocks := first
	if last := len(s.filters) - 1; last >= 0 {
		blocks = min(4*len(s.filters[last].blocks), most)
	}
	f := bloom{blocks: make([][8]uint64, blocks)}
	if s.budget.Add(-f.bytes()) < 0 {
		s.budget.Add(f.bytes())
		return false
	}
	s.filters = append(s.filters, f)
	return true
}

// load gets the events of the days around now that it does not have yet.
func (s *seen) load(ctx context.Context, st *store) error {
	from, to := dayOf(st.now)-2, dayOf(st.now)+2
	if s.from <= from && to <= s.to || st.now.Before(s.again) {
		return nil
	}
	if s.from > from || s.to < from { // it has none of these days, or not the first ones
		s.forget()
		s.from, s.to = from, from-1
	}
	missing := s.to + 1
	s.to = to
	err := s.loadDays(ctx, st, missing, to)
	if err == nil {
		return nil
	}
	s.forget()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	s.again = st.now.Add(seenPause) // until then events are looked up
	return nil
}

func (s *seen) loadDays(ctx context.Context, st *store, from, to day) error {
	loaded := 0
	return st.client.Collect(ctx, clickhouse.Query{
		SQL: "SELECT uuid FROM events WHERE team_id = {project:Int64} AND toDate(timestamp) BETWEEN {from:Date} AND {to:Date}",
		Params: []clickhouse.Param{
			{Name: "project", Type: "Int64", Value: strconv.FormatInt(st.project, 10)},
			{Name: "from", Type: "Date", Value: from.String()},
			{Name: "to", Type: "Date", Value: to.String()},
		},
		Project: st.project, Limit: seenLoaded + 1, Unbounded: true,
	}, func(cells []clickhouse.Cell) error {
		if loaded++; loaded > seenLoaded {
			return errTooMany
		}
		id, err := uuid.Parse(cells[0].Text())
		s.add(id, to, st.now)
		return err
	})
}

var errTooMany = errors.New("there are too many events")

// bloom is a Bloom filter with 16 bits for each event. All bits of one event are in one block, which is a line of the processor's cache.
type bloom struct {
	blocks [][8]uint64
	events int
}

const blockEvents = 32

func (f *bloom) bytes() int64 { return int64(len(f.blocks)) * 64 }
func (f *bloom) full() bool   { return f.events >= blockEvents*len(f.blocks) }

type hashed struct{ block, bits uint64 }

var hashSeeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func hash(id uuid.UUID) hashed {
	return hashed{maphash.Bytes(hashSeeds[0], id[:]), maphash.Bytes(hashSeeds[1], id[:])}
}

// probes is how many bits an event has.
const probes = 6

func (f *bloom) add(h hashed) {
	block := &f.blocks[h.block%uint64(len(f.blocks))]
	for range probes {
		block[h.bits>>6&7] |= 1 << (h.bits & 63)
		h.bits >>= 9
	}
	f.events++
}

func (f *bloom) has(h hashed) bool {
	block := &f.blocks[h.block%uint64(len(f.blocks))]
	for range probes {
		if block[h.bits>>6&7]&(1<<(h.bits&63)) == 0 {
			return false
		}
		h.bits >>= 9
	}
	return true
}
