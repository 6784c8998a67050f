package cohorts_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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

// server is a server with a project of its own: a registry, and a calculator.
type server struct {
	*cohorts.Calculator
	registry *registry.Registry
	project  int64
}

// start starts a server on the registry in a folder.
func start(t *testing.T, dir string, change func(*cohorts.Config)) *server {
	t.Helper()
	store, err := registry.OpenStore(t.Context(), "sqlite:"+filepath.Join(dir, "registry.db"), dir)
	if err != nil {
		t.Fatal(err)
	}
	return startOn(t, store, change)
}

// startOn starts a server on a registry.
func startOn(t *testing.T, store registry.Store, change func(*cohorts.Config)) *server {
	t.Helper()
	reg, wh := warehousetest.OpenOn(t, store, clickhouse.Config{DSN: engine.DSN()})
	shards := warehouse.Only(wh)
	config := cohorts.Config{
		Registry: reg, Logger: zap.NewNop(),
		Compiler: &execution.Compiler{Shards: shards}, Shards: shards, Places: admission.New(admission.Limits{Places: 8, Project: 4, Queue: 10}),
	}
	if change != nil {
		change(&config)
	}
	s := &server{Calculator: cohorts.New(config), registry: reg}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	s.project = int64(len(reg.Snapshot().Projects()))
	if s.project == 0 {
		s.project = warehousetest.Projects(t, reg, &projects, 1)
	}
	return s
}

var projects atomic.Int64

// load imports lines.
func (s *server) load(t *testing.T, lines string) {
	t.Helper()
	options := ingest.Options{Project: s.project, Now: time.Now()}
	if report, err := ingest.New(client).Import(t.Context(), options, ingesttest.Lines(lines)); err != nil || report.Bad > 0 {
		t.Fatal(err, report)
	}
}

// create adds a cohort of the people whose property plan has a value, and does not wait for its calculation.
func (s *server) create(t *testing.T, filters string) int64 {
	t.Helper()
	c, err := s.registry.CreateCohort(t.Context(), registry.NewCohort{
		Project: s.project, CohortFields: registry.CohortFields{Filters: registry.To(json.RawMessage(filters))},
	}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	s.Calculate(s.project, c.ID)
	return c.ID
}

// update changes a cohort.
func (s *server) update(t *testing.T, id int64, f registry.CohortFields) {
	t.Helper()
	if _, err := s.registry.UpdateCohort(t.Context(), s.project, id, f, time.Now()); err != nil {
		t.Fatal(err)
	}
	s.Calculate(s.project, id)
}

// settled waits until a cohort waits for no calculation.
func (s *server) settled(t *testing.T, id int64) *registry.Cohort {
	t.Helper()
	var c *registry.Cohort
	eventually.Is(t, "the cohort is calculated", func() bool {
		c = s.registry.Snapshot().Cohort(s.project, id)
		return c != nil && !c.Calculating()
	})
	return c
}

// members are the distinct ids of the members of a version of a cohort, in order.
func (s *server) members(t *testing.T, id int64, version uint64) string {
	t.Helper()
	rows := clickhousetest.Ask(t, client, s.project, fmt.Sprintf("SELECT distinct_id FROM person_distinct_id2 FINAL WHERE person_id IN ("+
		"SELECT person_id FROM cohortpeople WHERE cohort_id = %d AND version = %d) ORDER BY distinct_id", id, version))
	return strings.NewReplacer(`["`, "", `"]`, "").Replace(strings.Join(rows, " "))
}

// versions returns the versions of a cohort in ClickHouse.
func (s *server) versions(t *testing.T, id int64) string {
	t.Helper()
	return strings.Join(clickhousetest.Ask(t, client, s.project, fmt.Sprintf("SELECT DISTINCT version FROM cohortpeople WHERE cohort_id = %d ORDER BY version", id)), "")
}

// person is a condition on the property plan.
func person(values ...string) string {
	return fmt.Sprintf(`{"properties": {"type": "AND", "values": [{"type": "person", "key": "plan", "operator": "exact", "value": ["%s"]}]}}`, strings.Join(values, `", "`))
}

// within returns the condition of being in a cohort.
func within(id int64) string {
	return fmt.Sprintf(`{"properties": {"type": "AND", "values": [{"type": "cohort", "key": "id", "value": %d}]}}`, id)
}

const people = `{"type":"person","distinct_ids":["ann"],"properties":{"plan":"free"}}
{"type":"person","distinct_ids":["bob"],"properties":{"plan":"paid"}}
{"type":"person","distinct_ids":["cid"],"properties":{"plan":"paid"}}
`
