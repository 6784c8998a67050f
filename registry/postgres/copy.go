package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite"
)

// Copy implements registry.Copier. A copy is a registry in SQLite.
func (s *Store) Copy(ctx context.Context, folder string) (err error) {
	copied, err := sqlite.CreateCopy(ctx, folder)
	if err != nil {
		return fmt.Errorf("copying the registry: %w", err)
	}
	defer func() { err = errors.Join(err, copied.Close()) }()
	return s.contents(ctx, repeatableRead, nil, func(c *registry.Contents) error {
		if err := copied.Fill(ctx, c.WithoutNodes()); err != nil {
			return fmt.Errorf("copying the registry: %w", err)
		}
		return nil
	})
}

// Examine implements registry.Copier.
func (*Store) Examine(ctx context.Context, folder string) error {
	return sqlite.ExamineCopy(ctx, folder)
}

// Replace implements registry.Copier. Kept data is replaced in the same step as the records.
func (s *Store) Replace(ctx context.Context, folder string, before uint64) (err error) {
	copied, err := sqlite.OpenCopy(ctx, folder)
	if err != nil {
		return fmt.Errorf("opening the copy: %w", err)
	}
	defer func() { err = errors.Join(err, copied.Close()) }()
	return copied.Contents(ctx, func(c *registry.Contents) error { return s.replace(ctx, c.WithoutNodes(), before) })
}

// emptyAll removes all records and log entries. The table of logs goes first, so that the trigger has nothing to count.
var emptyAll = []string{
	`DELETE FROM analytics_logs`,
	`DELETE FROM analytics_entries`,
	`DELETE FROM analytics_unique_keys`,
	`DELETE FROM analytics_records`,
}

func (s *Store) replace(ctx context.Context, c *registry.Contents, before uint64) error {
	const doing = "replacing all records"
	limited, cancel, err := s.limited(ctx, moving)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	defer cancel()
	var given error // of the contents, or about the store
	err = pgx.BeginTxFunc(limited, s.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(limited, neverIdle); err != nil {
			return err
		}
		var current int64
		var found int
		// Other writers wait, and so do those that keep something.
		if err := tx.QueryRow(limited, `UPDATE analytics_registry SET writes = writes + 1 RETURNING revision, version`).Scan(&current, &found); err != nil {
			return err
		}
		switch {
		case found > version:
			given = newerError(found)
		case unsigned(current) != before:
			given = registry.ErrStale
		}
		if given != nil {
			return given
		}
		if _, err := tx.Exec(limited, `LOCK TABLE analytics_kept IN SHARE ROW EXCLUSIVE MODE`); err != nil {
			return err
		}
		for _, statement := range emptyAll {
			if _, err := tx.Exec(limited, statement); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(limited, `DELETE FROM analytics_kept WHERE NOT starts_with(name, $1)`, registry.NodePrefix); err != nil {
			return err
		}
		// Whoever had a lock has seen the earlier state of what it protects.
		if _, err := tx.Exec(limited, `UPDATE analytics_locks SET holder = '', turn = turn + 1`); err != nil {
			return err
		}
		if given, err = fill(limited, tx, putAt(max(before, c.Revision)+1, c)); given != nil {
			return given
		}
		if err == nil {
			_, err = tx.Exec(limited, notifyOthers, s.channel(), "")
		}
		return err
	})
	if given != nil {
		return fmt.Errorf("%s: %w", doing, given)
	}
	return s.callerError(ctx, doing, err)
}

// putAt returns contents whose records were all put by one revision.
func putAt(revision uint64, c *registry.Contents) *registry.Contents {
	return &registry.Contents{Revision: revision, Entries: c.Entries, Kept: c.Kept, Records: func(yield func(*registry.Record, error) bool) {
		for rec, err := range c.Records {
			if err == nil {
				rec.Revision = revision
			}
			if !yield(rec, err) {
				return
			}
		}
	}}
}

// Interface guard.
var _ registry.Copier = (*Store)(nil)
