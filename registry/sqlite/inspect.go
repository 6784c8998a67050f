package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// inspect says what Open would do to the file at path. It only reads.
func inspect(ctx context.Context, path string) (registry.StoreState, error) {
	state := registry.StoreState{Name: path, Current: version}
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return state, nil
	}
	if err != nil {
		return state, fmt.Errorf("inspecting the registry: %w", err)
	}
	if info.Size() == 0 {
		return state, nil
	}
	found, err := versionOf(ctx, path)
	if err != nil {
		return state, fmt.Errorf("inspecting the registry %s: %w", path, err)
	}
	state.Version = int(found)
	if 0 < found && found < version {
		state.Upgrade = fmt.Sprintf("the registry's tables are brought from version %d to %d in one transaction; a copy of the file as it is now is kept at %s",
			found, version, backupPath(path, found))
	}
	return state, nil
}

// versionOf returns the version of the tables of a file.
func versionOf(ctx context.Context, path string) (int64, error) {
	options := url.Values{"mode": {"ro"}, "_busy_timeout": {busyTimeout}}
	if _, err := os.Stat(path + "-wal"); errors.Is(err, os.ErrNotExist) {
		options.Set("immutable", "1") // all is in the file, and no other file is made beside it
	}
	db, err := sql.Open("sqlite", fileURL(path, options))
	if err != nil {
		return 0, err
	}
	db.SetMaxOpenConns(1)
	found, err := fileVersion(ctx, db)
	return found, errors.Join(err, db.Close())
}
