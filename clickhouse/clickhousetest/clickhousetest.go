// Package clickhousetest provides an embedded engine with the product's tables, and queries of it, for tests.
package clickhousetest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
)

// Main is a TestMain whose tests share one engine. It calls use with the engine and a client of it before they run.
func Main(m *testing.M, use func(*embedded.Engine, *clickhouse.Client)) {
	embeddedtest.Main(func() (int, error) { return withEngine(m, use) })
}

func withEngine(m *testing.M, use func(*embedded.Engine, *clickhouse.Client)) (status int, err error) {
	dir, err := os.MkdirTemp("", "clickhouse-test-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	engine, err := embeddedtest.Start(context.Background(), filepath.Join(dir, "data"))
	if err != nil {
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
	use(engine, client)
	return m.Run(), nil
}

// Open opens a client that is closed when the test ends.
func Open(tb testing.TB, config clickhouse.Config) *clickhouse.Client {
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

var projects atomic.Int64

// Project returns a project that no other test uses.
func Project() int64 { return 1000 + projects.Add(1) }

// Rows keeps a result.
type Rows struct {
	Header []clickhouse.Column
	Texts  []string // each row as a JSON array
}

// Columns keeps the header.
func (r *Rows) Columns(columns []clickhouse.Column) error {
	r.Header = columns
	return nil
}

// Row keeps a row.
func (r *Rows) Row(json []byte) error {
	r.Texts = append(r.Texts, string(json))
	return nil
}

// Execute runs a statement on an engine directly, as other writers to its tables do. It waits until the rows that the statement changes are changed.
func Execute(tb testing.TB, e *embedded.Engine, sql string) {
	tb.Helper()
	options, err := driver.ParseDSN(e.DSN())
	if err != nil {
		tb.Fatal(err)
	}
	conn, err := driver.Open(options)
	if err != nil {
		tb.Fatal(err)
	}
	ctx := driver.Context(tb.Context(), driver.WithSettings(driver.Settings{"mutations_sync": 2}))
	if err := errors.Join(conn.Exec(ctx, sql), conn.Close()); err != nil {
		tb.Fatalf("%s: %v", sql, err)
	}
}

// Ask returns the rows of a query that must succeed.
func Ask(tb testing.TB, c *clickhouse.Client, project int64, sql string, params ...clickhouse.Param) []string {
	tb.Helper()
	var out Rows
	if _, err := c.Query(tb.Context(), clickhouse.Query{SQL: sql, Params: params, Project: project}, &out); err != nil {
		tb.Fatalf("%v (%v)\n%s", err, errors.Unwrap(err), sql)
	}
	return out.Texts
}
