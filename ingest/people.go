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
	changed    bool
	line       int // that changed it last
}

func (p *person) change(line int) {
	p.changed = true
	p.line = line
}

// seen moves the time of creation to that of an event, unless it was given or is earlier.
func (p *person) seen(line int, at time.Time) {
	if !p.given && (p.createdAt.IsZero() || at.Before(p.createdAt)) {
		p.createdAt = at
		p.change(line)
	}
}

// distinctID is one of the names of a person.
type distinctID struct {
	person  *person
	version int64
	stored  bool // a row of it is in ClickHouse
	changed bool
	moved   bool // it belonged to another person
	line    int
}

// people finds the person of each record, and keeps what is known about persons between batches.
type people struct {
	store   *store
	ids     map[string]*distinctID
	persons map[uuid.UUID]*person
	merged  map[uuid.UUID]*person // the persons of this batch that became another one, which takes their place
	noRoom  func(line int)        // called for each property that is left out
}

func (p *people) forget() { p.ids, p.persons = map[string]*distinctID{}, map[uuid.UUID]*person{} }

// bytes is about what the properties take.
func (p *people) bytes() (size int) {
	for _, one := range p.persons {
		size += 2 * len(one.json())
	}
	return size
}

// of returns the person who has a distinct id, or nil.
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
		entry = &distinctID{}
		p.ids[name] = entry
	}
	return entry
}

// owner returns the person of a distinct id, and makes one where there is none.
func (p *people) owner(line int, name string) *person {
	entry := p.id(name)
	if entry.person == nil {
		entry.assign(line, p.create(line, name))
	}
	return entry.person
}

// create creates the person of a distinct id.
func (p *people) create(line int, name string) *person {
	id := personUUID(p.store.project, name)
	one := p.persons[id]
	if one == nil {
		one = &person{id: id}
		p.persons[id] = one
	}
	if !one.stored || one.deleted {
		one.deleted = false
		one.change(line)
	}
	return one
}

// assign gives a distinct id to a person.
func (d *distinctID) assign(line int, to *person) {
	if d.person == to {
		return
	}
	d.moved = d.moved || d.person != nil
	if d.stored || d.person != nil {
		d.version++
	}
	d.person, d.changed, d.line = to, true, line
}

// describe applies a record that describes a person: all its ids belong to one person from now on.
func (p *people) describe(ctx context.Context, r *record.Record) error {
	var target *person
	for _, name := range r.DistinctIDs {
		if target = p.of(name); target != nil {
			break
		}
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
		target.createdAt, target.given = r.CreatedAt, true
		target.change(r.Line)
	}
	return nil
}

// join gives a distinct id to a person. If it belongs to another one, both become one: the target keeps its
// properties and gets those that it lacks, and the earlier time of creation.
func (p *people) join(ctx context.Context, line int, target *person, name string) error {
	entry := p.id(name)
	source := entry.person
	if source == nil || source == target {
		entry.assign(line, target)
		return nil
	}
	if err := p.loadIDsOf(ctx, source); err != nil {
		return err
	}
	for _, other := range p.ids {
		if other.person == source {
			other.assign(line, target)
		}
	}
	for _, m := range source.properties {
		if target.properties.Get(m.Key) == nil {
			p.give(target, line, m)
		}
	}
	if !source.createdAt.IsZero() && (target.createdAt.IsZero() || source.createdAt.Before(target.createdAt)) {
		target.createdAt, target.given = source.createdAt, source.given
		target.change(line)
	}
	if source.identified && !target.identified {
		target.identified = true
		target.change(line)
	}
	if p.merged == nil {
		p.merged = map[uuid.UUID]*person{}
	}
	p.merged[source.id] = target
	delete(p.merged, target.id) // it is there again
	source.deleted = true
	source.profile = profile{}
	source.change(line)
	return nil
}

// mergedID returns the other distinct id that an event joins to its own, and whether it does so even when the
// other one is identified.
func mergedID(r *record.Record) (id string, force bool) {
	name := ""
	switch r.Event {
	case "$identify":
		name = "$anon_distinct_id"
	case "$create_alias":
		name = "alias"
	case "$merge_dangerously":
		name, force = "alias", true
	default:
		return "", false
	}
	id, _ = r.Properties.Get(name).Text()
	if id == r.DistinctID {
		return "", false
	}
	return id, force
}

// ofEvent applies what an event says about its person and returns the person as of the event. For an event without
// profile the person is nil, but it has the id that the person would have.
func (p *people) ofEvent(ctx context.Context, r *record.Record) (id uuid.UUID, of *person, err error) {
	if string(r.Properties.Get("$process_person_profile")) == "false" {
		if known := p.of(r.DistinctID); known != nil {
			return known.id, nil, nil
		}
		return personUUID(p.store.project, r.DistinctID), nil, nil
	}
	of = p.owner(r.Line, r.DistinctID)
	if other, force := mergedID(r); other != "" {
		if known := p.of(other); known == nil || !known.identified || force {
			if err := p.join(ctx, r.Line, of, other); err != nil {
				return of.id, nil, err
			}
		}
		if !of.identified {
			of.identified = true
			of.change(r.Line)
		}
	}
	of.seen(r.Line, r.Timestamp)
	for _, m := range r.Properties.Get("$set_once").Object() {
		if of.properties.Get(m.Key) == nil {
			p.give(of, r.Line, m)
		}
	}
	for _, m := range r.Properties.Get("$set").Object() {
		p.give(of, r.Line, m)
	}
	for _, key := range r.Properties.Get("$unset").Keys() {
		if of.unset(key) {
			of.change(r.Line)
		}
	}
	return of.id, of, nil
}

// give sets a property of a person, if there is room for it.
func (p *people) give(to *person, line int, m record.Member) {
	changed, ok := to.set(m)
	if !ok {
		p.noRoom(line)
	}
	if changed {
		to.change(line)
	}
}

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
		key := fmt.Sprintf("%s %d %t %t %s %s", one.id, one.version, one.deleted, one.identified, one.createdAt, one.json())
		rows = append(rows, p.store.row(one.line, key, map[string]any{
			"id": one.id, "created_at": one.createdAt, "properties": one.json(), "is_identified": flag(one.identified),
			"is_deleted": flag(one.deleted), "version": one.version, "created_at_given": uint8(flag(one.given)), //nolint:gosec // 0 or 1
		}))
	}
	return sorted(rows)
}

// idRows returns the rows of distinct ids that changed hands after events had been written with their old person,
// and those of all that changed.
func (p *people) idRows() (moved, all []row) {
	for name, entry := range p.ids {
		if !entry.changed {
			continue
		}
		one := p.store.row(entry.line, fmt.Sprintf("%q %s %d", name, entry.person.id, entry.version), map[string]any{
			"distinct_id": name, "person_id": entry.person.id, "is_deleted": int8(0), "version": entry.version, "_partition": uint64(0),
		})
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
		one.stored, one.changed = true, false
	}
	for _, entry := range p.ids {
		if entry.changed {
			entry.stored, entry.changed, entry.moved = true, false, false
		}
	}
	p.merged = nil
}
