package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// Change describes a change of a person's properties. Properties that it does not name stay.
type Change struct {
	Person uuid.UUID
	Set    record.Object
	Unset  []string
}

// Errors of Ingester.Change that leave everything unchanged.
var (
	ErrNoPerson = errors.New("the project has no such person")
	ErrNoRoom   = errors.New("the person has no room for these properties")
	ErrRefused  = errors.New("ClickHouse refuses the data of these properties")
)

// Change changes the properties of a person, in turn with all other writes to the project. It follows the rules of a captured event with $set and $unset, keeps
// the change as an intent, and learns types, which the report lists.
//
// After any other error than those above, the change may have been written.
func (i *Ingester) Change(ctx context.Context, options Options, c Change) (Report, error) {
	options.Captured = true
	if err := options.begin(); err != nil {
		return Report{}, err
	}
	state := i.project(options.Project)
	done, err := state.placedTurn(ctx, &options)
	if err != nil {
		return Report{}, err
	}
	defer done()
	s, err := i.delivery(ctx, state, options)
	if err != nil {
		return Report{}, err
	}
	defer state.measure(s)
	var refused error // why nothing was written
	err = state.writeNow(ctx, s, func(ctx context.Context) error {
		err := s.change(ctx, c)
		if errors.Is(err, ErrNoPerson) || errors.Is(err, ErrNoRoom) {
			refused, err = err, nil
		}
		return err
	})
	if err != nil {
		state.delivery = nil
		i.layout.Store(nil)
		return s.result(), fmt.Errorf("changing a person of project %d: %w", options.Project, err)
	}
	return s.result(), refused
}

// changeLine is the line of the single record that a change consists of.
const changeLine = 1

func (s *session) change(ctx context.Context, c Change) error {
	if entries, bytes := s.kept(); entries > maxState || bytes > maxStateBytes {
		s.forget()
	}
	if err := s.people.loadPersons(ctx, map[uuid.UUID]bool{c.Person: true}); err != nil {
		return err
	}
	of := s.people.persons[c.Person]
	if of == nil || !of.stored || of.deleted {
		return ErrNoPerson
	}
	changed, err := of.with(c)
	if err != nil || !changed {
		return err
	}
	of.change(changeLine)
	s.types.observe(personScope, 0, c.Set)
	overrides, persons := newBlock(physical.Overrides, idColumns, nil), newBlock(physical.Persons, personColumns, s.people.rows())
	s.findMoved(ctx, &overrides, &persons)
	if err := s.finish(ctx, []block{persons}, nil); err != nil {
		return err
	}
	if s.report.Bad > 0 {
		return ErrRefused
	}
	s.people.written()
	return nil
}

// with changes all properties that c names or, on an error, none. It reports whether any value differs from before.
func (p *profile) with(c Change) (changed bool, err error) {
	next := *p
	next.properties = slices.Clone(p.properties)
	changed = next.unset(setOf(c.Unset))
	for _, m := range c.Set {
		if m.Value.IsNull() && next.properties.Get(m.Key) == nil {
			continue // a missing property counts as null
		}
		set, ok := next.set(m)
		if !ok {
			return false, ErrNoRoom
		}
		changed = changed || set
	}
	if changed {
		*p = next
	}
	return changed, nil
}
