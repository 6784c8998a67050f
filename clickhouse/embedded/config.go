// Package embedded runs ClickHouse without a server: the engine as a library, in a supervised child
// process that serves ClickHouse's HTTP interface on loopback.
//
// [Start] is the parent's side: it starts the child, restarts it when it dies, and has a DSN that never
// changes. [ChildMain] is the child's side: it loads the library, opens the data folder and serves.
// For a client, the child behaves like a ClickHouse server, except:
//
//   - a query has one statement, as on a server; INTO OUTFILE, sessions (session_id), roles and
//     external tables are refused;
//   - Parquet is written in row groups of a few megabytes, one at a time, without Bloom filters and page
//     indexes, unless the query's settings change that, because the engine shares the machine with the server;
//   - Native is always sent in its plain form, whatever client_protocol_version requests; revision() in
//     the greeting of clickhouse-go is 0, which tells the driver so;
//   - system.processes has the engine's own query ids;
//     KILL QUERY WHERE query_id = '…' uses the client's ids;
//   - table functions, table engines and dictionaries that access files or the network are denied to
//     every query; the scalar function file() is not, because the library has no way to deny it.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"go.uber.org/zap"
)

// Version is the release of the engine's npm package that this module is built and tested for.
const Version = "26.7.3-stable.1"

// Database is the database in the DSN. The child creates it if it is missing.
const Database = "analytics"

// The engine's own folder in the data folder, and the one below it where ALTER TABLE … FREEZE WITH NAME puts links to parts.
const (
	enginePath   = "clickhouse"
	shadowFolder = enginePath + "/shadow"
)

// Folder returns the engine's own folder in a data folder. It has the tables in store/.
func Folder(dataDir string) string { return filepath.Join(dataDir, enginePath) }

// ShadowFolder returns the folder in which ALTER TABLE … FREEZE WITH NAME puts links to parts. It is emptied when the engine starts.
func ShadowFolder(dataDir string) string { return filepath.Join(dataDir, shadowFolder) }

// Subcommand is the argument with which Start runs this executable, unless Config.Command is set. The executable must pass the
// arguments after it to [ChildMain].
const Subcommand = "analytics-engine"

// Config configures the engine.
type Config struct {
	// The folder for the tables. It is created if missing. Only one process at a time may use it.
	DataDir string
	// The engine's shared library. Default: [DefaultLibrary].
	Library string
	// The command that calls [ChildMain]; --data-dir and --library are appended to it.
	// Default: this executable with the argument Subcommand.
	Command []string
	// Additional environment variables for the child ("NAME=value").
	Env []string
	// The maximum memory of the engine in bytes. A single query may use four fifths of it.
	// Default: half of the machine's memory.
	MaxMemory int64
	// The number of concurrent queries; further queries wait. Default: [DefaultMaxQueries].
	MaxQueries int
	// How long [Start] waits until the engine is ready. Default: 1 minute.
	StartTimeout time.Duration
	// The interval of the reads that check the engine, and the timeout of each. After three reads that time out, the child is
	// killed and restarted. Default: 5 seconds.
	WatchInterval time.Duration
	// How long a stopped query may keep running. After a twelfth of that, the query gives up its slot. After all of it, or when there are more such
	// queries than slots, the child exits and is restarted. Default: 2 minutes.
	StuckTimeout time.Duration
	// How long [Engine.Close] waits for running queries before it kills the child. Default: 10 seconds.
	StopTimeout time.Duration
}

// DefaultMaxQueries returns the default of [Config.MaxQueries]: two per processor that this process may use, at least 4. A container may have a quota of
// fewer processors than its machine has.
func DefaultMaxQueries() int { return max(2*runtime.GOMAXPROCS(0), 4) }

// DefaultLibrary returns the path where "make engine" puts the engine's library, in the user's cache folder.
func DefaultLibrary() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the user's cache folder, which has the engine's library: %w: %s", err, otherLibrary)
	}
	return filepath.Join(cache, "caddy-analytics", "engine", Version, "libchdb.so"), nil
}

// FindLibrary returns the path and the file info of the library that an engine with this Config.Library loads; empty means [DefaultLibrary]. If the
// library is missing or unreadable, the error says what to do.
func FindLibrary(configured string) (path string, info os.FileInfo, err error) {
	if path, err = LibraryPath(configured); err != nil {
		return "", nil, err
	}
	file, err := os.Open(path) //nolint:gosec // the operator says where the library is
	if err == nil {
		info, err = file.Stat()
		err = errors.Join(err, file.Close())
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", nil, fmt.Errorf("the embedded engine's library is not at %s: run \"make engine\", %s", path, otherLibrary)
	case err != nil:
		return "", nil, fmt.Errorf("reading the embedded engine's library: %w: %s", err, otherLibrary)
	}
	return path, info, nil
}

// otherLibrary says what to do about a library that can't be used.
const otherLibrary = "set engine_library to another one, or set clickhouse to a ClickHouse server"

// LibraryVersion returns the version of a library. It starts the engine in a temporary folder, so that it touches no data folder.
func LibraryVersion(ctx context.Context, cfg Config, log *zap.Logger) (version string, err error) {
	if cfg.DataDir, err = os.MkdirTemp("", "engine-version-"); err != nil {
		return "", fmt.Errorf("making a folder for the engine: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(cfg.DataDir)) }()
	engine, err := Start(ctx, cfg, log)
	if err != nil {
		return "", err
	}
	return engine.Version(), engine.Close()
}

// LibraryPath returns the absolute path of the library that an engine with this Config.Library loads. There may be none.
func LibraryPath(configured string) (string, error) {
	if configured == "" {
		return DefaultLibrary()
	}
	abs, err := filepath.Abs(configured)
	if err != nil {
		return "", fmt.Errorf("finding the engine's library: %w", err)
	}
	return abs, nil
}
