package materialize_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/clickhousetest"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/ingesttest"
	"github.com/caddy-analytics/caddy-analytics/internal/eventually"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/cohorts"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/materialize"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse/warehousetest"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

var (
	engine *embedded.Engine
	client *clickhouse.Client
)

func TestMain(m *testing.M) {
	clickhousetest.Main(m, func(e *embedded.Engine, c *clickhouse.Client) { engine, client = e, c })
}

// server is a server: a registry, and a filler.
type server struct {
	*materialize.Filler
	registry *registry.Registry
	project  int64
}

// start starts a server on the registry in a folder, and uses its last project but one.
func start(t *testing.T, dir string, keep time.Duration) *server {
	t.Helper()
	return startLimited(t, dir, keep, admission.Limits{Places: 8, Project: 4, Queue: 10})
}

func startLimited(t *testing.T, dir string, keep time.Duration, limits admission.Limits) *server {
	t.Helper()
	return startChanged(t, dir, keep, limits, func(*materialize.Config) {})
}

func startChanged(t *testing.T, dir string, keep time.Duration, limits admission.Limits, change func(*materialize.Config)) *server {
	t.Helper()
	store, err := registry.OpenStore(t.Context(), "sqlite:"+filepath.Join(dir, "registry.db"), dir)
	if err != nil {
		t.Fatal(err)
	}
	return startOn(t, store, keep, limits, change)
}

func startOn(t *testing.T, store registry.Store, keep time.Duration, limits admission.Limits, change func(*materialize.Config)) *server {
	t.Helper()
	reg, wh := warehousetest.OpenOn(t, store, clickhouse.Config{DSN: engine.DSN()})
	shards, places := warehouse.Only(wh), admission.New(limits)
	compiler := &execution.Compiler{Shards: shards}
	calculator := cohorts.New(cohorts.Config{Registry: reg, Logger: zap.NewNop(), Compiler: compiler, Shards: shards, Places: places})
	config := materialize.Config{Registry: reg, Logger: zap.NewNop(), Keep: keep, Compiler: compiler, Shards: shards, Places: places, Cohorts: calculator}
	change(&config)
	s := &server{registry: reg, Filler: materialize.New(config)}
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), calculator.Close()); err != nil {
			t.Error(err)
		}
	})
	last := int64(len(reg.Snapshot().Projects()))
	if last == 0 {
		last = warehousetest.Projects(t, reg, &projects, 2)
	}
	s.project = last - 1
	return s
}

var projects atomic.Int64

// load imports events of a project.
func load(t *testing.T, project int64, names ...string) {
	t.Helper()
	var lines strings.Builder
	for _, name := range names {
		fmt.Fprintf(&lines, `{"event":%q,"distinct_id":"d","timestamp":"2024-01-01T00:00:00Z","uuid":%q}`+"\n", name, uuid.New())
	}
	options := ingest.Options{Project: project, Now: time.Now()}
	if report, err := ingest.New(client).Import(t.Context(), options, ingesttest.Lines(lines.String())); err != nil || report.Bad > 0 {
		t.Fatal(err, report)
	}
}

func hogql(text string) json.RawMessage {
	raw, _ := json.Marshal(map[string]string{"kind": "HogQLQuery", "query": text})
	return raw
}

// create adds a materialized endpoint.
func (s *server) create(t *testing.T, name, text string) *registry.Endpoint {
	t.Helper()
	e, err := s.registry.CreateEndpoint(t.Context(), registry.NewEndpoint{
		Project: s.project, Name: name, Query: hogql(text), FreshnessSeconds: 3600, Table: registry.TableUpdate{On: new(true)},
	}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s.Wake()
	return e
}

func (s *server) update(t *testing.T, name string, u registry.EndpointUpdate) {
	t.Helper()
	if _, err := s.registry.UpdateEndpoint(t.Context(), s.project, name, u, time.Now()); err != nil {
		t.Fatal(err)
	}
	s.Wake()
}

// settled waits until a version waits for no fill.
func (s *server) settled(t *testing.T, name string, version int) *registry.Table {
	t.Helper()
	var table *registry.Table
	eventually.Is(t, "no fill is due", func() bool {
		table = s.registry.Snapshot().Endpoint(s.project, name).Version(version).Table
		return table != nil && table.Pending == 0
	})
	return table
}

// rows returns the rows of a fill, in order.
func rows(t *testing.T, project int64, e *registry.Endpoint, version int, fill int64) string {
	t.Helper()
	table, err := execution.TableOf(e, e.Version(version), fill)
	if err != nil {
		t.Fatal(err)
	}
	var out clickhousetest.Rows
	q := clickhouse.Query{SQL: "SELECT * EXCEPT team_id FROM " + table.Name() + " ORDER BY ALL", Project: project, Tables: []string{table.Name()}}
	if _, err := client.Query(t.Context(), q, &out); err != nil {
		t.Fatal(err)
	}
	return strings.Join(out.Texts, "")
}

// tables returns the existing tables of an endpoint.
func tables(t *testing.T, e *registry.Endpoint) (all []clickhouse.MaterializedTable) {
	t.Helper()
	there, err := client.MaterializedTables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range there {
		if table.Endpoint.String() == e.ID {
			all = append(all, table)
		}
	}
	return all
}
