package ingest

import (
	"context"
	"errors"
	"time"

	"github.com/caddy-analytics/caddy-analytics/internal/pause"
)

const (
	// listedAfter is the time after which ClickHouse has surely begun to execute a request that it got.
	listedAfter = 100 * time.Millisecond
	// pollInterval is how often to check whether an insert has ended, and lookFor is for how long.
	pollInterval = 100 * time.Millisecond
	lookFor      = 30 * time.Second
)

var errWriting = errors.New("ClickHouse is still executing an earlier insert into the project")

// settle waits until nothing is being written to the project. ClickHouse may not know yet of a write that just broke off.
func (s *session) settle(ctx context.Context, broken bool) error {
	doubtful := s.store.writes != nil && s.store.writes.Doubtful(s.store.project)
	if broken || doubtful {
		if err := pause.For(ctx, listedAfter); err != nil {
			return err
		}
	}
	if err := s.store.settle(ctx, broken || doubtful); err != nil {
		return err
	}
	if doubtful {
		s.store.writes.Settled(s.store.project)
	}
	return nil
}

// settle waits until ClickHouse has ended the inserts of the project's last writer. The writer may be gone, but ClickHouse goes on: rows that are not committed
// yet would be neither found nor skipped. If an insert is doubtful, a host that does not answer may still be executing it.
func (s *store) settle(ctx context.Context, doubtful bool) error {
	for began := time.Now(); ; {
		writing, err := s.client.Writing(ctx, s.project, doubtful)
		if err != nil || !writing {
			return err
		}
		if time.Since(began) > lookFor {
			return errWriting
		}
		if err := pause.For(ctx, pollInterval); err != nil {
			return err
		}
	}
}
