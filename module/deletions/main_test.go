package deletions_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/clickhousetest"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/record"
	"github.com/caddy-analytics/caddy-analytics/module/deletions"
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

// server is a server with a project of its own: a registry, and a deleter.
type server struct {
	*deletions.Deleter
	registry  *registry.Registry
	warehouse *warehouse.Warehouse
	project   int64
	delay     time.Duration
	forgotten atomic.Int64 // how often its answers were forgotten
	ago       atomic.Int64 // how long ago it writes people, in nanoseconds
}

var projects atomic.Int64

// start prepares a server whose deleter is not running yet.
func start(t *testing.T) *server {
	t.Helper()
	reg, wh := warehousetest.Open(t, t.TempDir(), clickhouse.Config{DSN: engine.DSN()})
	return &server{registry: reg, warehouse: wh, project: warehousetest.Projects(t, reg, &projects, 1)}
}

// run starts the deleter of a server.
func (s *server) run(t *testing.T, recount func(context.Context, int64, []int64) error) {
	t.Helper()
	s.Deleter = deletions.New(deletions.Config{
		Registry: s.registry, Shards: warehouse.Only(s.warehouse), Logger: zap.NewNop(), Options: s.options, Recount: recount,
		Forget:        func(int64, time.Time) { s.forgotten.Add(1) },
		EraseCaptured: func(context.Context, string, func(int64, string) bool) error { return nil },
		EraseImports:  func(int64) error { return nil },
		Delay:         s.delay,
	})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func noRecount(context.Context, int64, []int64) error { return nil }

func (s *server) options(project int64) ingest.Options {
	return ingest.Options{Project: project, Now: time.Now().Add(-time.Duration(s.ago.Load())), Deletions: func() ingest.Deletions {
		return deletions.DeletionsOf(s.registry.Snapshot(), project)
	}}
}

// capture delivers an event of Ann.
func (s *server) capture(t *testing.T, arrived time.Time) {
	t.Helper()
	s.deliver(t, arrived, "a", "ann", `{}`)
}

// deliver delivers a captured event with properties in JSON.
func (s *server) deliver(t *testing.T, arrived time.Time, event, distinctID, properties string) {
	t.Helper()
	var parser record.Parser
	r, err := parser.Parse(fmt.Appendf(nil, `{"event":%q,"distinct_id":%q,"timestamp":"2024-03-04T10:00:00Z","uuid":%q,"properties":%s}`,
		event, distinctID, uuid.NewString(), properties))
	if err != nil {
		t.Fatal(err)
	}
	r.Arrived = arrived
	if _, err := s.warehouse.Deliver(t.Context(), s.options(s.project), []record.Record{r}); err != nil {
		t.Fatal(err)
	}
}

// ask returns the result of a query.
func (s *server) ask(t *testing.T, sql string) []string {
	t.Helper()
	return clickhousetest.Ask(t, client, s.project, sql)
}
