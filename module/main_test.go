package module

import (
	"testing"

	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
)

// TestMain lets tests start an engine.
func TestMain(m *testing.M) {
	embeddedtest.Main(func() (int, error) { return m.Run(), nil })
}
