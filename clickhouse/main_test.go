package clickhouse_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
)

// engine is shared by all tests of the package; each uses its own projects.
var engine *embedded.Engine

func TestMain(m *testing.M) {
	embeddedtest.Main(func() (int, error) { return withEngine(m) })
}

func withEngine(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "clickhouse-test-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if engine, err = embeddedtest.Start(context.Background(), filepath.Join(dir, "data")); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	client, err := clickhouse.Open(clickhouse.Config{DSN: engine.DSN()}, zap.NewNop())
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	if err := client.Migrate(context.Background()); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// client opens a client on the shared engine.
func client(tb testing.TB) *clickhouse.Client {
	tb.Helper()
	return openWith(tb, clickhouse.Config{DSN: engine.DSN()})
}

var projects atomic.Int64

// project returns a project that no other test uses.
func project() int64 { return 1000 + projects.Add(1) }

// now is the time of all imports in tests.
var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// rows keeps a result.
type rows struct {
	columns []clickhouse.Column
	rows    []string
}

func (r *rows) Columns(columns []clickhouse.Column) error {
	r.columns = columns
	return nil
}

func (r *rows) Row(json []byte) error {
	r.rows = append(r.rows, string(json))
	return nil
}

// ask runs a query that must succeed.
func ask(tb testing.TB, c *clickhouse.Client, project int64, sql string, params ...clickhouse.Param) []string {
	tb.Helper()
	var out rows
	if _, err := c.Query(tb.Context(), clickhouse.Query{SQL: sql, Params: params, Project: project}, &out); err != nil {
		tb.Fatalf("%v (%v)\n%s", err, errors.Unwrap(err), sql)
	}
	return out.rows
}

// openWith opens a client with the test's own configuration.
func openWith(tb testing.TB, config clickhouse.Config) *clickhouse.Client {
	tb.Helper()
	c, err := clickhouse.Open(config, zap.NewNop())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			tb.Error(err)
		}
	})
	return c
}

// ignoreCause compares errors without the driver's.
var ignoreCause = cmpopts.IgnoreUnexported(clickhouse.Error{})
