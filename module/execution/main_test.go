package execution_test

import (
	"testing"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/clickhousetest"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
)

var engine *embedded.Engine

func TestMain(m *testing.M) {
	clickhousetest.Main(m, func(e *embedded.Engine, _ *clickhouse.Client) { engine = e })
}
