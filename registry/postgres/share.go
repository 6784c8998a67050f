package postgres

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// shares is what a store remembers about the allowances that nodes share.
type shares struct {
	done sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	cleaned time.Time // when unused ones were last removed
}

// KeptAll implements registry.Sharer.
func (s *Store) KeptAll(ctx context.Context, prefix string) (map[string][]byte, error) {
	doing := "reading what is kept as " + prefix + "…"
	limited, more, cancel, err := s.reading(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	defer cancel()
	rows, err := s.pool.Query(limited, `SELECT name, data FROM analytics_kept WHERE starts_with(name, $1)`, prefix)
	if err != nil {
		return nil, s.callerError(ctx, doing, err)
	}
	all := make(map[string][]byte)
	var name string
	var data []byte
	_, err = pgx.ForEachRow(rows, []any{&name, &data}, func() error {
		more()
		all[name], data = data, nil
		return nil
	})
	if err != nil {
		return nil, s.callerError(ctx, doing, err)
	}
	return all, nil
}

// takeShare takes queries out of an allowance: $2 is how long one takes to come back, $3 how many there are when nothing is spent, $4 how many are wanted. A
// taker that waits for another one sees what that one left. No more can be spent than there is, even if the clock was set back or the rate has changed.
const takeShare = `INSERT INTO analytics_allowances AS known (name, whole, got)
	SELECT $1, now + got * $2::bigint, got
	FROM (SELECT (extract(epoch FROM statement_timestamp()) * 1000000000)::bigint AS now, greatest(0, least($3::bigint, $4::bigint)) AS got) AS fresh
	ON CONFLICT (name) DO UPDATE SET (whole, got) = (
		SELECT now + spent + more * $2::bigint, more
		FROM (SELECT now, spent, CASE WHEN $4::bigint <= 0 THEN $4::bigint ELSE
				greatest(0, least($4::bigint, $3::bigint - (spent + $2::bigint - 1) / $2::bigint)) END AS more
			FROM (SELECT now, greatest(0, least(known.whole - now, $2::bigint * $3::bigint)) AS spent
				FROM (SELECT (extract(epoch FROM statement_timestamp()) * 1000000000)::bigint AS now) AS clock) AS known_now) AS taken)
	RETURNING got, whole - (extract(epoch FROM statement_timestamp()) * 1000000000)::bigint`

// Take implements registry.Sharer.
func (s *Store) Take(ctx context.Context, allowance string, rate registry.Rate, want int) (got int, again time.Duration, err error) {
	const doing = "taking a share of an allowance"
	limited, cancel, err := s.limited(ctx, patience)
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w", doing, err)
	}
	defer cancel()
	s.cleanShares()
	every := rate.Per / time.Duration(rate.Queries)
	var spent int64
	if err := s.pool.QueryRow(limited, takeShare, allowance, int64(every), rate.Queries, want).Scan(&got, &spent); err != nil {
		return 0, 0, s.callerError(ctx, doing, err)
	}
	if got < want {
		again = max(0, time.Duration(spent)-time.Duration(rate.Queries-1)*every)
	}
	return got, again, nil
}

const (
	// keepUnused is how long an allowance of which nothing is spent is kept: a new one would be the same.
	keepUnused = time.Minute
	// cleanBatch is how many of these are removed in one statement. A taker of one of them waits for it meanwhile.
	cleanBatch = 5000
)

// removeUnused skips those that somebody is about to take from.
const removeUnused = `DELETE FROM analytics_allowances WHERE name = ANY(ARRAY(SELECT name FROM analytics_allowances
	WHERE whole < (extract(epoch FROM statement_timestamp()) * 1000000000)::bigint - $1::bigint LIMIT $2 FOR UPDATE SKIP LOCKED))`

// cleanShares removes unused allowances from time to time. It does so in the background, because there may be many.
func (s *Store) cleanShares() {
	s.shares.mu.Lock()
	defer s.shares.mu.Unlock()
	now := time.Now()
	if s.shares.closed || now.Sub(s.shares.cleaned) < keepUnused {
		return
	}
	s.shares.cleaned = now
	s.shares.done.Go(func() {
		limited, cancel, err := s.limited(s.ctx, keepUnused)
		if err != nil {
			return
		}
		defer cancel()
		for {
			removed, err := s.pool.Exec(limited, removeUnused, int64(keepUnused), cleanBatch)
			if s.callerError(s.ctx, "removing allowances", err) != nil || removed.RowsAffected() == 0 { // if it fails, the next one does it
				return
			}
		}
	})
}

// close waits for the background work.
func (s *shares) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.done.Wait()
}

// Interface guards.
var (
	_ registry.Store  = (*Store)(nil)
	_ registry.Sharer = (*Store)(nil)
)
