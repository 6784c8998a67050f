package warehouse_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/clickhousetest"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse/warehousetest"
	"github.com/caddy-analytics/caddy-analytics/physical"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// openShards opens the main shard and the named ones, on servers that do not exist.
func openShards(t *testing.T, on map[int64]string, names ...string) *warehouse.Shards {
	t.Helper()
	others := map[string]string{}
	for _, name := range names {
		others[name] = "clickhouse://127.0.0.1:1"
	}
	s, err := warehouse.OpenShards(warehouse.ShardsConfig{
		Main: clickhouse.Config{DSN: "clickhouse://127.0.0.1:1"}, Others: others, Of: func(project int64) string { return on[project] }, Logger: zap.NewNop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestShardOfProject: a project is on its shard and on no other, even if the config does not name it.
func TestShardOfProject(t *testing.T) {
	t.Parallel()
	s := openShards(t, map[int64]string{2: "east", 3: "west", 4: "north", 5: "north"}, "west", "east")
	if got := s.Names(); !slices.Equal(got, []string{"east", "west"}) {
		t.Errorf("the names are %v", got)
	}
	all := s.All()
	if len(all) != 3 || all[0] != s.Main() || !s.Several() {
		t.Fatalf("there are %d shards", len(all))
	}
	for project, want := range map[int64]*warehouse.Warehouse{1: all[0], 2: all[1], 3: all[2], 9: all[0]} {
		if got := s.Of(project); got != want {
			t.Errorf("project %d is on another shard", project)
		}
	}
	lost := s.Of(4)
	if slices.Contains(all, lost) || lost != s.Of(5) {
		t.Error("the projects of a shard without a server are on one that has some")
	}
	_, err := lost.Layout(t.Context())
	if e, ok := errors.AsType[*clickhouse.Error](err); !ok || e.Kind != clickhouse.Unavailable {
		t.Errorf("a shard without a server says %v", err)
	}
	if s.Named("") != all[0] || s.Named("west") != all[2] || s.Named("north") != nil {
		t.Error("a name is that of another shard")
	}
}

// TestChangesOfReload: a warehouse knows what another one on the same ClickHouse changes, as after a reload that changes a limit. One on another
// ClickHouse has changes of its own.
func TestChangesOfReload(t *testing.T) {
	common := warehouse.NewCommon()
	reg, _ := warehousetest.Open(t, t.TempDir(), clickhouse.Config{DSN: engine.DSN()})
	places := admission.New(admission.Limits{Places: 8, Project: 4, Queue: 10})
	open := func(dsn string) *house {
		t.Helper()
		s, err := warehouse.OpenShards(warehouse.ShardsConfig{
			Main: clickhouse.Config{DSN: dsn, Embedded: true}, Shared: reg, Common: common, Of: func(int64) string { return "" }, Logger: zap.NewNop(),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return &house{s.Main(), places, 0}
	}
	before, after, elsewhere := open(engine.DSN()), open(engine.DSN()), open("http://127.0.0.1:1/default")
	project, ofEvents := clickhousetest.Project(), schema.Reads{Tables: []string{physical.Events}}
	before.project = project
	version := func(h *house) uint64 {
		t.Helper()
		data, err := h.Data(t.Context(), nil, project, ofEvents)
		if err != nil {
			t.Fatal(err)
		}
		v, ok := data.Version(ofEvents, time.Time{}, time.Time{})
		if !ok {
			t.Fatal("the version is unknown")
		}
		return v
	}
	was, wasElsewhere := version(after), version(elsewhere)
	before.load(t, event("a", "2024-01-01T00:00:00Z"))
	if got := version(after); got == was {
		t.Errorf("the version is still %d", got)
	}
	if got := version(elsewhere); got != wasElsewhere {
		t.Errorf("on another ClickHouse the version was %d and is %d", wasElsewhere, got)
	}
}

// TestEmptiest is where new projects go: to the shard with the fewest.
func TestEmptiest(t *testing.T) {
	t.Parallel()
	s := openShards(t, nil, "east", "west")
	var projects []*registry.Project
	for _, want := range []string{"", "east", "west", "", "east", "west", ""} {
		got := s.Emptiest(projects)
		if got != want {
			t.Fatalf("with %d projects the next one goes to %q, want %q", len(projects), got, want)
		}
		projects = append(projects, &registry.Project{Shard: got})
	}
	if got := openShards(t, nil).Emptiest(projects); got != "" {
		t.Errorf("without further shards a project goes to %q", got)
	}
}
