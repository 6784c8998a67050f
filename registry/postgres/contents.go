package postgres

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// moving is how long moving a registry may take.
const moving = time.Hour

// neverIdle lets a transaction stay idle for as long as reading from it, or filling it, takes.
const neverIdle = `SET LOCAL idle_in_transaction_session_timeout = 0`

// Contents implements registry.Movable. The writes of all nodes wait meanwhile.
func (s *Store) Contents(ctx context.Context, read func(*registry.Contents) error) error {
	return s.contents(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, []string{
		`LOCK TABLE analytics_kept IN SHARE MODE`, `SELECT 1 FROM analytics_registry FOR UPDATE`,
	}, read)
}

// contents calls read with all that the store holds, in a transaction that begins with statements.
func (s *Store) contents(ctx context.Context, options pgx.TxOptions, begin []string, read func(*registry.Contents) error) error {
	limited, cancel, err := s.limited(ctx, moving)
	if err != nil {
		return fmt.Errorf("reading the registry: %w", err)
	}
	defer cancel()
	var failed error // of read
	err = pgx.BeginTxFunc(limited, s.pool, options, func(tx pgx.Tx) error {
		for _, statement := range append([]string{neverIdle}, begin...) {
			if _, err := tx.Exec(limited, statement); err != nil {
				return err
			}
		}
		var revision int64
		if err := tx.QueryRow(limited, `SELECT revision FROM analytics_registry`).Scan(&revision); err != nil {
			return err
		}
		failed = read(&registry.Contents{
			Revision: unsigned(revision),
			Records: rowsOf(limited, tx, func(rows pgx.Rows, rec *registry.Record) error {
				var at int64
				var data *string
				err := rows.Scan(&rec.Project, (*string)(&rec.Kind), &rec.ID, &at, &data, &rec.Unique)
				rec.Revision, rec.Data = unsigned(at), bytesOf(data)
				return err
			}, `SELECT project, kind, id, revision, data,
				ARRAY(SELECT key FROM analytics_unique_keys AS k WHERE k.project = r.project AND k.kind = r.kind AND k.id = r.id)
				FROM analytics_records AS r WHERE data IS NOT NULL ORDER BY project, kind, id`),
			Entries: rowsOf(limited, tx, func(rows pgx.Rows, e *registry.Entry) error {
				var at int64
				var data *string
				err := rows.Scan(&e.Project, &e.Log, &e.ID, &e.Item, &e.By, &at, &data)
				e.At, e.Data = time.UnixMicro(at).UTC(), bytesOf(data)
				return err
			}, `SELECT project, log, id, item, by, at, data FROM analytics_entries ORDER BY project, log, id`),
			Kept: rowsOf(limited, tx, func(rows pgx.Rows, k *registry.Kept) error { return rows.Scan(&k.Name, &k.Data) },
				`SELECT name, data FROM analytics_kept ORDER BY name`),
		})
		return failed
	})
	if failed != nil {
		return failed
	}
	return s.callerError(ctx, "reading the registry", err)
}

// rowsOf returns the rows of a query.
func rowsOf[T any](ctx context.Context, tx pgx.Tx, scan func(pgx.Rows, *T) error, query string) iter.Seq2[*T, error] {
	return registry.Scanned(func() (pgx.Rows, error) { return tx.Query(ctx, query) }, pgx.Rows.Close, scan)
}

// Fill implements registry.Movable.
func (s *Store) Fill(ctx context.Context, c *registry.Contents) error {
	const doing = "filling the registry"
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
		if _, err := tx.Exec(limited, `UPDATE analytics_registry SET writes = writes + 1`); err != nil { // others wait
			return err
		}
		var used bool
		if err := tx.QueryRow(limited, `SELECT (SELECT revision FROM analytics_registry) > 0 OR EXISTS (SELECT 1 FROM analytics_records)
			OR EXISTS (SELECT 1 FROM analytics_entries) OR EXISTS (SELECT 1 FROM analytics_kept)`).Scan(&used); err != nil {
			return err
		}
		if used {
			given = registry.ErrNotEmpty
			return given
		}
		given, err = fill(limited, tx, c)
		if given != nil {
			return given
		}
		if err == nil {
			_, err = tx.Exec(limited, notifyOthers, s.channel(), "")
		}
		return err
	})
	if given != nil {
		return given
	}
	return s.callerError(ctx, doing, err)
}

