package ingest

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// fresh is what an import knows about its project from the start, so that it need not look up each event and person that it brings: what is not in fresh is not
// in ClickHouse. Without fresh, or before it is loaded, nothing is surely new.
type fresh struct {
	people sieve
	loaded bool // people has what ClickHouse has
	read   int  // records of the import so far
	next   int  // number of records at which loading is tried next
}

// The kinds of things in fresh.people: distinct ids that have a row, persons that have a row, and distinct ids that have events without profile.
var freshIDs, freshPersons, freshAlone = newHasher(), newHasher(), newHasher()

func newFresh(budget *atomic.Int64) *fresh { return &fresh{people: sieve{budget: budget}} }

// forget empties fresh, because others may have written people.
func (f *fresh) forget() {
	if f != nil {
		f.people.forget()
		f.loaded = false
	}
}

// most is how many things of a kind are loaded at most: a few for each record, so that a short import into a large project reads little.
func (f *fresh) most() int { return min(1000+4*f.read, seenLoaded) }

// load loads what ClickHouse has of the project, unless it is loaded or is still too much. It tries again when the import has become twice as long.
func (f *fresh) load(ctx context.Context, st *store, records int) error {
	if f == nil {
		return nil
	}
	f.read += records
	if f.read < f.next {
		return nil
	}
	f.next = 2 * f.read
	if st.seen != nil && !st.seen.hasAll() {
		if err := st.seen.loadAll(ctx, st, f.most()); err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if f.loaded {
		return nil
	}
	if err := f.loadPeople(ctx, st); err != nil {
		f.people.forget()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return nil // people are looked up
	}
	f.loaded = true
	return nil
}

var errNoRoom = errors.New("there is no room for what an import brings")

func (f *fresh) loadPeople(ctx context.Context, st *store) error {
	texts := func(as hasher) func([]clickhouse.Cell) error {
		return func(cells []clickhouse.Cell) error { return f.put(as.text(cells[0].Text())) }
	}
	err := st.atMost(ctx, f.most(), "SELECT distinct_id FROM person_distinct_id2 WHERE team_id = {project:Int64}", texts(freshIDs))
	if err != nil {
		return err
	}
	err = st.atMost(ctx, f.most(), "SELECT id FROM person WHERE team_id = {project:Int64}", func(cells []clickhouse.Cell) error {
		id, err := uuid.Parse(cells[0].Text())
		if err != nil {
			return err
		}
		return f.put(freshPersons.uuid(id))
	})
	if err != nil {
		return err
	}
	mode := st.layout[physical.Events].or("person_mode", "'propertyless'")
	return st.atMost(ctx, f.most(), "SELECT DISTINCT distinct_id FROM events WHERE team_id = {project:Int64} AND "+mode+" = 'propertyless'", texts(freshAlone))
}

func (f *fresh) put(h hashed) error {
	if !f.people.add(h) {
		return errNoRoom
	}
	return nil
}

// lacks reports whether ClickHouse surely lacks a thing.
func (f *fresh) lacks(h hashed) bool { return f != nil && f.loaded && !f.people.has(h) }

// add adds a thing that is about to be written.
func (f *fresh) add(h hashed) {
	if f != nil && f.loaded && !f.people.add(h) {
		f.forget()
	}
}

// surelyNew reports whether ClickHouse has neither a row of a distinct id nor one of the person that the id makes.
func (p *people) surelyNew(name string) bool {
	return p.fresh.lacks(freshIDs.text(name)) && p.fresh.lacks(freshPersons.uuid(PersonUUID(p.store.project, name)))
}
