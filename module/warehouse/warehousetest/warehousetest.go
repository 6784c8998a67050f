// Package warehousetest opens a registry and a warehouse for tests.
package warehousetest

import (
	"bytes"
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/registry"
	_ "github.com/caddy-analytics/caddy-analytics/registry/sqlite"
)

// poll is how often the registry looks for writes of others: tests wait for these.
const poll = 20 * time.Millisecond

// Open opens the registry in a folder, and a warehouse that shares it, whose tables are ready. Both are closed when the test ends, after what the
// test has opened since.
func Open(tb testing.TB, dir string, config clickhouse.Config) (*registry.Registry, *warehouse.Warehouse) {
	tb.Helper()
	store, err := registry.OpenStore(tb.Context(), "sqlite:"+filepath.Join(dir, "registry.db"), dir)
	if err != nil {
		tb.Fatal(err)
	}
	return OpenOn(tb, store, config)
}

// OpenOn is Open for a registry that is kept in a store, which it closes too.
func OpenOn(tb testing.TB, store registry.Store, config clickhouse.Config) (*registry.Registry, *warehouse.Warehouse) {
	tb.Helper()
	reg, err := registry.Open(tb.Context(), store, registry.Options{Poll: poll})
	if err != nil {
		tb.Fatal(err)
	}
	closeLater(tb, reg.Close)
	wh, err := warehouse.Open(config, reg, zap.NewNop())
	if err != nil {
		tb.Fatal(err)
	}
	closeLater(tb, wh.Close)
	if _, err := wh.Prepare(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return reg, wh
}

func closeLater(tb testing.TB, closeIt func() error) {
	tb.Helper()
	tb.Cleanup(func() {
		if err := closeIt(); err != nil {
			tb.Error(err)
		}
	})
}

// Nowhere returns a warehouse whose ClickHouse does not answer, with tables that are known if a layout is given. It is closed when the test ends.
func Nowhere(tb testing.TB, layout *schema.Layout) *warehouse.Warehouse {
	tb.Helper()
	client, err := clickhouse.Open(clickhouse.Config{DSN: "http://127.0.0.1:1/default", DialTimeout: time.Second}, zap.NewNop())
	if err != nil {
		tb.Fatal(err)
	}
	wh := warehouse.With(client, layout)
	closeLater(tb, wh.Close)
	return wh
}

// Projects creates projects in an empty registry until the last of them has a number that no other test with the same counter uses, so that tests share an
// engine. It returns that number; the test may also use the n-1 before it.
func Projects(tb testing.TB, reg *registry.Registry, used *atomic.Int64, n int64) int64 {
	tb.Helper()
	last := used.Add(n)
	for {
		p, err := reg.CreateProject(tb.Context(), registry.NewProject{Name: "p", Timezone: "UTC"}, time.Now())
		if err != nil {
			tb.Fatal(err)
		}
		if p.ID >= last {
			return p.ID
		}
	}
}

// InDoubt is a store that does each write of a record whose data contain Text, and then says that the write is in doubt.
type InDoubt struct {
	registry.Store

	Text string
}

// Write writes to the store.
func (s InDoubt) Write(ctx context.Context, w *registry.Write) (uint64, error) {
	revision, err := s.Store.Write(ctx, w)
	for i := range w.Put {
		if err == nil && bytes.Contains(w.Put[i].Data, []byte(s.Text)) {
			return 0, registry.ErrInDoubt
		}
	}
	return revision, err
}
