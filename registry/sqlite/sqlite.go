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
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/caddy-analytics/caddy-analytics/internal/pause"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

const (
	// Scheme is the scheme of this store's DSNs.
	Scheme = "sqlite"
	// FileName is the name of the file in the data folder unless a DSN says otherwise.
	FileName = "registry.db"

	readers     = 5      // one of them watches
	busyTimeout = "5000" // milliseconds that a writer waits for another process
)

func init() {
	registry.RegisterStore(registry.StoreType{
		Scheme: Scheme,
		Open: func(ctx context.Context, dsn, dataDir string) (registry.Store, error) {
			path, err := Path(dsn, dataDir)
			if err != nil {
				return nil, err
			}
			return Open(ctx, path)
		},
		Inspect: func(ctx context.Context, dsn, dataDir string) (registry.StoreState, error) {
			path, err := Path(dsn, dataDir)
			if err != nil {
				return registry.StoreState{}, err
			}
			return inspect(ctx, path)
		},
		Check: func(dsn string) error {
			_, err := Path(dsn, "")
			return err
		},
	})
}

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
	locks *locks
}

// Open opens the file at path, creates it if it is missing, and upgrades its tables. A file that a newer version of this program has written is refused.
func Open(ctx context.Context, path string) (_ *Store, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return nil, fmt.Errorf("opening the registry: %w", err)
	}
	if err := create(path); err != nil {
		return nil, fmt.Errorf("opening the registry: %w", err)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil { // the locks are beside the file, by whatever name it is opened
		return nil, fmt.Errorf("opening the registry: %w", err)
	}
	s := &Store{write: connect(path, "_txlock", "immediate"), read: connect(path, "_query_only", "1"), locks: newLocks(path)}
	s.write.SetMaxOpenConns(1)
	s.read.SetMaxOpenConns(readers)
	s.read.SetMaxIdleConns(readers)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if err := migrate(ctx, path, s.write, s.read); err != nil {
		return nil, fmt.Errorf("opening the registry %s: %w", path, err)
	}
	return s, nil
}

// create creates the file and its folder, readable by nobody else. SQLite gives its side files the same permissions.
func create(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil { //nolint:gosec // the operator says where the file is
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the operator says where the file is
	if err != nil {
		return err
	}
	return f.Close()
}

func connect(path, option, value string) *sql.DB {
	options := url.Values{
		"_busy_timeout": {busyTimeout},
		"_journal_mode": {"WAL"},
		"_synchronous":  {"FULL"},
		"_foreign_keys": {"1"},
		"_defensive":    {"1"},
		"_dqs":          {"0"},
		"_pragma":       {"secure_delete(1)"}, // removed data does not stay in free pages
		option:          {value},
	}
	db, err := sql.Open("sqlite", fileURL(path, options))
	if err != nil {
		panic("BUG: the SQLite driver is not registered: " + err.Error())
	}
	return db
}

// EraseRemoved makes removed and overwritten data leave the disk: the file has no trace of it, and the write-ahead log, which has, is emptied.
func (s *Store) EraseRemoved(ctx context.Context) error {
	for tries := 0; ; tries++ {
		var busy, pages, moved int
		if err := s.write.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &pages, &moved); err != nil {
			return fmt.Errorf("emptying the log of the registry: %w", err)
		}
		if busy == 0 {
			return nil
		}
		if tries == checkpointTries {
			return errors.New("emptying the log of the registry: another process reads it")
		}
		if pause.For(ctx, time.Second) != nil {
			return ctx.Err()
		}
	}
}

// checkpointTries is how often to try again to empty the log, a second apart, while others read it.
const checkpointTries = 30

// fileURL returns the URL by which SQLite opens a file.
func fileURL(path string, options url.Values) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/…
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: options.Encode()}).String()
}

// Close closes the file.
func (s *Store) Close() error { return errors.Join(s.read.Close(), s.write.Close()) }
