//go:build linux || darwin

package embedded

import (
	"context"
	"crypto/sha256"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// serveConfig configures the child's server.
type serveConfig struct {
	// The folder for the tables.
	DataDir string
	// The path of the engine's shared library.
	Library string
	// Where to listen. serve closes it.
	Listener net.Listener
	// The only user and its password, which must not be empty.
	User, Password string
	// As in [Config].
	MaxMemory  int64
	MaxQueries int
	// The number of processors that the engine sizes its pools for.
	Processors int
	// StuckTimeout in [Config], and the function to call after it, which ends the process.
	Stuck  time.Duration
	GiveUp func(reason string)
	// How long running queries may take to finish after the context is done. Default: 2 seconds.
	Grace time.Duration
	// Called once, when the server is ready, with the engine's version.
	Ready func(version string)
}

// serve opens the data folder and serves ClickHouse's HTTP interface until the context is done. A process
// can call it only once, because the engine cannot be restarted.
func serve(ctx context.Context, cfg serveConfig) (err error) {
	defer func() { err = errors.Join(err, ignoreClosed(cfg.Listener.Close())) }()
	if cfg.Password == "" {
		return errors.New("serving the engine: the password is empty")
	}
	unlock, err := lockFolder(cfg.DataDir)
	if err != nil {
		return err
	}
	defer unlock()
	if err := os.RemoveAll(filepath.Join(cfg.DataDir, shadowFolder)); err != nil { // left by an interrupted backup
		return fmt.Errorf("removing frozen parts: %w", err)
	}
	s, err := newServer(cfg)
	if err != nil {
		return err
	}
	defer s.close()

	// The queries' context ends after the grace period, not with ctx.
	queries, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	web := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 30 * time.Second,
		MaxHeaderBytes:    maxURI,
		BaseContext:       func(net.Listener) context.Context { return queries },
	}
	served := make(chan error, 1)
	go func() { served <- web.Serve(cfg.Listener) }()
	if cfg.Ready != nil {
		cfg.Ready(s.version)
	}
	select {
	case err := <-served:
		return fmt.Errorf("serving the engine: %w", err)
	case <-ctx.Done():
	}
	grace := cfg.Grace
	if grace == 0 {
		grace = 2 * time.Second
	}
	wait, cancel := context.WithTimeout(queries, grace)
	defer cancel()
	if err := web.Shutdown(wait); err != nil {
		stop() // cancels running queries
		if err := ignoreClosed(web.Close()); err != nil {
			return fmt.Errorf("stopping the engine: %w", err)
		}
	}
	s.queries.Lock()
	s.queries.closed = true
	s.queries.Unlock()
	s.running.Wait()
	return nil
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// server answers HTTP requests with the engine.
type server struct {
	lib     *library
	path    string // the engine's own folder
	user    [sha256.Size]byte
	key     [sha256.Size]byte
	slots   chan struct{} // has one element per running query
	anchor  *conn         // keeps the engine alive; never runs client queries
	running sync.WaitGroup

	display, version, zone string
	settings               map[string]bool // the names of all settings

	heart  heartbeatSession
	strays strays

	control struct { // a session for killing queries
		sync.Mutex
		conn *conn
	}
	serial  atomic.Uint64
	queries struct { // running queries by the client's query id
		sync.Mutex
		closed bool
		byID   map[string]*query
	}
}

// newServer starts the engine in this process.
func newServer(cfg serveConfig) (*server, error) {
	lib, err := loadLibrary(cfg.Library)
	if err != nil {
		return nil, err
	}
	s := &server{
		lib:   lib,
		path:  filepath.Join(cfg.DataDir, enginePath),
		user:  sha256.Sum256([]byte(cfg.User)),
		key:   sha256.Sum256([]byte(cfg.Password)),
		slots: make(chan struct{}, cfg.MaxQueries),
	}
	s.queries.byID = make(map[string]*query)
	s.strays = strays{obeys: cfg.Stuck / strayFraction, stuck: cfg.Stuck, most: cfg.MaxQueries, giveUp: cfg.GiveUp}
	configFile, err := writeConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("writing the engine's configuration: %w", err)
	}
	s.anchor, err = lib.open("--path="+s.path, "--config-file="+configFile)
	if err != nil {
		return nil, fmt.Errorf("starting the engine in %s: %w", s.path, err)
	}
	if err := s.learn(); err != nil {
		s.anchor.close()
		return nil, fmt.Errorf("starting the engine in %s: %w", s.path, err)
	}
	return s, nil
}

