package ingest

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// The values of the column person_mode.
const (
	modeFull    = "full"
	modeNone    = "propertyless"
	modeUpgrade = "force_upgrade"
)

// upgradeAfter is how old a person must be before an event without profile shows that its client should send profiles.
const upgradeAfter = time.Minute

// eventPerson is the person of an event.
type eventPerson struct {
	id     uuid.UUID
	mode   string
	person *person // as of the event; nil for an event without profile
	name   *distinctID
}

// ofEvent applies what an event says about its person.
func (p *people) ofEvent(ctx context.Context, e *event) (eventPerson, error) {
	name := p.id(e.DistinctID)
	if e.personless {
		return p.withoutProfile(e.Record, name), nil
	}
	if err := p.claim(ctx, e.Record, e.DistinctID); err != nil {
		return eventPerson{}, err
	}
	if err := p.merge(ctx, e.Record); err != nil {
		return eventPerson{}, err
	}
	of := p.owner(e.Line, e.DistinctID)
	if p.captured {
		p.updateCaptured(of, e)
	} else {
		of.seen(e.Line, p.dateOf(e))
		p.takeSnapshot(of, e)
		p.update(of, e)
	}
	return eventPerson{of.id, modeFull, of, name}, nil
}

// dateOf is the time by which the person of an event was created. An event that lies too far ahead counts as now: the person would not exist until then.
func (p *people) dateOf(e *event) time.Time {
	if e.Timestamp.Before(physical.CreatedBefore(p.store.now)) {
		return e.Timestamp
	}
	return p.store.now
}

// withoutProfile returns the person of an event without profile: the id of a known person, which the event does not change, or the id that the person would
// have.
func (p *people) withoutProfile(r *record.Record, name *distinctID) eventPerson {
	known := name.person
	p.fresh.add(freshAlone.text(name.name))
	switch {
	case known == nil:
		name.alone = true
		return eventPerson{PersonUUID(p.store.project, r.DistinctID), modeNone, nil, name}
	case p.captured && r.Timestamp.After(known.createdAt.Add(upgradeAfter)):
		return eventPerson{known.id, modeUpgrade, nil, name}
	}
	return eventPerson{known.id, modeNone, nil, name}
}

// updateCaptured applies a captured event to its person, which is created at the time of the first one.
func (p *people) updateCaptured(of *person, e *event) {
	if of.createdAt.IsZero() {
		of.date(e.Line, e.Timestamp, true)
		p.update(of, e)
		return
	}
	if !neverUpdates(e.Event) && worthwhile(of, e) {
		p.update(of, e)
	}
}

// update applies $set_once, $set and $unset, in this order.
func (p *people) update(of *person, e *event) {
	of.index(len(e.setOnce) + len(e.set))
	defer of.unindex()
	for _, m := range e.setOnce {
		if missing(of, m) {
			p.give(of, e.Line, m)
		}
	}
	for _, m := range e.set {
		p.give(of, e.Line, m)
	}
	if of.unset(e.unset) {
		of.change(e.Line)
	}
}

// missing reports whether $set_once has a property to fill. A null property counts as missing.
func missing(of *person, m record.Member) bool {
	old := of.get(m.Key)
	return old == nil || old.IsNull() && !m.Value.IsNull()
}
