package ingest

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
)

// seen reports which events of the last days ClickHouse does not have, so that new events are not looked up there: a lookup reads the uuids of a whole day, and
// takes longer with each event of it. It is a Bloom filter of all events that are there or that someone tried to write. An event that is not in the filter is
// not in ClickHouse. A few that are in the filter are not in ClickHouse either; they are looked up.
//
// It is forgotten whenever a batch broke off or another process may have written events.
type seen struct {
	sieve
	from, to day       // the days whose events are all in it; none if to is before from
	again    time.Time // events are not loaded before this time, after there was no room for them
}

const (
	// seenBytes is what the filters of all projects may take: about 32 million events.
	seenBytes = 64 << 20
	// seenLoaded is how many events are loaded when the process starts to write into a project.
	seenLoaded = 2_000_000
	// seenPause is how long a project does without the filter if there is no room for its events.
	seenPause = 10 * time.Minute
	// seenSpare is how much of seenBytes is kept free, as far as there are filters that were not used for seenIdle.
	seenSpare, seenIdle = seenBytes / 4, seenPause
)

func newSeen(budget *atomic.Int64) *seen { return &seen{sieve: sieve{budget: budget}, to: -1} }

var seenEvents = newHasher()

// forget empties the filter.
func (s *seen) forget() {
	s.sieve.forget()
	s.from, s.to = 0, -1
}

// surelyNew reports whether ClickHouse does not have an event, on this day or the days before and after it.
func (s *seen) surelyNew(id uuid.UUID, on day) bool {
	if on-1 < s.from || on+1 > s.to {
		return false
	}
	return !s.has(seenEvents.uuid(id))
}

// add adds an event that will be written.
func (s *seen) add(id uuid.UUID, on day, now time.Time) {
	if on < s.from || on > s.to {
		return
	}
	if !s.sieve.add(seenEvents.uuid(id)) {
		s.forget()
		s.again = now.Add(seenPause)
	}
}

// load loads the events of those days around now that it does not have yet.
func (s *seen) load(ctx context.Context, st *store) error {
	from, to := dayOf(st.now)-2, dayOf(st.now)+2
	if s.from <= from && to <= s.to || st.now.Before(s.again) {
		return nil
	}
	if s.from > from || s.to < from { // it has none of these days, or lacks the first ones
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
	return st.atMost(ctx, seenLoaded, "SELECT uuid FROM events WHERE team_id = {project:Int64} AND toDate(timestamp) BETWEEN {from:Date} AND {to:Date}",
		func(cells []clickhouse.Cell) error {
			id, err := uuid.Parse(cells[0].Text())
			s.add(id, to, st.now)
			return err
		},
		clickhouse.Param{Name: "from", Type: "Date", Value: from.String()},
		clickhouse.Param{Name: "to", Type: "Date", Value: to.String()})
}

// The days of all events are between these.
const firstDay, lastDay day = -1 << 40, 1 << 40

// hasAll reports whether it has the events of all days.
func (s *seen) hasAll() bool { return s.from == firstDay && s.to == lastDay }

// loadAll loads the events of all days, up to a number of events. If there are more, it leaves s as it is.
func (s *seen) loadAll(ctx context.Context, st *store, most int) error {
	all := newSeen(s.budget)
	all.from, all.to = firstDay, lastDay
	err := st.atMost(ctx, most, "SELECT uuid FROM events WHERE team_id = {project:Int64}", func(cells []clickhouse.Cell) error {
		id, err := uuid.Parse(cells[0].Text())
		all.add(id, 0, st.now)
		return err
	})
	if err != nil || !all.hasAll() {
		all.forget()
		return err
	}
	s.sieve.forget()
	*s = *all
	return nil
}

// atMost runs a SELECT with the parameter project. It fails with errTooMany if the result has more rows than most.
func (s *store) atMost(ctx context.Context, most int, sql string, row func([]clickhouse.Cell) error, params ...clickhouse.Param) error {
	rows := 0
	params = append(params, clickhouse.Param{Name: "project", Type: "Int64", Value: strconv.FormatInt(s.project, 10)})
	q := clickhouse.Query{SQL: sql, Params: params, Project: s.project, Limit: most + 1, Unbounded: true}
	return s.client.Collect(ctx, q, func(cells []clickhouse.Cell) error {
		if rows++; rows > most {
			return errTooMany
		}
		return row(cells)
	})
}

var errTooMany = errors.New("there are too many events")
