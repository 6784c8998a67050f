// Package embedded runs ClickHouse without a server: the engine as a library, in a supervised child
// process that answers ClickHouse's HTTP interface on loopback.
//
// [Start] is the parent's side: it starts the child, restarts it when it dies, and gives a DSN that stays
// the same. [ChildMain] is the child's side: it loads the library, opens the data folder and serves.
// A client of the DSN cannot tell the child from a ClickHouse server, but for what this list says:
//
//   - a query may carry one statement, as on a server; INTO OUTFILE, sessions (session_id), roles and
//     external tables are refused;
//   - Parquet is written in row groups of a few megabytes, one at a time, without Bloom filters and an index
//     of pages, unless the settings of the query say otherwise: the engine shares the machine with the server;
//   - Native is always sent in its plain form, whatever client_protocol_version asks for, and revision()
//     in the greeting of clickhouse-go is 0, which is how that driver is told so;
//   - system.processes shows the engine's own query ids, and each text behind a /* number */ mark;
//     KILL QUERY WHERE query_id = '…' knows the client's ids;
//   - table functions, table engines and dictionaries that reach files or the network are denied to
//     every query; the scalar function file() is not, because the library offers no way to deny it.
package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// Version is the release of the engine's npm package that this module is made and tested for.
const Version = "26.7.3-stable.1"

// Database is the database that the DSN names. The child creates it when it is missing.
const Database = "analytics"

// Subcommand is the argument that the engine starts this executable with unless Config.Command says otherwise. The executable hands the
// arguments after it to [ChildMain].
const Subcommand = "analytics-engine"

// Config says how to run the engine.
type Config struct {
	// The folder that holds the tables. It is created when missing and belongs to one process at a time.
	DataDir string
	// The engine's shared library. Default: [DefaultLibrary].
	Library string
	// The command that ends in [ChildMain]; --data-dir and --library are added to it.
	// Default: this executable with the argument Subcommand.
	Command []string
	// Environment variables for the child, beside the few that it always gets ("NAME=value").
	Env []string
	// The most memory that the engine may use, in bytes; a single query may use four fifths of it.
	// Default: half of the machine's memory.
	MaxMemory int64
	// How many queries run at a time; more of them wait in line. Default: two for each CPU, at least 4.
	MaxQueries int
	// How long [Start] waits for the first answer. Default: 1 minute.
	StartTimeout time.Duration
	// How often the engine is asked for a row of a table, and how long it may take to answer. After three reads without an answer the
	// child is killed and another is started. Default: 5 seconds.
	WatchInterval time.Duration
	// How long a query that was stopped may go on. After a twelfth of it the query gives back its place; after all of it the child
	// ends, to be started again, as it does when more queries than there are places went on that way. Default: 2 minutes.
	StuckTimeout time.Duration
	// How long [Engine.Close] waits for running queries before it kills the child. Default: 10 seconds.
	StopTimeout time.Duration
}

// DefaultMaxQueries is how many queries the engine runs at a time on this machine, unless [Config.MaxQueries] says otherwise.
func DefaultMaxQueries() int { return max(2*runtime.NumCPU(), 4) }

// DefaultLibrary is where "make engine" puts the engine's library: the user's cache folder.
func DefaultLibrary() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the user's cache folder: %w", err)
	}
	return filepath.Join(cache, "caddy-analytics", "engine", Version, "libchdb.so"), nil
}

// findLibrary gives the absolute path of the library to load, or an error that says how to get it.
func findLibrary(path string) (string, error) {
	if path == "" {
		def, err := DefaultLibrary()
		if err != nil {
			return "", err
		}
		path = def
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("finding the engine's library: %w", err)
	}
	if _, err := os.Stat(abs); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("the embedded engine's library is not at %s: run \"make engine\", "+
				"name another with engine_library, or point clickhouse at a server", abs)
		}
		return "", fmt.Errorf("finding the engine's library: %w", err)
	}
	return abs, nil
}
