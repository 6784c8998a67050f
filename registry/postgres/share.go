package postgres

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// shares is what a store remembers of the allowances that nodes share.
type shares struct{ cleaned atomic.Int64 } // when unused ones were removed, in nanoseconds

// KeptAll implements registry.Sharer.
func (s *Store) KeptAll(ctx context.Context, prefix string) (map[string][]byte, error) {
	doing := "reading what is kept as " + prefix + "…"
	limited, cancel, err := s.limited(ctx, longPatience)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", doing, err)
	}
	defer cancel()
	rows, err := s.pool.Query(limited, `SELECT name, data FROM analytics_kept WHERE starts_with(name, $1)`, prefix)
	if err != nil {
		return nil, s.told(ctx, doing, err)
	}
	all := make(map[string][]byte)
	var name string
	var data []byte
	_, err = pgx.ForEachRow(rows, []any{&name, &data}, func() error {
		all[name], data = data, nil
		return nil
	})
	if err != nil {
		return nil, s.told(ctx, doing, err)
	}
	return all, nil
}

// takeShare takes queries out of an allowance: $2 is how long one takes to come back, $3 how many there are when nothing is spent, $4 how many are
// wanted. Whoever waits for another taker sees what that one left.
const takeShare = `INSERT INTO analytics_allowances AS known (name, whole, got)
	SELECT $1, now + got * $2::bigint, got
	FROM (SELECT (extract(epoch FROM statement_timestamp()) * 1000000000)::bigint AS now, greatest(0, least($3::bigint, $4::bigint)) AS got) AS fresh
	ON CONFLICT (name) DO UPDATE SET (whole, got) = (
		SELECT greatest(known.whole, now) + more * $2::bigint, more
		FROM (SELECT now, CASE WHEN $4::bigint <= 0 THEN $4::bigint ELSE
				greatest(0, least($4::bigint, $3::bigint - (greatest(0, known.whole - now) + $2::bigint - 1) / $2::bigint)) END AS more
			FROM (SELECT (extract(epoch FROM statement_timestamp()) * 1000000000)::bigint AS now) AS clock) AS taken)
	RETURNING got, whole - (extract(epoch FROM statement_timestamp()) * 1000000000)::bigint`

// Take implements registry.Sharer.
func (s *Store) Take(ctx context.Context, allowance string, rate registry.Rate, want int) (got int, again time.Duration, err error) {
	const doing = "taking a share of an allowance"
	limited, cancel, err := s.limited(ctx, patience)
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w", doing, err)
	}
	defer cancel()
	s.cleanShares(limited)
	every := rate.Per / time.Duration(rate.Queries)
	var spent int64
	if err := s.pool.QueryRow(limited, takeShare, allowance, int64(every), rate.Queries, want).Scan(&got, &spent); err != nil {
		return 0, 0, s.told(ctx, doing, err)
	}
	if got < want {
		again = max(0, time.Duration(spent)-time.Duration(rate.Queries-1)*every)
	}
	return got, again, nil
}

// keepUnused is how long an allowance of which nothing is spent is kept: it would begin anew as it is.
const keepUnused = time.Minute

// cleanShares removes allowances that nobody spends, from time to time.
func (s *Store) cleanShares(ctx context.Context) {
	now, last := time.Now().UnixNano(), s.shares.cleaned.Load()
	if now-last < int64(keepUnused) || !s.shares.cleaned.CompareAndSwap(last, now) {
		return
	}
	_, _ = s.pool.Exec(ctx, `DELETE FROM analytics_allowances WHERE whole < (extract(epoch FROM statement_timestamp()) * 1000000000)::bigint - $1::bigint`,
		int64(keepUnused)) // if it fails, the next one does it
}

// Interface guards.
var (
	_ registry.Store  = (*Store)(nil)
	_ registry.Sharer = (*Store)(nil)
)
