//go:build linux || darwin

package embedded_test

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// TestHung suspends a child, so that it runs but does not answer. It must be replaced.
func TestHung(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	cfg := config(t.TempDir())
	cfg.WatchInterval = time.Second
	e := start(t, cfg, zap.New(core))
	c := connect(t, e)
	execute(t, c, "CREATE TABLE kept (n UInt64) ENGINE = MergeTree ORDER BY n", "INSERT INTO kept VALUES (7)")
	eventually(t, "the child is up", func() bool { return e.Stats().Up })
	if s := e.Stats(); s.Restarts != 0 || s.Resident < 10<<20 {
		t.Errorf("a running child: %+v", s)
	}
	pid := e.PID()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	asked := make(chan error, 1)
	go func() {
		_, err := ask[uint64](c, t.Context(), "SELECT sum(n) FROM kept")
		asked <- err
	}()
	eventually(t, "the engine is seen to be away", func() bool { return !e.Stats().Up })
	select {
	case err := <-asked:
		if code(err) != 0 { // a connection that was not accepted yet is served by the next child
			t.Errorf("a query on a hung engine: %v, want a broken connection or an answer", err)
		}
	case <-time.After(2 * slack):
		t.Fatal("a query on a hung engine hangs too")
	}
	eventually(t, "the service is back", func() bool {
		n, err := ask[uint64](c, t.Context(), "SELECT sum(n) FROM kept")
		return err == nil && n == 7
	})
	if alive(pid) {
		t.Error("the hung child is still there")
	}
	eventually(t, "the next child is up", func() bool { return e.Stats().Up })
	if s := e.Stats(); s.Restarts != 1 {
		t.Errorf("after the restart: %+v", s)
	}
	if n := logs.FilterMessage("the embedded engine hangs; killing it").Len(); n != 1 {
		t.Errorf("%d hung engines in the log, want 1", n)
	}
}

// TestBusyIsNotHung keeps every CPU and every slot busy for longer than it takes to detect a hung engine.
func TestBusyIsNotHung(t *testing.T) {
	cfg := config(t.TempDir())
	cfg.WatchInterval, cfg.MaxQueries = 2*time.Second, 4
	core, logs := observer.New(zap.InfoLevel)
	e := start(t, cfg, zap.New(core))
	c := connect(t, e)
	ctx, cancel := context.WithTimeout(t.Context(), 5*cfg.WatchInterval)
	defer cancel()
	ended := make(chan error)
	const queries = 8 // half of them run, half wait
	for range queries {
		go func() { ended <- c.Exec(ctx, endless) }()
	}
	for range queries {
		if err := <-ended; ctx.Err() == nil {
			t.Errorf("a long query ended: %v", err)
		}
	}
	if s := e.Stats(); s.Restarts != 0 {
		t.Errorf("a busy engine was restarted: %+v", s)
	}
	if n := logs.FilterMessage("the embedded engine hangs; killing it").Len(); n != 0 {
		t.Errorf("%d hung engines in the log, want none", n)
	}
}

// deaf is a query that processes one value for minutes without checking for cancellation.
const deaf = "SELECT countSubstrings(repeat('a', 1000000), concat(repeat('a', 400000), 'b'))"

// TestStray stops a query that keeps running. It must give up its slot.
func TestStray(t *testing.T) {
	cfg := config(t.TempDir())
	cfg.MaxQueries, cfg.StuckTimeout, cfg.StopTimeout = 1, 18*time.Second, slack
	e := start(t, cfg, zap.NewNop())
	c := connect(t, e)
	stopDeaf(t, c, "one")
	if n := value[uint8](t, c, t.Context(), "SELECT 1"); n != 1 {
		t.Errorf("got %d", n)
	}
	if s := e.Stats(); s.Restarts != 0 {
		t.Errorf("one query that keeps running: %+v", s)
	}
}

// TestStuck stops a query that keeps running. After a while the engine must be restarted.
func TestStuck(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	cfg := config(t.TempDir())
	cfg.StuckTimeout = 2 * time.Second
	e := start(t, cfg, zap.New(core))
	c := connect(t, e)
	pid := e.PID()
	stopDeaf(t, c, "stuck")
	eventually(t, "another child is up", func() bool { return e.PID() != 0 && e.PID() != pid })
	eventually(t, "queries work", func() bool {
		_, err := ask[uint8](c, t.Context(), "SELECT 1")
		return err == nil
	})
	lines := fmt.Sprint(logs.FilterMessage("the embedded engine died; restarting it").All())
	if !strings.Contains(lines, "a query that was stopped 2s ago keeps running") {
		t.Errorf("the log does not have the reason: %s", lines)
	}
}

// TestKillWithoutPlace kills a query that holds the last slot.
func TestKillWithoutPlace(t *testing.T) {
	cfg := config(t.TempDir())
	cfg.MaxQueries = 1
	c := connect(t, start(t, cfg, zap.NewNop()))
	ended := make(chan error, 1)
	go func() { ended <- c.Exec(clickhouse.Context(t.Context(), clickhouse.WithQueryID("last")), endless) }()
	eventually(t, "the query runs", func() bool {
		return value[uint64](t, c, t.Context(), "SELECT count() FROM system.processes WHERE query NOT LIKE '%processes%'") == 1
	})
	execute(t, c, "KILL QUERY WHERE query_id = 'last' ASYNC")
	if err := <-ended; code(err) != 394 {
		t.Errorf("the killed query: %v, want code 394", err)
	}
}

// stopDeaf starts a query that cannot be stopped, and hangs up.
func stopDeaf(t *testing.T, c clickhouse.Conn, comment string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- c.Exec(clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"log_comment": comment})), deaf)
	}()
	eventually(t, "the query runs", func() bool {
		return value[uint64](t, c, t.Context(), "SELECT count() FROM system.processes WHERE Settings['log_comment'] = {c:String}", clickhouse.Named("c", comment)) == 1
	})
	cancel()
	if err := <-ended; err == nil {
		t.Error("the query ended without an error")
	}
}
