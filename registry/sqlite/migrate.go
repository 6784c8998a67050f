package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"embed"
	_ "embed" // the schema
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/caddy-analytics/caddy-analytics/internal/pause"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// The version of the tables. Up to version 14, each kind of record had tables of its own; old has the steps up to that.
const (
	recordsVersion = 15
	version        = recordsVersion
)

var (
	//go:embed old/*.sql
	old embed.FS
	//go:embed schema.sql
	schema string
	//go:embed convert.sql
	convert string
)

// versionTable holds the version of the tables. It has the name that earlier releases use, so that they refuse a file of this one.
const versionTable = `CREATE TABLE IF NOT EXISTS goose_db_version (
	id INTEGER PRIMARY KEY AUTOINCREMENT, version_id INTEGER NOT NULL, is_applied INTEGER NOT NULL, tstamp TIMESTAMP DEFAULT (datetime('now')))`

func init() {
	sqlite.MustRegisterDeterministicScalarFunction("rfc3339", 1, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		at, ok := args[0].(int64)
		if !ok { // NULL
			return nil, nil
		}
		return time.UnixMicro(at).UTC().Format(time.RFC3339Nano), nil
	})
	sqlite.MustRegisterDeterministicScalarFunction("id_text", 1, func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		text, _ := args[0].(string)
		return registry.IDText(text), nil
	})
}

// beforeCommit is called when a migration is done except for its commit. Tests crash here.
var beforeCommit = func() {}

// migrate upgrades the tables of the file at path, in one transaction that keeps other processes from writing. A file of an older version of the program is
// first copied to a file beside it.
func migrate(ctx context.Context, path string, write, read *sql.DB) (err error) {
	tx, err := begin(ctx, write)
	if err != nil {
		return fmt.Errorf("bringing its tables up to date: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	current, err := fileVersion(ctx, tx)
	switch {
	case err != nil:
		return fmt.Errorf("bringing its tables up to date: %w", err)
	case current > version:
		return fmt.Errorf("its tables are at version %d, and this program knows versions up to %d: a newer version of the program wrote it", current, version)
	case current == version:
		return nil
	case current > 0:
		if err := keep(ctx, read, backupPath(path, current)); err != nil {
			return fmt.Errorf("copying it before its tables are brought up to date: %w", err)
		}
		err = fromTables(ctx, tx, current)
	default:
		_, err = tx.ExecContext(ctx, schema+`INSERT INTO registry (id, revision) VALUES (1, 0)`)
	}
	if err == nil {
		_, err = tx.ExecContext(ctx, versionTable+`; INSERT INTO goose_db_version (version_id, is_applied) VALUES (?, 1)`, version)
	}
	if err == nil {
		beforeCommit()
		err = tx.Commit()
	}
	if err != nil {
		return fmt.Errorf("bringing its tables up to date: %w", err)
	}
	return nil
}

// begin begins a transaction. While others open a new file too, SQLite may at once refuse to create the log beside it, without waiting for them.
func begin(ctx context.Context, db *sql.DB) (*sql.Tx, error) {
	for began := time.Now(); ; {
		tx, err := db.BeginTx(ctx, nil)
		refused, ok := errors.AsType[*sqlite.Error](err)
		if !ok || refused.Code() != sqlite3.SQLITE_BUSY || time.Since(began) > newFileTimeout {
			return tx, err
		}
		if err := pause.For(ctx, 10*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// newFileTimeout is how long others may take to create a new file. Where SQLite does wait, it waits longer.
const newFileTimeout = 2 * time.Second

// backupPath returns the path of the copy of a file that is upgraded from a version.
func backupPath(path string, version int64) string { return fmt.Sprintf("%s.v%d", path, version) }

// fileVersion returns the version of the tables; 0 for a new file.
func fileVersion(ctx context.Context, tx rowQuerier) (int64, error) {
	var tables int
	if err := tx.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema WHERE name = 'goose_db_version'`).Scan(&tables); err != nil || tables == 0 {
		return 0, err
	}
	var current int64
	err := tx.QueryRowContext(ctx, `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied = 1`).Scan(&current)
	return current, err
}

// rowQuerier is a database, or a transaction in it.
type rowQuerier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// keep copies what is committed to a file, and syncs it. The file appears whole or not at all.
func keep(ctx context.Context, read *sql.DB, path string) error {
	unfinished := path + ".unfinished"
	if err := os.Remove(unfinished); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	conn, err := read.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // it goes back to the pool
	if _, err := conn.ExecContext(ctx, `PRAGMA query_only = 0; VACUUM INTO ?; PRAGMA query_only = 1`, unfinished); err != nil {
		return err
	}
	f, err := os.OpenFile(unfinished, os.O_RDWR, 0) //nolint:gosec // the operator says where the file is
	if err != nil {
		return err
	}
	if err := errors.Join(f.Chmod(0o600), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(unfinished, path); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// fromTables converts the tables that earlier releases wrote to records.
func fromTables(ctx context.Context, tx *sql.Tx, current int64) error {
	steps, err := old.ReadDir("old")
	if err != nil {
		return err
	}
	for _, step := range steps[min(current, int64(len(steps))):] {
		text, err := old.ReadFile("old/" + step.Name())
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, string(text)); err != nil {
			return fmt.Errorf("%s: %w", step.Name(), err)
		}
	}
	if _, err := tx.ExecContext(ctx, `ALTER TABLE registry RENAME TO old_registry;`+schema+`INSERT INTO registry (id, revision) VALUES (1, 0);`+convert); err != nil {
		return err
	}
	return addUniqueKeys(ctx, tx)
}

// addUniqueKeys adds the unique keys of all records. It fails if one of them can't be read.
func addUniqueKeys(ctx context.Context, tx *sql.Tx) error {
	const together = 500
	for last := int64(0); ; {
		records, reached, err := recordsAfter(ctx, tx, last, together)
		if err != nil || len(records) == 0 {
			return err
		}
		for i := range records {
			if records[i].Unique, err = registry.UniqueKeys(&records[i]); err != nil {
				return err
			}
		}
		if err := insertUnique(ctx, tx, records); err != nil {
			return err
		}
		last = reached
	}
}

// recordsAfter returns up to limit records in the order of the file.
func recordsAfter(ctx context.Context, tx *sql.Tx, last int64, limit int) (records []registry.Record, reached int64, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT rowid, project, kind, id, data FROM records WHERE rowid > ? ORDER BY rowid LIMIT ?`, last, limit)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = rows.Close() }() // what went wrong is in rows.Err
	for rows.Next() {
		var rec registry.Record
		if err := rows.Scan(&reached, &rec.Project, &rec.Kind, &rec.ID, &rec.Data); err != nil {
			return nil, 0, err
		}
		records = append(records, rec)
	}
	return records, reached, rows.Err()
}
