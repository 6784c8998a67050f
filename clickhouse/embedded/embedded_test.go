//go:build linux || darwin

package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
)

// The test binary is also the child.
const childEnv = "EMBEDDED_TEST_CHILD=1"

var shared struct {
	once   sync.Once
	engine *embedded.Engine
	dir    string
	err    error
}

func TestMain(m *testing.M) {
	if os.Getenv("EMBEDDED_TEST_CHILD") != "" {
		if err := embedded.ChildMain(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv("EMBEDDED_TEST_PARENT") != "" {
		parent()
	}
	code := m.Run()
	if shared.engine != nil {
		if err := shared.engine.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "closing the shared engine:", err)
			code = 1
		}
	}
	if shared.dir != "" {
		if err := os.RemoveAll(shared.dir); err != nil {
			fmt.Fprintln(os.Stderr, "removing the shared engine's folder:", err)
			code = 1
		}
	}
	os.Exit(code)
}

func config(dir string) embedded.Config {
	return embedded.Config{
		DataDir:   dir,
		Library:   os.Getenv("EMBEDDED_TEST_LIBRARY"),
		Command:   []string{os.Args[0]},
		Env:       []string{childEnv},
		MaxMemory: 4 << 30,
	}
}

// start starts an engine for one test.
func start(t *testing.T, cfg embedded.Config, log *zap.Logger) *embedded.Engine {
	t.Helper()
	e, err := embedded.Start(t.Context(), cfg, log)
	if err != nil {
		t.Fatalf("Start: %v", err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return e
}

// engine returns the engine shared by the tests.
func engine(tb testing.TB) *embedded.Engine {
	tb.Helper()
	shared.once.Do(func() {
		if shared.dir, shared.err = os.MkdirTemp("", "embedded"); shared.err != nil {
			return
		}
		shared.engine, shared.err = embedded.Start(context.Background(), config(filepath.Join(shared.dir, "a folder")), zap.NewNop())
	})
	if shared.err != nil {
		tb.Fatalf("Start: %v", shared.err)
	}
	return shared.engine
}

// connect opens a client for an engine.
func connect(tb testing.TB, e *embedded.Engine, change ...func(*clickhouse.Options)) driver.Conn {
	tb.Helper()
	options, err := clickhouse.ParseDSN(e.DSN())
	if err != nil {
		tb.Fatalf("ParseDSN: %v", err)
	}
	options.MaxOpenConns = 64
	options.DialTimeout = 2 * slack // to distinguish a hanging query from one that fails at once
	for _, f := range change {
		f(options)
	}
	c, err := clickhouse.Open(options)
	if err != nil {
		tb.Fatalf("Open: %v", err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// value queries one value.
func value[T any](t *testing.T, c driver.Conn, ctx context.Context, query string, args ...any) T {
	t.Helper()
	v, err := ask[T](c, ctx, query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return v
}

func ask[T any](c driver.Conn, ctx context.Context, query string, args ...any) (T, error) {
	var v T
	err := c.QueryRow(ctx, query, args...).Scan(&v)
	return v, err
}

// execute runs statements.
func execute(t *testing.T, c driver.Conn, queries ...string) {
	t.Helper()
	for _, q := range queries {
		if err := c.Exec(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

// post sends a query to the shared engine like a plain HTTP client.
func post(t *testing.T, parameters, query string) (*http.Response, error) {
	t.Helper()
	u, err := url.Parse(engine(t).DSN())
	if err != nil {
		t.Fatal(err)
	}
	u.Path, u.RawQuery = "/", parameters
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u.String(), strings.NewReader(query))
	if err != nil {
		t.Fatal(err)
	}
	return http.DefaultClient.Do(r)
}

// code returns the engine's error code in err, or 0.
func code(err error) int32 {
	if e, ok := errors.AsType[*clickhouse.Exception](err); ok {
		return e.Code
	}
	return 0
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(slack)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within %s: %s", slack, what)
		}
	}
}
