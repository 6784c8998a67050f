package ingest

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// eventKey identifies an event. Events with the same key are the same event if they are at most a day apart.
type eventKey struct {
	uuid       uuid.UUID
	event      string
	distinctID string
}

func keyOf(r *record.Record) eventKey { return eventKey{r.UUID, r.Event, r.DistinctID} }

// day is a day in UTC, counted from 1970.
type day int64

func dayOf(t time.Time) day {
	const seconds = 24 * 60 * 60
	at := t.Unix()
	if at < 0 {
		at -= seconds - 1
	}
	return day(at / seconds)
}

func (d day) String() string { return time.Unix(int64(d)*24*60*60, 0).UTC().Format(time.DateOnly) }

// stored is what toDate makes of a time of the day: a Date counts the days from 1970 to 2149, and begins again with what is outside.
func (d day) stored() day {
	const days = 1 << 16
	return (d%days + days) % days
}

type eventOfDay struct {
	eventKey
	day day
}

// knownEvents are events that are already there. When a client sends an event again, its time may be corrected by a different amount and move over midnight:
// the same key on the day before or after is the same event.
type knownEvents map[eventOfDay]struct{}

func (k knownEvents) has(key eventKey, on day) bool {
	for d := on - 1; d <= on+1; d++ {
		if _, ok := k[eventOfDay{key, d}]; ok {
			return true
		}
	}
	return false
}

func (k knownEvents) add(key eventKey, on day) { k[eventOfDay{key, on}] = struct{}{} }

// knownEvents finds which events of a batch are in ClickHouse already.
func (s *store) knownEvents(ctx context.Context, records []record.Record) (knownEvents, error) {
	if s.seen != nil {
		if err := s.seen.load(ctx, s); err != nil {
			return nil, err
		}
	}
	known := knownEvents{}
	var wanted []eventOfDay
	for n := range records {
		r := &records[n]
		if r.Kind != record.Event {
			continue
		}
		on := dayOf(r.Timestamp)
		if s.seen != nil {
			isNew := s.seen.surelyNew(r.UUID, on)
			s.seen.add(r.UUID, on, s.now)
			if isNew {
				continue
			}
		}
		wanted = append(wanted, eventOfDay{keyOf(r), on})
	}
	for some := range slices.Chunk(wanted, maxAsked) {
		if err := s.lookUp(ctx, some, known); err != nil {
			return nil, err
		}
	}
	return known, nil
}

// maxAsked is how many things one query looks up.
const maxAsked = 10_000

// lookUp adds the events that it finds to known. The conditions name every column of the primary key, so that only the parts that may have the events are read.
// The condition on uuid comes first: of the rows that are read, it leaves almost none to the others. If too many rows meet the conditions, which is possible
// only for events that share their uuids, each half is looked up.
func (s *store) lookUp(ctx context.Context, wanted []eventOfDay, known knownEvents) error {
	defer s.bound(len(wanted) > 1)()
	err := s.lookUpAtOnce(ctx, wanted, known)
	if !s.bounded || !tooLarge(err) {
		return err
	}
	half := len(wanted) / 2
	if err := s.lookUp(ctx, wanted[:half], known); err != nil {
		return err
	}
	return s.lookUp(ctx, wanted[half:], known)
}

func (s *store) lookUpAtOnce(ctx context.Context, wanted []eventOfDay, known knownEvents) error {
	if len(wanted) == 0 {
		return nil
	}
	ids, asked := make([]string, 0, len(wanted)), make(map[eventKey]bool, len(wanted))
	days, names, people := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, one := range wanted {
		ids = append(ids, one.uuid.String())
		for d := one.day - 1; d <= one.day+1; d++ {
			days[d.stored().String()] = true
		}
		names[one.event], people[one.distinctID], asked[one.eventKey] = true, true, true
	}
	keys := func(name, typ string, set map[string]bool) list {
		return list{name, typ, slices.Sorted(maps.Keys(set))}
	}
	return s.ask(ctx, "SELECT team_id, uuid, event, distinct_id, timestamp FROM events WHERE team_id IN {projects:Array(Int64)} "+
		"AND uuid IN {ids:Array(UUID)} AND toDate(timestamp) IN {days:Array(Date)} AND event IN {events:Array(String)} "+
		"AND cityHash64(distinct_id) IN (SELECT cityHash64(arrayJoin({people:Array(String)})))",
		func(cells []clickhouse.Cell) error {
			id, err := uuid.Parse(cells[0].Text())
			if err != nil {
				return err
			}
			key := eventKey{id, cells[1].Text(), cells[2].Text()}
			if !asked[key] {
				return nil
			}
			at, err := cells[3].Time()
			known.add(key, dayOf(at))
			return err
		}, keys("days", "Date", days), keys("events", "String", names), keys("people", "String", people), list{"ids", "UUID", ids})
}
