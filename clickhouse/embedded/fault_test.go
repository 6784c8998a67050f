//go:build linux || darwin

package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
)

// slack is the limit for things that take a fraction of a second on an idle machine. Things that never happen, or only
// after a timeout of the driver, exceed it on any machine.
const slack = 30 * time.Second

// endless never produces a row.
const endless = "SELECT count() FROM numbers(1000000000000) WHERE NOT ignore(sipHash64(number)) GROUP BY 'x'"

// endlessParameter is endless with a parameter p, a String.
const endlessParameter = "SELECT count() FROM numbers(1000000000000) WHERE NOT ignore(sipHash64(number), {p:String}) GROUP BY 'x'"

func TestCancel(t *testing.T) {
	c := connect(t, engine(t))
	execute(t, c, "CREATE TABLE IF NOT EXISTS sink (n UInt64) ENGINE = Null")
	running := func(comment string) uint64 {
		return value[uint64](t, c, t.Context(), "SELECT count() FROM system.processes WHERE Settings['log_comment'] = {c:String}", clickhouse.Named("c", comment))
	}
	for _, tt := range []struct{ name, query, format string }{
		{"no block yet", endless, "JSONEachRow"},
		{"with a parameter", endlessParameter, "JSONEachRow"},
		{"a document, with a parameter", endlessParameter, "JSON"},
		{"while it is analyzed", "SELECT (SELECT count() FROM numbers(1000000000000) WHERE NOT ignore(sipHash64(number)))", "JSONEachRow"},
		{"between blocks", "SELECT number, sleepEachRow(0.001) FROM numbers(1000000000) SETTINGS max_block_size = 100", "JSONEachRow"},
		{"streaming", "SELECT number, toString(number) FROM numbers(1000000000000)", "JSONEachRow"},
		{"a document, no block yet", endless, "JSON"},
		{"a document that streams", "SELECT number, toString(number) FROM numbers(1000000000000)", "Parquet"},
		{"a statement without a result", "INSERT INTO sink SELECT number FROM numbers(1000000000000) WHERE NOT ignore(sipHash64(number))", "JSONEachRow"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			settings := clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"log_comment": tt.name}))
			ended := make(chan error, 1)
			go func() {
				r, err := c.QueryFormat(settings, tt.format, tt.query, clickhouse.Named("p", "x"))
				if err == nil {
					_, err = io.ReadFull(r, make([]byte, 2<<20))
					if err == nil { // the engine blocks until the result is read
						<-ctx.Done()
						_, err = io.Copy(io.Discard, r)
					}
					err = errors.Join(err, r.Close())
				}
				ended <- err
			}()
			eventually(t, "the query runs", func() bool { return running(tt.name) == 1 })
			cancel()
			eventually(t, "the query is stopped", func() bool { return running(tt.name) == 0 })
			if err := <-ended; err == nil {
				t.Error("the cancelled query ended without an error")
			}
		})
	}
}

// TestHangUp hangs up at many moments while a query starts that takes more memory than it may. Its limit must count however early that is.
func TestHangUp(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the peak of a process's memory is read from /proc")
	}
	const limit = 256 << 20
	cfg := config(t.TempDir())
	cfg.MaxQueries = 2
	e := start(t, cfg, zap.NewNop())
	c := connect(t, e)
	for n := range 300 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n%100)*100*time.Microsecond)
		limited := clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"max_memory_usage": limit}))
		r, err := c.QueryFormat(limited, "JSONEachRow", "SELECT groupArray(repeat('x', 1000000)) FROM numbers(4000)")
		if err == nil {
			err = r.Close()
		}
		cancel()
		if err == nil {
			t.Fatal("a query of 4 GB ran within 256 MiB")
		}
	}
	if got := peakMemory(t, e.PID()); got > 8*limit {
		t.Errorf("the engine took %d MiB", got>>20)
	}
}

// peakMemory returns the peak of a process's memory in bytes.
func peakMemory(t *testing.T, pid int) int64 {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(raw), "VmHWM:")
	var kib int64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

