package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// remembered is for how many revisions removed records are remembered.
const remembered = 10_000

// Revision returns the number of the last write that put a record. There are no marks, because an open file is not set back.
func (s *Store) Revision(ctx context.Context) (revision uint64, mark int64, err error) {
	var found int64
	if err := s.read.QueryRowContext(ctx, `SELECT revision FROM registry`).Scan(&found); err != nil {
		return 0, 0, fmt.Errorf("reading the revision: %w", err)
	}
	return unsigned(found), 0, nil
}

// Load returns the records that were put after a revision.
func (s *Store) Load(ctx context.Context, since uint64) (*registry.Changes, error) {
	tx, err := s.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}) // one moment for all that follows
	if err != nil {
		return nil, fmt.Errorf("beginning to read: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // nothing was written
	var revision, forgotten int64
	if err := tx.QueryRowContext(ctx, `SELECT revision, forgotten FROM registry`).Scan(&revision, &forgotten); err != nil {
		return nil, fmt.Errorf("reading the revision: %w", err)
	}
	changes := &registry.Changes{Revision: unsigned(revision), Whole: since == 0 || since > unsigned(revision) || since < unsigned(forgotten)}
	query, args := `SELECT project, kind, id, revision, data FROM records WHERE revision > ?`, []any{int64(since)} //nolint:gosec // it comes from an INTEGER column
	if changes.Whole {
		query, args = `SELECT project, kind, id, revision, data FROM records WHERE data IS NOT NULL`, nil
	}
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("reading records: %w", err)
	}
	defer func() { _ = rows.Close() }() // what went wrong is in rows.Err
	for rows.Next() {
		var rec registry.Record
		var at int64
		if err := rows.Scan(&rec.Project, &rec.Kind, &rec.ID, &at, &rec.Data); err != nil {
			return nil, fmt.Errorf("reading records: %w", err)
		}
		rec.Revision = unsigned(at)
		changes.Records = append(changes.Records, rec)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("reading records: %w", err)
	}
	return changes, nil
}

