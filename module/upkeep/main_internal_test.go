package upkeep

import (
	"context"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/clickhousetest"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite/sqlitetest"
)

var engine *embedded.Engine

func TestMain(m *testing.M) {
	clickhousetest.Main(m, func(e *embedded.Engine, _ *clickhouse.Client) { engine = e })
}

// still returns a keeper on a new registry that does nothing by itself.
func still(t *testing.T, wh *warehouse.Warehouse) *Keeper {
	t.Helper()
	reg := sqlitetest.Open(t, registry.Options{Poll: 20 * time.Millisecond})
	return newKeeper(Config{
		Registry: reg, Shards: warehouse.Only(wh), Logger: zap.NewNop(), Forget: func(int64) {}, ForgetEndpoint: func(*registry.Endpoint) {},
		EraseCaptured: func(context.Context, string) error { return nil },
		EraseImports:  func(context.Context, int64) error { return nil },
	})
}

// connect opens a warehouse.
func connect(t *testing.T, dsn string) *warehouse.Warehouse {
	t.Helper()
	wh, err := warehouse.Open(clickhouse.Config{DSN: dsn}, nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := wh.Close(); err != nil {
			t.Error(err)
		}
	})
	return wh
}

func create(t *testing.T, k *Keeper, name string, days int) *registry.Project {
	t.Helper()
	p, err := k.Registry.CreateProject(t.Context(), registry.NewProject{Name: name, Retention: days}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return p
}
