package ingest

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// person is what is known about a person of the project.
type person struct {
	profile
	id         uuid.UUID
	createdAt  time.Time // zero until it is known
	given      bool      // createdAt was given, and does not move
	identified bool
	deleted    bool
	version    uint64
	stored     bool // a row of it is in ClickHouse
	redated    bool // createdAt differs from that row's
	returned   bool // that row marks it as deleted
	changed    bool
	line       int           // of its last change
	ids        []*distinctID // those that are known
	whole      bool          // all its distinct ids are known
	asOf       time.Time     // time of the latest event that said which properties the person had
}

func (p *person) change(line int) {
	p.changed = true
	p.line = line
}

// date sets the creation time.
func (p *person) date(line int, at time.Time, given bool) {
	p.redated = p.redated || !at.Equal(p.createdAt)
	p.createdAt, p.given = at, given
	p.change(line)
}

// seen moves the creation time to that of an event, unless it was given or is earlier.
func (p *person) seen(line int, at time.Time) {
	if !p.given && (p.createdAt.IsZero() || at.Before(p.createdAt)) {
		p.date(line, at, false)
	}
}

// distinctID is one of the names of a person.
type distinctID struct {
	name    string
	person  *person // nil while it belongs to nobody
	version int64
	stored  bool // a row of it is in ClickHouse
	changed bool
	moved   bool // it has events with the id of another person, or may have
	alone   bool // it has events without profile, with the id of the person that it would make
	joined  bool // it was given to a person other than the one it would make, and may have such events
	line    int
}

// people finds the person of each record, and keeps what is known about persons between batches.
type people struct {
	store   *store
	ids     map[string]*distinctID
	persons map[uuid.UUID]*person
	merged  map[uuid.UUID]*person // persons of this batch that were merged, with the person that each became
	became  map[uuid.UUID]uuid.UUID
	noRoom  func(line int) // called for each property that is left out
	fresh   *fresh         // nil if people are always looked up
	// A person counts as stored although ClickHouse refused its row.
	refused bool
	// The records are captured events: see Options.Captured.
	captured bool
}

func (p *people) forget() {
	p.ids, p.persons, p.refused = map[string]*distinctID{}, map[uuid.UUID]*person{}, false
}

// bytes estimates the memory that the properties take.
func (p *people) bytes() (size int) {
	for _, one := range p.persons {
		size += 2 * len(one.json())
	}
	return size
}

// of returns the person that has a distinct id, or nil.
func (p *people) of(name string) *person {
	if entry := p.ids[name]; entry != nil {
		return entry.person
	}
	return nil
}

// id returns a distinct id, which may have no person yet.
func (p *people) id(name string) *distinctID {
	entry := p.ids[name]
	if entry == nil {
		entry = &distinctID{name: name}
		p.ids[name] = entry
	}
	return entry
}

// owner returns the person of a distinct id, and creates one if there is none.
func (p *people) owner(line int, name string) *person {
	entry := p.id(name)
	if entry.person == nil {
		p.assign(line, entry, p.create(line, name))
	}
	return entry.person
}

// create creates the person of a distinct id.
func (p *people) create(line int, name string) *person {
	id := PersonUUID(p.store.project, name)
	one := p.persons[id]
	if one == nil {
		one = &person{id: id, whole: true}
		p.persons[id] = one
	}
	one.revive(line)
	return one
}

// revive turns a deleted person into a new one, and has a person without a row get one.
func (p *person) revive(line int) {
	if p.deleted {
		*p = person{id: p.id, whole: true, version: p.version, stored: p.stored, returned: p.stored}
		p.change(line)
	}
	if !p.stored {
		p.change(line)
	}
}

// assign gives a distinct id to a person. Events of the id without profile, if any, are recorded with the person that the id would make.
func (p *people) assign(line int, d *distinctID, to *person) {
	if d.person == to {
		return
	}
	own := to.id == PersonUUID(p.store.project, d.name)
	deleted := d.stored && d.person == nil // its events, if they were kept, belong to another person
	d.moved = d.moved || d.person != nil || deleted || !own && (p.captured || d.alone)
	d.joined = !own && !d.moved
	if d.stored || d.person != nil {
		d.version++
	}
	d.person, d.changed, d.line = to, true, line
	to.ids = append(to.ids, d)
}

