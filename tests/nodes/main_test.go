// Package nodes runs several servers on one registry in PostgreSQL and one ClickHouse, kills each part of them at random, and checks that
// acknowledged data survives.
package nodes_test

import (
	"flag"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
	"github.com/caddy-analytics/caddy-analytics/internal/postgrestest"
)

// last is how long parts are killed. Ten minutes find more than one minute.
var last = flag.Duration("last", time.Minute, "how long TestFleet kills parts")

func TestMain(m *testing.M) {
	embeddedtest.Main(func() (int, error) { return postgrestest.Main(m), nil })
}
