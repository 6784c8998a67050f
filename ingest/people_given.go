package ingest

import (
	"context"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// Exports of other products name the person of each event. The importer keeps these ids, by three rules:
//
//   - a distinct id without person goes to the person that is named;
//   - a distinct id that has another person shows that the two are one, and the one that is named now stays;
//   - a merged person stays merged, whatever later lines name.

// maxBecame is how many merged persons are remembered.
const maxBecame = 200_000

// remember notes that a person was merged into another one.
func (p *people) remember(source, target uuid.UUID) {
	if p.captured {
		return
	}
	if p.became == nil || len(p.became) >= maxBecame {
		p.became = map[uuid.UUID]uuid.UUID{}
	}
	p.became[source] = target
	delete(p.became, target)
}

// now returns the id of the person that this one was merged into, or its own.
func (p *people) now(id uuid.UUID) uuid.UUID {
	for {
		next, ok := p.became[id]
		if !ok {
			return id
		}
		id = next
	}
}

// namedPersons are the persons that records name.
func (p *people) namedPersons(records []record.Record) map[uuid.UUID]bool {
	var named map[uuid.UUID]bool
	for n := range records {
		if id := records[n].PersonID; id != uuid.Nil {
			if named == nil {
				named = map[uuid.UUID]bool{}
			}
			named[p.now(id)] = true
		}
	}
	return named
}

// named returns the person with an id for a distinct id, and creates it if there is none. It is nil for a person that was merged or deleted in an earlier
// import if the distinct id has another person.
func (p *people) named(line int, id uuid.UUID, name string) *person {
	id = p.now(id)
	one := p.persons[id]
	if one == nil {
		one = &person{id: id, whole: true}
		p.persons[id] = one
	}
	if one.deleted && p.of(name) != nil {
		return nil
	}
	one.revive(line)
	return one
}

// claim gives a distinct id to the person that a record names.
func (p *people) claim(ctx context.Context, r *record.Record, name string) error {
	if r.PersonID == uuid.Nil {
		return nil
	}
	target := p.named(r.Line, r.PersonID, name)
	if target == nil || target == p.of(name) {
		return nil
	}
	return p.join(ctx, r.Line, target, name)
}

// takeSnapshot gives a person the properties that an event says it had. Records of the person itself take precedence, and so do later events.
func (p *people) takeSnapshot(of *person, e *event) {
	if len(e.PersonProperties) == 0 {
		return
	}
	older := of.given || e.Timestamp.Before(of.asOf)
	for _, m := range e.PersonProperties {
		if !older || of.properties.Get(m.Key) == nil {
			p.give(of, e.Line, m)
		}
	}
	if !older {
		of.asOf = e.Timestamp
	}
}