// describe applies a record that describes a person: from now on, all its ids belong to one person.
func (p *people) describe(ctx context.Context, r *record.Record) error {
	var target *person
	if r.PersonID != uuid.Nil {
		target = p.named(r.Line, r.PersonID, r.DistinctIDs[0])
	}
	for _, name := range r.DistinctIDs {
		if target != nil {
			break
		}
		target = p.of(name)
	}
	if target == nil {
		target = p.owner(r.Line, r.DistinctIDs[0])
	}
	for _, name := range r.DistinctIDs {
		if err := p.join(ctx, r.Line, target, name); err != nil {
			return err
		}
	}
	for _, m := range r.Properties {
		p.give(target, r.Line, m)
	}
	if !r.CreatedAt.IsZero() && (!target.given || !target.createdAt.Equal(r.CreatedAt)) {
		target.date(r.Line, r.CreatedAt, true)
	}
	return nil
}

// join gives a distinct id to a person. If the id belongs to another person, the two are merged: the target keeps its properties, and gets those that it lacks
// and the earlier creation time.
func (p *people) join(ctx context.Context, line int, target *person, name string) error {
	entry := p.id(name)
	source := entry.person
	if source == nil || source == target {
		p.assign(line, entry, target)
		return nil
	}
	if err := p.loadIDsOf(ctx, source); err != nil {
		return err
	}
	for _, id := range source.ids {
		p.assign(line, id, target)
	}
	source.ids = nil
	target.index(len(source.properties))
	for _, m := range source.properties {
		if target.get(m.Key) == nil {
			p.give(target, line, m)
		}
	}
	target.unindex()
	if !source.createdAt.IsZero() && (target.createdAt.IsZero() || source.createdAt.Before(target.createdAt)) {
		target.date(line, source.createdAt, source.given)
	}
	if source.identified && !target.identified {
		target.identified = true
		target.change(line)
	}
	if p.merged == nil {
		p.merged = map[uuid.UUID]*person{}
	}
	p.merged[source.id] = target
	p.remember(source.id, target.id)
	delete(p.merged, target.id) // it exists again
	source.deleted = true
	source.profile = profile{}
	source.change(line)
	return nil
}

// give sets a property of a person, if there is room for it.
func (p *people) give(to *person, line int, m record.Member) {
	if p.captured && m.Value.IsNull() && to.get(m.Key) == nil {
		return // a missing property counts as null
	}
	changed, ok := to.set(m)
	if !ok {
		p.noRoom(line)
	}
	if changed {
		to.change(line)
	}
}

var (
	personColumns = []string{"id", "created_at", "properties", "is_identified", "is_deleted", "version", "created_at_given"}
	idColumns     = []string{"distinct_id", "person_id", "is_deleted", "version", "_partition"}
)

// rows returns the rows of the persons that changed.
func (p *people) rows() []row {
	var rows []row
	for _, one := range p.persons {
		if !one.changed {
			continue
		}
		if one.stored {
			one.version++
		}
		if one.createdAt.IsZero() {
			one.createdAt = p.store.now
		}
		p.fresh.add(freshPersons.uuid(one.id))
		key := fmt.Sprintf("%s %d %t %t %s %s", one.id, one.version, one.deleted, one.identified, one.createdAt, one.json())
		rows = append(rows, p.store.row(one.line, key, one.id, one.createdAt, one.json(), flag(one.identified), flag(one.deleted),
			one.version, uint8(flag(one.given)))) //nolint:gosec // 0 or 1
	}
	return sorted(rows)
}

// recast returns the distinct ids with events, of earlier batches and with a profile, for which the creation time of their person may have changed. ok is false
// if not all of them are known.
func (p *people) recast() (names []string, ok bool) {
	if p.refused {
		return nil, false
	}
	for _, one := range p.persons {
		if !one.changed || one.deleted || one.stored && !one.redated && !one.returned {
			continue // a deleted person was merged into another one, which has its distinct ids
		}
		if one.returned || !one.whole { // events with its id may have distinct ids that belong to nobody
			return nil, false
		}
		for _, d := range one.ids {
			if one.stored || d.moved {
				names = append(names, d.name)
			}
		}
	}
	return names, true
}

// idRows returns the rows of distinct ids that changed hands after events were written with another person, and the rows of all that changed.
func (p *people) idRows() (moved, all []row) {
	for name, entry := range p.ids {
		if !entry.changed {
			continue
		}
		p.fresh.add(freshIDs.text(name))
		one := p.store.row(entry.line, fmt.Sprintf("%q %s %d", name, entry.person.id, entry.version),
			name, entry.person.id, int8(0), entry.version, uint64(0))
		if entry.moved {
			moved = append(moved, one)
		}
		all = append(all, one)
	}
	return sorted(moved), sorted(all)
}

// written marks what changed as stored.
func (p *people) written() {
	for id, one := range p.persons {
		if one.deleted {
			delete(p.persons, id)
		}
		one.stored, one.changed, one.redated, one.returned = true, false, false, false
	}
	for _, entry := range p.ids {
		if entry.changed {
			entry.stored, entry.changed, entry.moved, entry.joined = true, false, false, false
		}
	}
	p.merged = nil
}