// fill puts contents into the tables. It returns errors of reading them apart from those of writing.
func fill(ctx context.Context, tx pgx.Tx, c *registry.Contents) (given, err error) {
	if _, err := tx.Exec(ctx, `UPDATE analytics_registry SET revision = $1, forgotten = $1`, int64(c.Revision)); err != nil { //nolint:gosec // as in Load
		return nil, err
	}
	if _, err := tx.Exec(ctx, `DELETE FROM analytics_marks`); err != nil {
		return nil, err
	}
	if _, err := tx.Exec(ctx, `INSERT INTO analytics_marks (revision, mark) VALUES ($1, $2)`, int64(c.Revision), newMark()); err != nil { //nolint:gosec // as in Load
		return nil, err
	}
	// Unique keys wait until all records are there: a connection does one copy at a time.
	var keys [][]any
	records := copied(c.Records, func(rec *registry.Record) []any {
		for _, key := range rec.Unique {
			keys = append(keys, []any{string(rec.Kind), key, rec.Project, rec.ID})
		}
		return []any{rec.Project, string(rec.Kind), rec.ID, int64(rec.Revision), textOf(rec.Data)} //nolint:gosec // as in Load
	})
	entries := copied(c.Entries, func(e *registry.Entry) []any {
		return []any{e.Project, e.Log, e.ID, e.Item, e.By, e.At.UnixMicro(), textOf(e.Data)}
	})
	kept := copied(c.Kept, func(k *registry.Kept) []any { return []any{k.Name, k.Data} })
	for _, table := range []struct {
		name    string
		columns []string
		rows    func() *rowSource
	}{
		{"records", []string{"project", "kind", "id", "revision", "data"}, records},
		{"entries", []string{"project", "log", "id", "item", "by", "at", "data"}, entries},
		{"kept", []string{"name", "data"}, kept},
	} {
		rows := table.rows()
		_, err := tx.CopyFrom(ctx, pgx.Identifier{"analytics_" + table.name}, table.columns, rows)
		rows.stop()
		if rows.err != nil {
			return rows.err, nil
		}
		if err != nil {
			return nil, err
		}
	}
	_, err = tx.CopyFrom(ctx, pgx.Identifier{"analytics_unique_keys"}, []string{"kind", "key", "project", "id"}, pgx.CopyFromRows(keys))
	return nil, err
}

// rowSource yields values as rows to be copied.
type rowSource struct {
	next func() ([]any, error, bool)
	stop func()
	row  []any
	err  error
}

// copied returns a function that starts to read values as rows. Its caller must call stop.
func copied[T any](values iter.Seq2[*T, error], row func(*T) []any) func() *rowSource {
	return func() *rowSource {
		next, stop := iter.Pull2(values)
		return &rowSource{stop: stop, next: func() ([]any, error, bool) {
			value, err, ok := next()
			if err != nil || !ok {
				return nil, err, ok
			}
			return row(value), nil, true
		}}
	}
}

// Next implements pgx.CopyFromSource.
func (r *rowSource) Next() (ok bool) {
	r.row, r.err, ok = r.next()
	return ok && r.err == nil
}

// Values implements pgx.CopyFromSource.
func (r *rowSource) Values() ([]any, error) { return r.row, nil }

// Err implements pgx.CopyFromSource.
func (r *rowSource) Err() error { return r.err }

// Interface guard.
var _ registry.Movable = (*Store)(nil)
