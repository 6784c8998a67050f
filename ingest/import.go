package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Import writes what records say, in batches (the operator's documentation describes the form of lines). A bad record is left out and reported.
//
// Importing the same records again adds nothing: an event without uuid gets one derived from its text and from how often the same text occurs before it within
// about 10,000 records; events that are already there are skipped. An interrupted import is completed by running it again.
//
// Imports into one project wait for each other. The report is valid even with an error: it says what was done before.
func (i *Ingester) Import(ctx context.Context, options Options, in Reader) (Report, error) {
	if err := options.begin(); err != nil {
		return Report{}, err
	}
	state := i.project(options.Project)
	done, err := state.importing.lock(ctx)
	if err != nil {
		return Report{}, fmt.Errorf("waiting for another import into the project: %w", err)
	}
	defer done()
	s, err := i.newSession(ctx, options)
	if err != nil {
		return Report{}, err
	}
	defer func() { // the project may remember the session for long
		s.forget()
		s.end()
		i.use(state)
	}()
	if i.Alone {
		s.people.fresh = newFresh(&i.seenBudget)
		defer s.people.fresh.forget()
	}
	if err = s.readAll(ctx, in, state); err != nil {
		i.layout.Store(nil)
	}
	return s.result(), err
}

// readAll takes in all records of a reader.
func (s *session) readAll(ctx context.Context, in Reader, state *projectState) error {
	a := readAhead(s.options.Project, in, s.most)
	for b := range a.full {
		err := s.take(ctx, b, state)
		a.empty <- b
		if err != nil {
			a.stop()
			return err
		}
	}
	if a.failed != "" {
		panic(a.failed)
	}
	return nil
}

// take reports the bad records of a batch and writes the others.
func (s *session) take(ctx context.Context, b *batch, state *projectState) error {
	for _, bad := range b.bad {
		s.bad(bad.Line, bad.Reason)
	}
	err := s.flush(ctx, b, state)
	if b.end != nil && !errors.Is(b.end, io.EOF) {
		return errors.Join(b.end, err)
	}
	return err
}

// flush writes a batch when it is its turn.
func (s *session) flush(ctx context.Context, b *batch, state *projectState) error {
	if len(b.records) == 0 {
		return nil
	}
	if err := state.write(ctx, s, b.records); err != nil {
		return fmt.Errorf("importing lines %d to %d: %w", b.records[0].Line, b.records[len(b.records)-1].Line, err)
	}
	s.noteTimes(b.records)
	if s.options.Progress != nil {
		s.options.Progress(s.report)
	}
	return nil
}
