package values_test

import (
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/module/values"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse/warehousetest"
	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/registry/sqlite/sqlitetest"
)

// TestPanics: a project whose probe panics does not stop the probing of others.
func TestPanics(t *testing.T) {
	reg := sqlitetest.Open(t, registry.Options{})
	wh := warehousetest.Nowhere(t, schema.NativeLayout())
	var all, probed []int64
	for range 2 {
		p, err := reg.CreateProject(t.Context(), registry.NewProject{Name: "p"}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if err := reg.SetProperty(t.Context(), p.ID, registry.PropertyDefinition{Scope: registry.EventProperty, Name: "a", Type: registry.PropertyString}); err != nil {
			t.Fatal(err)
		}
		all = append(all, p.ID)
	}
	prober := values.New(values.Config{
		Registry: reg, Shards: warehouse.Only(wh), Logger: zap.NewNop(),
		Options: func(_ *registry.Snapshot, project int64) ingest.Options {
			probed = append(probed, project)
			panic("broken")
		},
	})
	defer func() {
		if err := prober.Close(); err != nil {
			t.Error(err)
		}
	}()
	if err := prober.Round(t.Context()); err == nil || !slices.Equal(probed, all) {
		t.Errorf("probed were %v, want %v; the error is %v", probed, all, err)
	}
}