func TestKillQuery(t *testing.T) {
	c := connect(t, engine(t))
	ended := make(chan error, 1)
	go func() {
		ended <- c.Exec(clickhouse.Context(t.Context(), clickhouse.WithQueryID("to-kill"), clickhouse.WithSettings(clickhouse.Settings{"log_comment": "kill"})), endless)
	}()
	eventually(t, "the query runs", func() bool {
		return value[uint64](t, c, t.Context(), "SELECT count() FROM system.processes WHERE Settings['log_comment'] = 'kill'") == 1
	})
	err := c.Exec(clickhouse.Context(t.Context(), clickhouse.WithQueryID("to-kill")), "SELECT 1")
	if code(err) != 216 {
		t.Errorf("a second query with the id: %v, want code 216", err)
	}
	var status, id, user, query string
	if err := c.QueryRow(t.Context(), "KILL QUERY WHERE query_id = 'to-kill' SYNC").Scan(&status, &id, &user, &query); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint([]string{status, id, user, query}), fmt.Sprint([]string{"finished", "to-kill", "default", endless}); got != want {
		t.Errorf("KILL QUERY answers %s, want %s", got, want)
	}
	if err := <-ended; code(err) != 394 {
		t.Errorf("the killed query: %v, want code 394", err)
	}
	rows, err := c.Query(t.Context(), "KILL QUERY WHERE query_id = 'nobody'")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	if rows.Next() {
		t.Error("killing an unknown query returns a row")
	}
}

func TestAuthentication(t *testing.T) {
	e := engine(t)
	for _, tt := range []struct{ name, user, password string }{
		{"wrong password", "analytics", "wrong"},
		{"no password", "analytics", ""},
		{"wrong user", "default", "x"},
		{"nobody", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			options, err := clickhouse.ParseDSN(e.DSN())
			if err != nil {
				t.Fatal(err)
			}
			options.Auth.Username, options.Auth.Password = tt.user, tt.password
			c, err := clickhouse.Open(options)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			err = c.Ping(t.Context())
			var status *clickhouse.HTTPError
			if code(err) != 516 || !errors.As(err, &status) || status.StatusCode != http.StatusForbidden {
				t.Errorf("Ping: %v, want status 403 and code 516", err)
			}
		})
	}
	t.Run("the address", func(t *testing.T) {
		u, err := url.Parse(e.DSN())
		if err != nil {
			t.Fatal(err)
		}
		if u.Hostname() != "127.0.0.1" {
			t.Errorf("the engine listens on %s", u.Hostname())
		}
		password, _ := u.User.Password()
		for _, file := range []string{"cmdline", "environ"} {
			text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(e.PID()), file))
			if err == nil && strings.Contains(string(text), password) {
				t.Errorf("the child's %s contains the password", file)
			}
		}
	})
}

func TestFolderInUse(t *testing.T) {
	engine(t)
	_, err := embedded.Start(t.Context(), config(filepath.Join(shared.dir, "a folder")), zap.NewNop())
	want := fmt.Sprintf("starting the embedded engine: the data folder %s is in use by another process (pid %d): only one process at a time may use it",
		filepath.Join(shared.dir, "a folder"), engine(t).PID())
	if err == nil || err.Error() != want {
		t.Errorf("a second engine in the folder:\n%v\nwant:\n%s", err, want)
	}
}