// learn creates the database and reads what the server has to know about the engine.
func (s *server) learn() error {
	if _, err := s.anchor.text("CREATE DATABASE IF NOT EXISTS "+Database+" ENGINE = Atomic", "TSV"); err != nil {
		return err
	}
	names, err := s.anchor.text("SELECT name FROM system.settings", "TSV")
	if err != nil {
		return err
	}
	s.settings = make(map[string]bool)
	for name := range strings.Lines(names) {
		s.settings[strings.TrimSuffix(name, "\n")] = true
	}
	about, err := s.anchor.text("SELECT displayName(), version(), timezone()", "TSVRaw")
	if err != nil {
		return err
	}
	fields := strings.Split(strings.TrimSuffix(about, "\n"), "\t")
	if len(fields) != 3 {
		return fmt.Errorf("the engine describes itself as %q", about)
	}
	s.display, s.version, s.zone = fields[0], fields[1], fields[2]
	if s.control.conn, err = s.lib.open("--path=" + s.path); err != nil {
		return err
	}
	return s.createHeartbeat()
}

// strayFraction is the part of Config.StuckTimeout after which a stopped query that keeps running is a stray.
const strayFraction = 12

// close stops the engine. No query may be running.
func (s *server) close() {
	s.heart.close()
	s.control.Lock()
	s.control.conn.close()
	s.control.conn = nil
	s.control.Unlock()
	s.anchor.close()
}

