package ingest_test

import (
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/clickhousetest"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
)

// engine is shared by all tests of the package; each works in projects of its own.
var engine *embedded.Engine

func TestMain(m *testing.M) {
	clickhousetest.Main(m, func(e *embedded.Engine, _ *clickhouse.Client) { engine = e })
}

// client opens a client on the shared engine.
func client(tb testing.TB) *clickhouse.Client {
	tb.Helper()
	return clickhousetest.Open(tb, clickhouse.Config{DSN: engine.DSN()})
}

var (
	ask     = clickhousetest.Ask
	project = clickhousetest.Project
)

// now is the time of all imports in tests.
var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
