package ingest

import (
	"context"
	"fmt"
	"slices"

	"github.com/caddy-analytics/caddy-analytics/ingest/record"
)

// Deliver writes captured events in their order, and what they say about people and groups. It sets Options.Captured. Batches of one project follow each other;
// different projects may be delivered to at once. Lines in the report are the places of the records, counted from 1. The properties of the records may be
// changed.
//
// After an error, some of the records may have been written. Delivering the same records again, in batches of any size, completes them: each event is there
// once, and changed its person once. This needs Ingester.Intents.
func (i *Ingester) Deliver(ctx context.Context, options Options, records []record.Record) (Report, error) {
	state, s, done, err := i.captured(ctx, options)
	if err != nil {
		return Report{}, err
	}
	defer done()
	for n := range records {
		records[n].Line = n + 1
	}
	written := false
	defer func() { // also if it panics
		if !written {
			state.delivery = nil
			i.layout.Store(nil)
		}
	}()
	for batch := range slices.Chunk(records, deliveredRecords) {
		if err := state.inTurn(ctx, s, func(ctx context.Context) error { return s.write(ctx, batch) }); err != nil {
			return s.result(), fmt.Errorf("delivering events: %w", err)
		}
	}
	written = true
	return s.result(), nil
}

// AwaitBatch waits until no batch of the project is being written, on any server if Options.Turn waits for them. What a later batch reads includes what the
// caller has written before.
func (i *Ingester) AwaitBatch(ctx context.Context, options Options) error {
	done, err := i.project(options.Project).turn(ctx, &options)
	if err != nil {
		return err
	}
	done()
	return nil
}

// captured takes the turn of a project's deliveries and holds it until done is called.
func (i *Ingester) captured(ctx context.Context, options Options) (p *projectState, s *session, done func(), err error) {
	options.Captured = true
	if err := options.begin(); err != nil {
		return nil, nil, nil, err
	}
	p = i.project(options.Project)
	unlock, err := p.writing.lock(ctx)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("waiting for another batch of the project: %w", err)
	}
	if s, err = i.delivery(ctx, p, options); err != nil {
		unlock()
		return nil, nil, nil, err
	}
	return p, s, func() { p.measure(s); unlock() }, nil
}

// delivery is the session of a project's deliveries.
func (i *Ingester) delivery(ctx context.Context, state *projectState, options Options) (*session, error) {
	i.use(state)
	if state.delivery != nil {
		state.delivery.begin(options)
		return state.delivery, nil
	}
	s, err := i.newSession(ctx, options)
	if err != nil {
		return nil, err
	}
	s.store.gathering, s.store.reading = &i.gathering, i.reading
	state.delivery = s
	return s, nil
}

// lookAtDeletions starts a batch with the current deletions. They also apply to an unfinished batch that is completed first.
func (s *session) lookAtDeletions() {
	if s.options.Deletions != nil {
		s.deletions = s.options.Deletions()
		s.store.epoch = s.deletions.Epoch
	}
}
