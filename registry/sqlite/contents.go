package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Contents implements registry.Movable: it begins a write, so that no other process writes, but writes nothing.
func (s *Store) Contents(ctx context.Context, read func(*registry.Contents) error) error {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("keeping others from writing: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // nothing was written
	var revision int64
	if err := tx.QueryRowContext(ctx, `SELECT revision FROM registry`).Scan(&revision); err != nil {
		return fmt.Errorf("reading the revision: %w", err)
	}
	return read(&registry.Contents{
		Revision: unsigned(revision),
		Records: rowsOf(ctx, tx, func(rows *sql.Rows, rec *registry.Record) error {
			var at int64
			var keys string
			if err := rows.Scan(&rec.Project, &rec.Kind, &rec.ID, &at, &rec.Data, &keys); err != nil {
				return err
			}
			rec.Revision = unsigned(at)
			return json.Unmarshal([]byte(keys), &rec.Unique)
		}, `SELECT project, kind, id, revision, data,
			(SELECT json_group_array(key) FROM unique_keys WHERE unique_keys.project = records.project AND unique_keys.kind = records.kind AND unique_keys.id = records.id)
			FROM records WHERE data IS NOT NULL ORDER BY project, kind, id`),
		Entries: rowsOf(ctx, tx, func(rows *sql.Rows, e *registry.Entry) error {
			var at int64
			err := rows.Scan(&e.Project, &e.Log, &e.ID, &e.Item, &e.By, &at, &e.Data)
			e.At = time.UnixMicro(at).UTC()
			return err
		}, `SELECT project, log, id, item, by, at, data FROM entries ORDER BY project, log, id`),
		Kept: s.allKept(ctx),
	})
}

// rowsOf returns the rows of a query.
func rowsOf[T any](ctx context.Context, tx *sql.Tx, scan func(*sql.Rows, *T) error, query string) iter.Seq2[*T, error] {
	return registry.Scanned(func() (*sql.Rows, error) { return tx.QueryContext(ctx, query) }, func(rows *sql.Rows) { _ = rows.Close() }, scan) // what went wrong is in rows.Err
}

// allKept returns the kept data, by name.
func (s *Store) allKept(ctx context.Context) iter.Seq2[*registry.Kept, error] {
	return func(yield func(*registry.Kept, error) bool) {
		files, err := os.ReadDir(s.locks.dir) // in the order of names
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			yield(nil, err)
			return
		}
		var names []string
		for _, f := range files {
			if name, ok := strings.CutSuffix(f.Name(), keptSuffix); ok && f.Type().IsRegular() {
				names = append(names, name)
			}
		}
		slices.Sort(names) // without the suffix, the order differs
		for _, name := range names {
			data, err := s.Kept(ctx, name)
			if err == nil && len(data) == 0 {
				continue // it is gone
			}
			if !yield(&registry.Kept{Name: name, Data: data}, err) || err != nil {
				return
			}
		}
	}
}

// Fill implements registry.Movable.
func (s *Store) Fill(ctx context.Context, c *registry.Contents) error {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("beginning to fill the registry: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	var used bool
	if err := tx.QueryRowContext(ctx, `SELECT (SELECT revision FROM registry) > 0 OR EXISTS (SELECT 1 FROM records) OR EXISTS (SELECT 1 FROM entries)`).Scan(&used); err != nil {
		return fmt.Errorf("inspecting the registry to fill: %w", err)
	}
	for _, err := range s.allKept(ctx) {
		if err != nil {
			return err
		}
		used = true
	}
	if used {
		return registry.ErrNotEmpty
	}
	if err := fill(ctx, tx, c); err != nil {
		return fmt.Errorf("filling the registry: %w", err)
	}
	for k, err := range c.Kept {
		if err == nil {
			err = s.Keep(ctx, k.Name, k.Data)
		}
		if err != nil {
			return err
		}
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("filling the registry: %w", err)
	}
	return nil
}

func fill(ctx context.Context, tx *sql.Tx, c *registry.Contents) error {
	if _, err := tx.ExecContext(ctx, `UPDATE registry SET revision = ?1, forgotten = ?1`, int64(c.Revision)); err != nil { //nolint:gosec // as in Load
		return err
	}
	put, err := tx.PrepareContext(ctx, `INSERT INTO records (project, kind, id, revision, data) VALUES (?, ?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	defer func() { _ = put.Close() }() // the transaction's end closes it too
	for rec, err := range c.Records {
		if err != nil {
			return err
		}
		if _, err := put.ExecContext(ctx, rec.Project, rec.Kind, rec.ID, int64(rec.Revision), text(rec.Data)); err != nil { //nolint:gosec // as in Load
			return err
		}
		if err := insertUnique(ctx, tx, []registry.Record{*rec}); err != nil {
			return err
		}
	}
	add, err := tx.PrepareContext(ctx, `INSERT INTO entries (project, log, id, item, by, at, data) VALUES (?, ?, ?, ?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	defer func() { _ = add.Close() }() // the transaction's end closes it too
	for e, err := range c.Entries {
		if err != nil {
			return err
		}
		if _, err := add.ExecContext(ctx, e.Project, e.Log, e.ID, e.Item, e.By, e.At.UnixMicro(), text(e.Data)); err != nil {
			return err
		}
	}
	return nil
}

// Interface guard.
var _ registry.Movable = (*Store)(nil)
