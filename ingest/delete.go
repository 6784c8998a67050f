package ingest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// Named selects the persons to delete: by id, by distinct id, or both. Unknown ids are ignored.
type Named struct {
	Persons     []uuid.UUID
	DistinctIDs []string
	// Still reports whether a person is the one that is meant, not a newer one with the same id; nil: all are.
	Still func(Gone) bool
}

// Gone is a person that is deleted or whose events are.
type Gone struct {
	ID uuid.UUID
	// Version is the version of the row that marks the person as deleted, or of its current row if it stays.
	Version uint64
	Names   []GoneName
}

// GoneName is a distinct id of such a person, with the version of its row.
type GoneName struct {
	Name    string
	Version int64
}

// Deletions is what was deleted from a project and may still arrive.
type Deletions struct {
	// Late says, by distinct id, which captured events come too late.
	Late map[string]Late
	// Epoch changes with each deletion, and when the project begins to keep events for longer. From then on, ClickHouse accepts rows again that it had before.
	Epoch int64
}

// Late says which captured events of a distinct id come too late.
type Late struct {
	// Events that arrived no later than Until do not bring the person back.
	Until time.Time
	// Those that arrived no later than EventsUntil are deleted too. It is not after Until, and zero if all events are kept.
	EventsUntil time.Time
}

// Delete finds persons and, if gone is set, deletes them: from then on they and their distinct ids belong to nobody, and an event with one of these ids makes a
// new person. Meanwhile neither this server nor another writes anything else to the project. found is called before anything changes, and hide after the
// persons are hidden; both are called even if there are none.
//
// If it is interrupted, the persons may or may not be hidden; deleting them again completes it. Options.Turn and Options.Enter are for the whole deletion.
func (i *Ingester) Delete(ctx context.Context, options Options, who Named, gone bool, found, hide func(context.Context, []Gone) error) error {
	if err := options.begin(); err != nil {
		return err
	}
	state := i.project(options.Project)
	done, err := state.placedTurn(ctx, &options)
	if err != nil {
		return err
	}
	defer done()
	s, err := i.newSession(ctx, options)
	if err != nil {
		return err
	}
	s.people.captured = true // their created_at may be unknown, and nothing else depends on it
	if err := s.complete(ctx, state); err != nil {
		return err
	}
	state.last, state.settled, state.delivery = nil, false, nil
	if err := s.delete(ctx, who, gone, found, hide); err != nil {
		i.layout.Store(nil)
		return fmt.Errorf("deleting people of project %d: %w", options.Project, err)
	}
	state.settled = true
	return nil
}

// complete finishes what an earlier batch left, and forgets which events ClickHouse refused, because their keys contain distinct ids.
func (s *session) complete(ctx context.Context, state *projectState) error {
	s.refusals = state.refused
	s.stamp()
	if err := s.loadGroupTypes(ctx); err != nil { // see writeNow
		return err
	}
	s.lookAtDeletions()
	if state.changed.Swap(false) || !state.settled {
		state.last, state.settled, state.delivery = nil, false, nil // also if resume fails: that the state changed is said only once
		if state.seen != nil {
			state.seen.forget()
		}
		if err := s.resume(ctx); err != nil {
			return err
		}
	}
	if len(s.refusals.keys) == 0 {
		return nil
	}
	*s.refusals = *newRefusals()
	if s.intents == nil {
		return nil
	}
	return s.keep(ctx, nil)
}

func (s *session) delete(ctx context.Context, who Named, gone bool, found, hide func(context.Context, []Gone) error) error {
	persons, err := s.people.find(ctx, who)
	if err != nil {
		return err
	}
	var list []Gone
	persons = slices.DeleteFunc(persons, func(one *person) bool {
		g := one.gone(gone)
		if who.Still != nil && !who.Still(g) {
			return true
		}
		list = append(list, g)
		return false
	})
	if err := found(ctx, list); err != nil {
		return err
	}
	if s.options.Deletions != nil { // including this one, so that its rows differ from those of an earlier deletion
		s.deletions = s.options.Deletions()
		s.store.epoch = s.deletions.Epoch
	}
	if gone && len(persons) > 0 {
		if err := s.writeTombstones(ctx, persons, list); err != nil {
			return err
		}
	}
	return hide(ctx, list)
}

// find looks up the named persons that exist, with all their distinct ids.
func (p *people) find(ctx context.Context, who Named) ([]*person, error) {
	if len(who.DistinctIDs) > 0 {
		unknown := map[string]bool{}
		for _, name := range who.DistinctIDs {
			unknown[name] = true
		}
		if err := p.loadIDs(ctx, slices.Sorted(maps.Keys(unknown)), unknown); err != nil {
			return nil, err
		}
	}
	wanted := map[uuid.UUID]bool{}
	for _, id := range who.Persons {
		wanted[id] = true
	}
	if err := p.loadPersons(ctx, wanted); err != nil {
		return nil, err
	}
	for _, name := range who.DistinctIDs {
		if one := p.of(name); one != nil {
			wanted[one.id] = true
		}
	}
	var persons []*person
	for id := range wanted {
		if one := p.persons[id]; one != nil && !one.deleted {
			persons = append(persons, one)
		}
	}
	slices.SortFunc(persons, func(a, b *person) int { return cmp.Compare(a.id.String(), b.id.String()) })
	return persons, p.loadIDsOf(ctx, persons...)
}

// gone describes the person as one that is deleted or, if deleted is false, as one that stays.
func (p *person) gone(deleted bool) Gone {
	step := int64(flag(deleted))
	out := Gone{ID: p.id, Version: p.version + uint64(step)} //nolint:gosec // 0 or 1
	for _, id := range p.ids {
		out.Names = append(out.Names, GoneName{id.name, id.version + step})
	}
	slices.SortFunc(out.Names, func(a, b GoneName) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// writeTombstones writes the rows that mark persons and their distinct ids as deleted.
func (s *session) writeTombstones(ctx context.Context, persons []*person, list []Gone) error {
	var rows, names []row
	for n, one := range persons {
		g := &list[n]
		createdAt := one.createdAt
		if createdAt.IsZero() {
			createdAt = s.store.now
		}
		rows = append(rows, s.store.row(0, fmt.Sprintf("deleted %s %d", g.ID, g.Version), g.ID, createdAt, "{}", flag(false), flag(true),
			g.Version, uint8(1)))
		for _, id := range g.Names {
			names = append(names, s.store.row(0, fmt.Sprintf("deleted %q %s %d", id.Name, g.ID, id.Version), id.Name, g.ID, flag(true), id.Version, uint64(0)))
		}
	}
	state := []block{newBlock(physical.Persons, personColumns, rows)}
	if len(names) > 0 {
		state = append(state, newBlock("person_distinct_id2", idColumns, names))
	}
	return s.finish(ctx, state, nil)
}

// isLate reports whether the person of a captured event was deleted after the event arrived, and whether the event is dropped too.
func (s *session) isLate(r *record.Record) (late, drop bool) {
	if !s.options.Captured || len(s.deletions.Late) == 0 || r.Kind != record.Event {
		return false, false
	}
	for _, name := range s.people.mentionedIDs(r) {
		if d, known := s.deletions.Late[name]; known && !r.Arrived.After(d.Until) {
			late, drop = true, drop || name == r.DistinctID && !d.EventsUntil.IsZero() && !r.Arrived.After(d.EventsUntil)
		}
	}
	return late, drop
}