func TestNoLibrary(t *testing.T) {
	cfg := config(t.TempDir())
	cfg.Library = filepath.Join(t.TempDir(), "libchdb.so")
	_, err := embedded.Start(t.Context(), cfg, zap.NewNop())
	want := "the embedded engine's library is not at " + cfg.Library +
		`: run "make engine", set engine_library to another one, or set clickhouse to a ClickHouse server`
	if err == nil || err.Error() != want {
		t.Errorf("Start without a library:\n%v\nwant:\n%s", err, want)
	}
	if err := os.WriteFile(cfg.Library, []byte("not a library"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = embedded.Start(t.Context(), cfg, zap.NewNop())
	if err == nil || !strings.HasPrefix(err.Error(), "starting the embedded engine: loading the engine's library "+cfg.Library) {
		t.Errorf("Start with a broken library: %v", err)
	}
}

// TestLibraryOutOfReach: the error says what to do about a library that can't be looked for or read.
func TestLibraryOutOfReach(t *testing.T) {
	const hint = ": set engine_library to another one, or set clickhouse to a ClickHouse server"
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := embedded.FindLibrary(filepath.Join(file, "libchdb.so"))
	if want := "reading the embedded engine's library: open " + file + "/libchdb.so: not a directory" + hint; err == nil || err.Error() != want {
		t.Errorf("below a file: %v\nwant: %s", err, want)
	}
	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	if _, _, err := embedded.FindLibrary(""); err == nil || !strings.HasPrefix(err.Error(), "finding the user's cache folder") || !strings.HasSuffix(err.Error(), hint) {
		t.Errorf("without a home: %v", err)
	}
}

// TestDefaultMaxQueries: the default follows the processors that this process may use, not those of the machine.
func TestDefaultMaxQueries(t *testing.T) {
	for processors, want := range map[int]int{1: 4, 3: 6} {
		before := runtime.GOMAXPROCS(processors)
		got := embedded.DefaultMaxQueries()
		runtime.GOMAXPROCS(before)
		if got != want {
			t.Errorf("with %d processors: %d, want %d", processors, got, want)
		}
	}
}

// TestRestart kills the child. It must be restarted at the same address, with the data.
func TestRestart(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	e := start(t, config(t.TempDir()), zap.New(core))
	c := connect(t, e)
	execute(t, c, "CREATE TABLE kept (n UInt64, j JSON) ENGINE = MergeTree ORDER BY n",
		`INSERT INTO kept SELECT number, '{"a": 1}' FROM numbers(100000)`)
	running := make(chan error, 1)
	go func() { running <- c.Exec(t.Context(), endless) }()
	eventually(t, "the query runs", func() bool {
		return value[uint64](t, c, t.Context(), "SELECT count() FROM system.processes") == 2
	})

	dsn, pid := e.DSN(), e.PID()
	for round := range 2 {
		embeddedtest.Signal(t, e, syscall.SIGKILL)
		if round == 0 {
			select {
			case err := <-running:
				if err == nil || code(err) != 0 {
					t.Errorf("the running query: %v, want a broken connection", err)
				}
			case <-time.After(slack):
				t.Errorf("the running query did not notice within %s", slack)
			}
		}
		eventually(t, "the service is back", func() bool {
			begun := time.Now()
			n, err := ask[uint64](c, t.Context(), "SELECT sum(j.a::UInt64) FROM kept")
			if took := time.Since(begun); took > slack {
				t.Errorf("while the child was down a query took %s", took)
			}
			if err != nil && code(err) != 0 {
				t.Errorf("while the child was down: %v, want a connection error", err)
			}
			return err == nil && n == 100000
		})
	}
	if e.DSN() != dsn || e.PID() == pid {
		t.Errorf("after the restart: DSN %s, PID %d; before: %s, %d", e.DSN(), e.PID(), dsn, pid)
	}
	if n := logs.FilterMessage("the embedded engine died; restarting it").Len(); n != 2 {
		t.Errorf("%d deaths in the log, want 2", n)
	}
}

// TestSignals: signals that a terminal or systemd sends to the whole server do not end the child, which the parent still needs.
func TestSignals(t *testing.T) {
	e := start(t, config(t.TempDir()), zap.NewNop())
	c := connect(t, e)
	pid := e.PID()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		embeddedtest.Signal(t, e, signal)
	}
	for begun := time.Now(); time.Since(begun) < time.Second; time.Sleep(20 * time.Millisecond) {
		if n, err := ask[uint8](c, t.Context(), "SELECT 1"); err != nil || n != 1 {
			t.Fatalf("after the signals: %d, %v", n, err)
		}
	}
	if e.PID() != pid {
		t.Errorf("after the signals the child is %d, before %d", e.PID(), pid)
	}
}

// TestDown prevents the child from restarting. Queries must fail at once.
func TestDown(t *testing.T) {
	dir := t.TempDir()
	cfg := config(dir)
	cfg.Library = filepath.Join(t.TempDir(), "libchdb.so")
	library, err := embedded.DefaultLibrary()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(library, cfg.Library); err != nil {
		t.Fatal(err)
	}
	core, logs := observer.New(zap.InfoLevel)
	e := start(t, cfg, zap.New(core))
	c := connect(t, e)
	execute(t, c, "CREATE TABLE kept (n UInt64) ENGINE = MergeTree ORDER BY n", "INSERT INTO kept VALUES (1)")
	if err := os.Remove(cfg.Library); err != nil {
		t.Fatal(err)
	}
	embeddedtest.Signal(t, e, syscall.SIGKILL)
	eventually(t, "a start has failed", func() bool { return logs.FilterMessage("the embedded engine failed to start").Len() > 0 })
	for range 3 {
		begun := time.Now()
		_, err := ask[uint64](c, t.Context(), "SELECT count() FROM kept")
		if took := time.Since(begun); err == nil || code(err) != 0 || took > slack {
			t.Errorf("without a child: %v after %s, want a connection error within %s", err, took, slack)
		}
	}
	if err := os.Symlink(library, cfg.Library); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the service is back", func() bool {
		n, err := ask[uint64](c, t.Context(), "SELECT count() FROM kept")
		return err == nil && n == 1
	})
}

