// Package embeddedtest provides an embedded engine for tests. The engine's child process is the test binary itself, so a
// package that starts one must call Main in its TestMain.
package embeddedtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
)

// childEnv is the environment variable of an engine's child process.
const childEnv = "ANALYTICS_TEST_ENGINE_CHILD"

// Main exits the test binary with the status of run. In a child process, it serves the engine instead.
func Main(run func() (status int, err error)) {
	if os.Getenv(childEnv) != "" {
		run = func() (int, error) { return 0, embedded.ChildMain(os.Args[1:]) }
	}
	status, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// Start starts an engine with its data in folder.
func Start(ctx context.Context, folder string) (*embedded.Engine, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the test binary: %w", err)
	}
	engine, err := embedded.Start(ctx, embedded.Config{DataDir: folder, Command: []string{self}, Env: []string{childEnv + "=1"}, StopTimeout: time.Minute}, zap.NewNop())
	if err != nil {
		return nil, fmt.Errorf("starting the engine (make engine downloads its library): %w", err)
	}
	return engine, nil
}

// New starts an engine of the test's own, and stops it with the test.
func New(tb testing.TB) *embedded.Engine {
	tb.Helper()
	engine, err := Start(tb.Context(), filepath.Join(tb.TempDir(), "engine"))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := engine.Close(); err != nil {
			tb.Error(err)
		}
	})
	return engine
}

// Connect opens a plain driver connection, without the product's restrictions on queries. It is closed when the test ends.
func Connect(tb testing.TB, dsn string) driver.Conn {
	tb.Helper()
	options, err := driver.ParseDSN(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	conn, err := driver.Open(options)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := conn.Close(); err != nil {
			tb.Errorf("closing the connection: %v", err)
		}
	})
	return conn
}

// Signal sends a signal to an engine's process. After a restart, the engine may answer queries a moment before its process is known.
func Signal(tb testing.TB, e *embedded.Engine, s syscall.Signal) {
	tb.Helper()
	deadline := time.Now().Add(time.Minute)
	pid := e.PID()
	for ; pid == 0; pid = e.PID() {
		if time.Now().After(deadline) { // 0 stands for the process group of the test
			tb.Error("the engine has no process")
			return
		}
		time.Sleep(time.Millisecond)
	}
	if err := syscall.Kill(pid, s); err != nil {
		tb.Error(err)
	}
}
