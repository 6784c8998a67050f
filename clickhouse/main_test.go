package clickhouse_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/clickhousetest"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
)

// engine is shared by all tests of the package; each uses its own projects.
var engine *embedded.Engine

func TestMain(m *testing.M) {
	clickhousetest.Main(m, func(e *embedded.Engine, _ *clickhouse.Client) { engine = e })
}

// client opens a client on the shared engine.
func client(tb testing.TB) *clickhouse.Client {
	tb.Helper()
	return openWith(tb, clickhouse.Config{DSN: engine.DSN()})
}

type rows = clickhousetest.Rows

var (
	ask      = clickhousetest.Ask
	openWith = clickhousetest.Open
	project  = clickhousetest.Project
)

// now is the time of all imports in tests.
var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// ignoreCause compares errors without the driver's.
var ignoreCause = cmpopts.IgnoreUnexported(clickhouse.Error{})