// Write does all of w in one transaction, alone among the writers of all processes.
func (s *Store) Write(ctx context.Context, w *registry.Write) (revision uint64, err error) {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("beginning a write: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing; before one, the first error is the one to report
	defer func() { err = writeError(err) }()
	for _, e := range w.Expect {
		if err := expect(ctx, tx, e); err != nil {
			return 0, err
		}
	}
	if len(w.Put) > 0 {
		if revision, err = put(ctx, tx, w.Put); err != nil {
			return 0, err
		}
	}
	if err := log(ctx, tx, w); err != nil {
		return 0, fmt.Errorf("writing to a log: %w", err)
	}
	if err := tx.Commit(); err != nil {
		return 0, fmt.Errorf("committing a write: %w", err)
	}
	return revision, nil
}

// writeError returns an error of a write for callers: ErrDiskFull if the disk is full.
func writeError(err error) error {
	if full, ok := errors.AsType[*sqlite.Error](err); ok && full.Code() == sqlite3.SQLITE_FULL {
		return fmt.Errorf("%w: %w", registry.ErrDiskFull, err)
	}
	return err
}

func expect(ctx context.Context, tx *sql.Tx, e registry.Expectation) error {
	query, args := `SELECT (SELECT forgotten FROM registry) > ?1 OR EXISTS (SELECT 1 FROM records WHERE revision > ?1 AND project = ?2`, []any{int64(e.Revision), e.Project} //nolint:gosec // as in Load
	if e.Kind != "" {
		query, args = query+` AND kind = ?3`, append(args, e.Kind)
		if e.One {
			query, args = query+` AND id = ?4`, append(args, e.ID)
		}
	}
	var later bool
	if err := tx.QueryRowContext(ctx, query+`)`, args...).Scan(&later); err != nil {
		return fmt.Errorf("looking for other writes: %w", err)
	}
	if later {
		return registry.ErrStale
	}
	return nil
}

// put puts records under the next revision.
func put(ctx context.Context, tx *sql.Tx, records []registry.Record) (uint64, error) {
	var revision int64
	if err := tx.QueryRowContext(ctx, `UPDATE registry SET revision = revision + 1 RETURNING revision`).Scan(&revision); err != nil {
		return 0, fmt.Errorf("counting the revision up: %w", err)
	}
	removes := false
	err := each(ctx, tx, `INSERT INTO records (project, kind, id, revision, data) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET revision = excluded.revision, data = excluded.data`, records, func(rec *registry.Record, do func(...any) error) error {
		removes = removes || rec.Data == nil
		return do(rec.Project, rec.Kind, rec.ID, revision, text(rec.Data))
	})
	if err != nil {
		return 0, fmt.Errorf("putting a record: %w", err)
	}
	err = each(ctx, tx, `DELETE FROM unique_keys WHERE project = ? AND kind = ? AND id = ?`, records, func(rec *registry.Record, do func(...any) error) error {
		return do(rec.Project, rec.Kind, rec.ID)
	})
	if err != nil {
		return 0, fmt.Errorf("removing unique keys: %w", err)
	}
	if err := insertUnique(ctx, tx, records); err != nil {
		return 0, err
	}
	if removes && revision > remembered {
		if _, err := tx.ExecContext(ctx, `DELETE FROM records WHERE data IS NULL AND revision <= ?1; UPDATE registry SET forgotten = max(forgotten, ?1)`, revision-remembered); err != nil {
			return 0, fmt.Errorf("forgetting removed records: %w", err)
		}
	}
	return unsigned(revision), nil
}

func insertUnique(ctx context.Context, tx *sql.Tx, records []registry.Record) error {
	return each(ctx, tx, `INSERT INTO unique_keys (kind, key, project, id) VALUES (?, ?, ?, ?)`, records, func(rec *registry.Record, do func(...any) error) error {
		if rec.Data == nil {
			return nil
		}
		for _, key := range rec.Unique {
			err := do(rec.Kind, key, rec.Project, rec.ID)
			if broken, ok := errors.AsType[*sqlite.Error](err); ok && broken.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY {
				return &registry.ConflictError{Kind: rec.Kind, Key: key}
			}
			if err != nil {
				return fmt.Errorf("adding a unique key: %w", err)
			}
		}
		return nil
	})
}

// each calls row for each value, with a function that executes a statement.
func each[T any](ctx context.Context, tx *sql.Tx, statement string, values []T, row func(value *T, do func(args ...any) error) error) error {
	if len(values) == 0 {
		return nil
	}
	prepared, err := tx.PrepareContext(ctx, statement)
	if err != nil {
		return err
	}
	defer func() { _ = prepared.Close() }() // the transaction's end closes it too
	do := func(args ...any) error {
		_, err := prepared.ExecContext(ctx, args...)
		return err
	}
	for i := range values {
		if err := row(&values[i], do); err != nil {
			return err
		}
	}
	return nil
}

// log changes logs as w says.
func log(ctx context.Context, tx *sql.Tx, w *registry.Write) error {
	err := each(ctx, tx, `INSERT INTO entries (project, log, id, item, by, at, data) VALUES (?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET item = excluded.item, by = excluded.by, at = excluded.at, data = excluded.data WHERE at <= excluded.at`,
		w.Append, func(e *registry.Entry, do func(...any) error) error {
			return do(e.Project, e.Log, e.ID, e.Item, e.By, e.At.UnixMicro(), text(e.Data))
		})
	if err != nil {
		return err
	}
	err = each(ctx, tx, `DELETE FROM entries WHERE project = ?1 AND log = ?2 AND iif(?3 <> '', item = ?3, by = ?4)`,
		w.Forget, func(f *registry.Forgotten, do func(...any) error) error { return do(f.Project, f.Log, f.Item, f.By) })
	if err != nil {
		return err
	}
	for _, b := range w.Bounds {
		if err := bound(ctx, tx, b); err != nil {
			return err
		}
	}
	return nil
}

// bound cuts a log that exceeds its bound.
func bound(ctx context.Context, tx *sql.Tx, b registry.Bound) error {
	var beyond bool
	err := tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM logs WHERE project = ? AND log = ? AND (entries > ? OR bytes > ?))`,
		b.Project, b.Log, b.Entries, b.Bytes).Scan(&beyond)
	if err != nil || !beyond {
		return err
	}
	_, err = tx.ExecContext(ctx, `DELETE FROM entries WHERE rowid IN (
			SELECT entry FROM (
				SELECT rowid AS entry, row_number() OVER latest AS place, sum(coalesce(octet_length(data), 0)) OVER latest AS taken
				FROM entries WHERE project = ?1 AND log = ?2 WINDOW latest AS (ORDER BY at DESC, id DESC)
			) WHERE place > ?3 * 9 / 10 OR taken > ?4 * 9 / 10)`, b.Project, b.Log, b.Entries, b.Bytes)
	return err
}

// ForgetProject removes the logs of a project, and the names of its removed records. A process that has not read of their removal yet reads all records again.
func (s *Store) ForgetProject(ctx context.Context, project int64) error {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("beginning to forget a project: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	for _, statement := range []string{
		`DELETE FROM entries WHERE project = ?1`,
		`DELETE FROM logs WHERE project = ?1`,
		`UPDATE registry SET forgotten = max(forgotten, (SELECT coalesce(max(revision), 0) FROM records WHERE project = ?1 AND data IS NULL))`,
		`DELETE FROM records WHERE project = ?1 AND data IS NULL`,
	} {
		if _, err := tx.ExecContext(ctx, statement, project); err != nil {
			return fmt.Errorf("forgetting project %d: %w", project, err)
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("forgetting project %d: %w", project, err)
	}
	return nil
}

// Entries returns a part of a log, latest first.
func (s *Store) Entries(ctx context.Context, project int64, log string, page registry.EntryPage) (entries []registry.Entry, total int, err error) {
	index, where, args := "entries_at", ` WHERE project = ? AND log = ? AND at >= ?`, []any{project, log, page.Since.UnixMicro()}
	if page.By != "" {
		index, where, args = "entries_by", where+` AND by = ?`, append(args, page.By)
	}
	switch {
	case len(page.Items) == 1:
		index, where, args = "entries_item", where+` AND item = ?`, append(args, page.Items[0])
	case page.Items != nil:
		items, err := json.Marshal(page.Items)
		if err != nil {
			return nil, 0, fmt.Errorf("reading a log: %w", err)
		}
		index, where, args = "entries_item", where+` AND item IN (SELECT value FROM json_each(?))`, append(args, string(items))
	}
	// Without this, SQLite goes through the whole log to find some items in the order of time.
	where = ` FROM entries INDEXED BY ` + index + where
	part := ` ORDER BY at DESC, id DESC`
	if page.Limit > 0 {
		if err := s.read.QueryRowContext(ctx, `SELECT count(*)`+where, args...).Scan(&total); err != nil {
			return nil, 0, fmt.Errorf("reading a log: %w", err)
		}
		part, args = part+` LIMIT ? OFFSET ?`, append(args, page.Limit, page.Offset)
	}
	rows, err := s.read.QueryContext(ctx, `SELECT id, item, by, at, data`+where+part, args...) //nolint:gosec // the parts are constants
	if err != nil {
		return nil, 0, fmt.Errorf("reading a log: %w", err)
	}
	defer func() { _ = rows.Close() }() // what went wrong is in rows.Err
	for rows.Next() {
		e := registry.Entry{Project: project, Log: log}
		var at int64
		if err := rows.Scan(&e.ID, &e.Item, &e.By, &at, &e.Data); err != nil {
			return nil, 0, fmt.Errorf("reading a log: %w", err)
		}
		e.At = time.UnixMicro(at).UTC()
		entries = append(entries, e)
	}
	if err := rows.Err(); err != nil {
		return nil, 0, fmt.Errorf("reading a log: %w", err)
	}
	return entries, max(total, len(entries)), nil
}

// watchEvery is how often Watch checks whether another process wrote. A check takes microseconds.
const watchEvery = 200 * time.Millisecond

// Watch calls changed after another connection has written to the file, until ctx ends.
func (s *Store) Watch(ctx context.Context, changed func()) error {
	conn, err := s.read.Conn(ctx)
	if err != nil {
		return fmt.Errorf("watching the file: %w", err)
	}
	defer func() { _ = conn.Close() }() // it goes back to the pool
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for before := int64(0); ; {
		var now int64
		if err := conn.QueryRowContext(ctx, `PRAGMA data_version`).Scan(&now); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("watching the file: %w", err)
		}
		if before != 0 && now != before {
			changed()
		}
		before = now
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// text returns JSON as it is stored; nil becomes NULL.
func text(data []byte) sql.NullString {
	return sql.NullString{String: string(data), Valid: data != nil}
}

// unsigned converts a revision of SQLite to a revision of the registry.
func unsigned(revision int64) uint64 {
	if revision < 0 {
		return 0
	}
	return uint64(revision)
}