// lockFolder locks the data folder until unlock is called or the process ends.
func lockFolder(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the engine's data folder: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the operator's folder
	if err != nil {
		return nil, fmt.Errorf("locking the engine's data folder: %w", err)
	}
	if err := waitForLock(file); err != nil {
		holder, _ := io.ReadAll(io.LimitReader(file, 32))
		_ = file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("the data folder %s is in use by another process (%s): "+
				"only one process at a time may use it", dir, strings.TrimSpace(string(holder)))
		}
		return nil, fmt.Errorf("locking the engine's data folder: %w", err)
	}
	// The pid is only used in the message above, so errors do not matter.
	if err := file.Truncate(0); err == nil {
		_, _ = file.WriteAt([]byte("pid "+strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return func() { _ = file.Close() }, nil
}

// lockPatience is how long to wait for the previous owner of the folder to exit. The engine of a killed server is killed too, but on a
// busy machine not at once.
const lockPatience = 5 * time.Second

func waitForLock(file *os.File) error {
	for deadline := time.Now().Add(lockPatience); ; <-time.After(50 * time.Millisecond) {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(deadline) {
			return err
		}
	}
}

// The engine's server settings: few background threads, no unused caches, no log tables.
type engineXML struct {
	XMLName        xml.Name `xml:"clickhouse"`
	Users          string   `xml:"users_config"`
	Memory         int64    `xml:"max_server_memory_usage"`
	MemoryRatio    string   `xml:"max_server_memory_usage_to_ram_ratio"`
	Merges         int      `xml:"background_pool_size"`
	MergeRatio     int      `xml:"background_merges_mutations_concurrency_ratio"`
	MergeNice      int      `xml:"os_threads_nice_value_merge_mutate"`
	Schedule       int      `xml:"background_schedule_pool_size"`
	Common         int      `xml:"background_common_pool_size"`
	Move           int      `xml:"background_move_pool_size"`
	Fetches        int      `xml:"background_fetches_pool_size"`
	Distributed    int      `xml:"background_distributed_schedule_pool_size"`
	Broker         int      `xml:"background_message_broker_schedule_pool_size"`
	BufferFlush    int      `xml:"background_buffer_flush_schedule_pool_size"`
	TablesLoader   int      `xml:"tables_loader_background_pool_size"`
	MarkCache      int64    `xml:"mark_cache_size"`
	IndexMarkCache int64    `xml:"index_mark_cache_size"`
	PrimaryCache   int64    `xml:"primary_index_cache_size"`
}

// usersXML defines the only user of the engine. No query can do what is not granted to it, in particular
// READ and WRITE on FILE, URL, REMOTE, S3 and the other sources.
type usersXML struct {
	XMLName  xml.Name `xml:"clickhouse"`
	Implicit int      `xml:"profiles>default>implicit_select"`
	Insides  int      `xml:"profiles>default>allow_introspection_functions"`
	Memory   int64    `xml:"profiles>default>max_memory_usage"`
	// Writing Parquet takes several times the memory of a row group. Bloom filters take as much again, and most of the file if there
	// are many distinct values. A page index is of little use for row groups with few pages, and is kept in memory to the end of the
	// file. A dictionary that exceeds its limit is discarded, and with a small limit that happens early.
	RowGroup   int `xml:"profiles>default>output_format_parquet_row_group_size_bytes"`
	Page       int `xml:"profiles>default>output_format_parquet_data_page_size"`
	Dictionary int `xml:"profiles>default>output_format_parquet_max_dictionary_size"`
	Parallel   int `xml:"profiles>default>output_format_parquet_parallel_encoding"`
	Bloom      int `xml:"profiles>default>output_format_parquet_write_bloom_filter"`
	PageIndex  int `xml:"profiles>default>output_format_parquet_write_page_index"`

	Password string   `xml:"users>default>password"`
	Networks string   `xml:"users>default>networks>ip"`
	Profile  string   `xml:"users>default>profile"`
	Quota    string   `xml:"users>default>quota"`
	Grants   []string `xml:"users>default>grants>query"`
	Quotas   string   `xml:"quotas>default"`
}

const grants = "GRANT SHOW, SELECT, INSERT, ALTER, CREATE DATABASE, CREATE TABLE, CREATE VIEW, CREATE TEMPORARY TABLE, " +
	"DROP, TRUNCATE, OPTIMIZE, CHECK, KILL QUERY, SYSTEM DROP CACHE, SYSTEM MERGES ON *.*"

// writeConfig writes the two files that the engine reads at startup, and returns the path of the first.
func writeConfig(cfg serveConfig) (string, error) {
	engine, users := filepath.Join(cfg.DataDir, "engine.xml"), filepath.Join(cfg.DataDir, "users.xml")
	const mib = 1 << 20
	cores := cfg.Processors
	if err := writeXML(engine, engineXML{
		Users:          users,
		Memory:         cfg.MaxMemory,
		MemoryRatio:    memoryRatio(cfg.MaxMemory),
		Merges:         max(cores/2, 1),
		MergeRatio:     2,
		MergeNice:      10, // where priorities may be set
		Schedule:       max(cores, cfg.MaxQueries),
		Common:         2,
		Move:           1,
		Fetches:        1,
		Distributed:    1,
		Broker:         1,
		BufferFlush:    1,
		TablesLoader:   cores,
		MarkCache:      256 * mib,
		IndexMarkCache: 64 * mib,
		PrimaryCache:   256 * mib,
	}); err != nil {
		return "", err
	}
	return engine, writeXML(users, usersXML{
		Memory:     cfg.MaxMemory / 5 * 4,
		RowGroup:   4 * mib,
		Page:       mib / 4,
		Dictionary: 64 << 10,
		Networks:   "::/0", // the engine itself does not listen
		Profile:    "default",
		Quota:      "default",
		Grants:     []string{grants},
	})
}

// memoryRatio returns the share of the machine's memory that the engine may use. If limit is set, the share only prevents the
// engine from using more than the machine has.
func memoryRatio(limit int64) string {
	if limit > 0 {
		return "0.95"
	}
	return "0.5"
}

func writeXML(path string, doc any) error {
	text, err := xml.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o600)
}
