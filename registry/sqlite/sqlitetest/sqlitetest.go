// Package sqlitetest provides registries in SQLite that tests can use at once.
package sqlitetest

import (
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite"
)

// Open opens a new registry. It is closed when the test ends.
func Open(tb testing.TB, opts registry.Options) *registry.Registry {
	tb.Helper()
	return OpenAt(tb, Path(tb), opts)
}

// OpenAt is Open for the registry at a path, which several may share.
func OpenAt(tb testing.TB, path string, opts registry.Options) *registry.Registry {
	tb.Helper()
	store, err := sqlite.Open(tb.Context(), path)
	if err != nil {
		tb.Fatal(err)
	}
	r, err := registry.Open(tb.Context(), store, opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := r.Close(); err != nil {
			tb.Error(err)
		}
	})
	return r
}

// Path returns the path of a new registry whose tables are up to date. The tables are created once and then copied: creating them takes most of the time of a
// small test.
func Path(tb testing.TB) string {
	tb.Helper()
	raw, err := empty()
	if err != nil {
		tb.Fatal(err)
	}
	return write(tb, raw)
}

func write(tb testing.TB, raw []byte) (path string) {
	tb.Helper()
	path = filepath.Join(tb.TempDir(), sqlite.FileName)
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

//go:embed v14.db.gz
var released []byte

// Released returns the path of a registry that the release with version 14 of the tables wrote, with records of every kind and all of their fields.
func Released(tb testing.TB) string {
	tb.Helper()
	from, err := gzip.NewReader(bytes.NewReader(released))
	if err != nil {
		tb.Fatal(err)
	}
	raw, err := io.ReadAll(from)
	if err != nil {
		tb.Fatal(err)
	}
	return write(tb, raw)
}

var empty = sync.OnceValues(func() (raw []byte, err error) {
	folder, err := os.MkdirTemp("", "analytics-registry-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, sqlite.FileName)
	store, err := sqlite.Open(context.Background(), path)
	if err != nil {
		return nil, err
	}
	if err := store.Close(); err != nil {
		return nil, fmt.Errorf("closing a new registry: %w", err)
	}
	return os.ReadFile(path) //nolint:gosec // the file that was just made
})
