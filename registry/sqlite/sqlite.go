// Package sqlite keeps the registry in one SQLite file, without cgo.
//
// The file is in WAL mode, so readers never wait for the writer; other processes on the same machine may share it.
// synchronous=FULL makes each commit wait for the disk: an acknowledged write outlives not only kill -9, for which NORMAL
// would do, but a power cut too. A revocation that comes undone is a security hole, and writes are rare, so their milliseconds
// don't matter.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

const (
	// Scheme is what a DSN of this store begins with.
	Scheme = "sqlite"
	// FileName is the name of the file in the data folder when no DSN says otherwise.
	FileName = "registry.db"

	readers     = 4
	busyTimeout = "5000" // milliseconds that a writer waits for another process
)

// Path returns the file that a DSN names: sqlite:PATH or sqlite://PATH; the empty DSN stands for registry.db in dataDir.
func Path(dsn, dataDir string) (string, error) {
	if dsn == "" {
		return filepath.Join(dataDir, FileName), nil
	}
	scheme, path, ok := strings.Cut(dsn, ":")
	switch {
	case !ok || scheme != Scheme:
		return "", errors.New("a registry in SQLite is given as sqlite:PATH")
	case strings.ContainsAny(path, "?#"):
		return "", errors.New("sqlite:PATH takes no options after the path")
	}
	path = strings.TrimPrefix(path, "//")
	if path == "" {
		return "", errors.New("sqlite:PATH lacks the path")
	}
	return path, nil
}

// Store is a registry.Store in a SQLite file.
type Store struct {
	write *sql.DB // one connection: SQLite has one writer at a time anyway
	read  *sql.DB
}

// Open opens the file at path, makes it where it is missing, and brings its tables up to date. A file that a newer version
// of this program has written is refused.
func Open(ctx context.Context, path string) (_ *Store, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return nil, fmt.Errorf("opening the registry: %w", err)
	}
	if err := create(path); err != nil {
		return nil, fmt.Errorf("opening the registry: %w", err)
	}
	s := &Store{write: connect(path, "_txlock", "immediate"), read: connect(path, "_query_only", "1")}
	s.write.SetMaxOpenConns(1)
	s.read.SetMaxOpenConns(readers)
	s.read.SetMaxIdleConns(readers)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if err := migrate(ctx, s.write); err != nil {
		return nil, fmt.Errorf("opening the registry %s: %w", path, err)
	}
	return s, nil
}

// create makes the file, and its folder, readable by nobody else. SQLite gives its side files the same permissions.
func create(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the operator says where the file is
	if err != nil {
		return err
	}
	return f.Close()
}

func connect(path, option, value string) *sql.DB {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/…
	}
	options := url.Values{
		"_busy_timeout": {busyTimeout},
		"_journal_mode": {"WAL"},
		"_synchronous":  {"FULL"},
		"_foreign_keys": {"1"},
		"_defensive":    {"1"},
		"_dqs":          {"0"},
		option:          {value},
	}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: options.Encode()}).String())
	if err != nil {
		panic("BUG: the SQLite driver is not registered: " + err.Error())
	}
	return db
}

// Close closes the file.
func (s *Store) Close() error { return errors.Join(s.read.Close(), s.write.Close()) }

// Revision returns the number of the last write that changed something.
func (s *Store) Revision(ctx context.Context) (uint64, error) {
	var revision int64
	if err := s.read.QueryRowContext(ctx, `SELECT revision FROM registry`).Scan(&revision); err != nil {
		return 0, fmt.Errorf("reading the revision: %w", err)
	}
	return unsigned(revision), nil
}

// Write runs fn in one transaction, alone among the writers of all processes.
func (s *Store) Write(ctx context.Context, fn func(registry.Tx) error) (uint64, error) {
	sqlTx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("beginning a write: %w", err)
	}
	defer func() { _ = sqlTx.Rollback() }() // after a commit it does nothing; before one, the first error is the one to tell
	t := &tx{sql: sqlTx, changed: make(map[int64]bool)}
	if err := fn(t); err != nil {
		return 0, err
	}
	var revision uint64
	switch {
	case len(t.changed) > 0:
		if revision, err = t.stamp(ctx); err != nil {
			return 0, err
		}
	case !t.wrote:
		return 0, nil
	}
	if err := sqlTx.Commit(); err != nil {
		return 0, fmt.Errorf("committing a write: %w", err)
	}
	return revision, nil
}

// unsigned turns a revision as SQLite holds it into what the registry counts in.
func unsigned(revision int64) uint64 {
	if revision < 0 {
		return 0
	}
	return uint64(revision)
}