func TestCloseLeavesNothing(t *testing.T) {
	value[uint8](t, connect(t, engine(t)), t.Context(), "SELECT 1") // starts its goroutines
	before := runtime.NumGoroutine()
	e, err := embedded.Start(t.Context(), config(t.TempDir()), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	pid := e.PID()
	if err := e.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if alive(pid) || e.PID() != 0 {
		t.Errorf("the child %d outlives Close", pid)
	}
	eventually(t, "its goroutines have ended", func() bool { return runtime.NumGoroutine() <= before })
	address := strings.TrimSuffix(strings.SplitAfter(e.DSN(), "@")[1], "/"+embedded.Database)
	if c, err := net.DialTimeout("tcp", address, time.Second); err == nil {
		_ = c.Close()
		t.Error("the socket outlives Close")
	}
}

func TestClose(t *testing.T) {
	dir := t.TempDir()
	e, err := embedded.Start(t.Context(), config(dir), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, e)
	execute(t, c, "CREATE TABLE kept (n UInt64) ENGINE = MergeTree ORDER BY n", "INSERT INTO kept VALUES (7)")
	running := make(chan error, 1)
	go func() { running <- c.Exec(t.Context(), endless) }()
	eventually(t, "the query runs", func() bool {
		return value[uint64](t, c, t.Context(), "SELECT count() FROM system.processes") == 2
	})
	pid, begun := e.PID(), time.Now()
	if err := e.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	t.Logf("Close took %s", time.Since(begun))
	if err := <-running; err == nil {
		t.Error("the running query ended without an error")
	}
	if alive(pid) {
		t.Error("the child outlives Close")
	}
	again := start(t, config(dir), zap.NewNop())
	if n := value[uint64](t, connect(t, again), t.Context(), "SELECT sum(n) FROM kept"); n != 7 {
		t.Errorf("after a clean stop: %d, want 7", n)
	}
}

// TestOrphan kills a parent. Its child must exit too.
func TestOrphan(t *testing.T) {
	cmd := exec.Command(os.Args[0], t.TempDir()) // killed below
	cmd.Env = append(os.Environ(), "EMBEDDED_TEST_PARENT=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatalf("the parent did not print its child's pid: %v", err)
	}
	if !alive(pid) {
		t.Fatal("the child does not run")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	eventually(t, "the child is gone", func() bool { return !alive(pid) })
}

// parent is the main function of the process that TestOrphan kills.
func parent() {
	cfg := config(os.Args[1])
	e, err := embedded.Start(context.Background(), cfg, zap.NewNop())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(e.PID())
	select {}
}

// alive reports whether a process runs. A zombie does not.
func alive(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err == nil {
		_, rest, _ := strings.Cut(string(text), ") ")
		return !strings.HasPrefix(rest, "Z")
	}
	return syscall.Kill(pid, 0) == nil
}

func TestChildByHand(t *testing.T) {
	cmd := exec.Command(os.Args[0], "--data-dir", t.TempDir(), "--library", "x") // ends by itself
	cmd.Env = append(os.Environ(), childEnv)
	out, err := cmd.CombinedOutput()
	if err == nil || string(out) != "this command is for the server itself and cannot be run by hand\n" {
		t.Errorf("%q, %v", out, err)
	}
}
