package materialize_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/internal/eventually"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/materialize"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse/warehousetest"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

const byEvent = "select event, count() as n from events group by event"

// TestFill: a table has the rows of the project's query, is refilled when the query changes, and is dropped when it is no longer wanted.
func TestFill(t *testing.T) {
	s := start(t, t.TempDir(), 50*time.Millisecond)
	load(t, s.project, "a", "a", "b")
	load(t, s.project+1, "c")
	e := s.create(t, "fill", byEvent)
	first := s.settled(t, "fill", 1)
	if first.Fill == 0 || first.Rows != 2 || first.LastError != "" || first.AsOf.IsZero() || first.Of == "" {
		t.Fatalf("the table is %+v", first)
	}
	if got := rows(t, s.project, e, 1, first.Fill); got != `["a", 2]["b", 1]` {
		t.Errorf("the rows are %s", got)
	}
	if got := rows(t, s.project+1, e, 1, first.Fill); got != "" {
		t.Errorf("another project reads %s", got)
	}

	load(t, s.project, "b")
	s.update(t, "fill", registry.EndpointUpdate{Table: registry.TableUpdate{On: new(false)}})
	eventually.Is(t, "its table is gone", func() bool { return len(tables(t, e)) == 0 })
	s.update(t, "fill", registry.EndpointUpdate{Table: registry.TableUpdate{On: new(true)}})
	again := s.settled(t, "fill", 1)
	if got := rows(t, s.project, e, 1, again.Fill); got != `["a", 2]["b", 2]` {
		t.Errorf("after another fill the rows are %s", got)
	}

	s.update(t, "fill", registry.EndpointUpdate{Query: hogql("select event from events")})
	second := s.settled(t, "fill", 2)
	e = s.registry.Snapshot().Endpoint(s.project, "fill")
	if got := rows(t, s.project, e, 2, second.Fill); got != `["a"]["a"]["b"]["b"]` {
		t.Errorf("the rows of the next version are %s", got)
	}
	if got := tables(t, e); len(got) != 2 {
		t.Errorf("two versions have the tables %v", got)
	}
	if err := s.registry.DeleteEndpoint(t.Context(), s.project, "fill", time.Now()); err != nil {
		t.Fatal(err)
	}
	eventually.Is(t, "its tables are gone", func() bool { return len(tables(t, e)) == 0 })
}

// TestOutdated: a table is compared with what would fill it once, and again when the meaning of the project's queries has changed.
func TestOutdated(t *testing.T) {
	s := start(t, t.TempDir(), time.Hour)
	load(t, s.project, "a")
	name := "compared"
	s.create(t, name, "select toStartOfDay(timestamp) as day, count() from events group by day")
	s.settled(t, name, 1)
	later := time.Now().Add(2 * time.Minute)
	outdated := func() bool {
		snap := s.registry.Snapshot()
		all := snap.Materialized(s.project)
		of := slices.IndexFunc(all, func(m registry.Materialized) bool { return m.Name == name })
		return s.Outdated(snap, all[of], later)
	}
	if outdated() {
		t.Error("a table that was just filled is outdated")
	}
	if got := testing.AllocsPerRun(10, func() { outdated() }); got > 5 {
		t.Errorf("looking again allocates %v times", got)
	}
	if _, err := s.registry.UpdateProject(t.Context(), s.project, registry.ProjectChange{Timezone: new("Asia/Tokyo")}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if !outdated() {
			t.Error("in another time zone it is not outdated")
		}
	}
	if _, err := s.registry.UpdateProject(t.Context(), s.project, registry.ProjectChange{Timezone: new("UTC")}); err != nil {
		t.Fatal(err)
	}
	if outdated() {
		t.Error("in the first time zone it is outdated")
	}
	if _, err := s.registry.UpdateProject(t.Context(), s.project, registry.ProjectChange{Retention: new(30)}); err != nil {
		t.Fatal(err)
	}
	if !outdated() {
		t.Error("it is not outdated though the project shows fewer events")
	}
	name = "kept"
	s.create(t, name, "select count() from events")
	s.settled(t, name, 1)
	if outdated() {
		t.Error("a table with fewer events that was just filled is outdated")
	}
}

// TestFailure: a failure is recorded, what runs read stays, and another version is tried at once.
func TestFailure(t *testing.T) {
	s := start(t, t.TempDir(), time.Hour)
	load(t, s.project, "a")
	e := s.create(t, "fails", "select throwIf(event = 'a') from events")
	var table *registry.Table
	eventually.Is(t, "the fill has failed", func() bool {
		table = s.registry.Snapshot().Endpoint(s.project, "fails").Current().Table
		return table.Errors > 0
	})
	if table.Fill != 0 || table.LastError == "" || table.Pending != 0 || strings.Contains(table.LastError, "team_id") {
		t.Errorf("the table is %+v", table)
	}
	if got := tables(t, e); len(got) != 0 {
		t.Errorf("a fill that failed left %v", got)
	}
	s.update(t, "fails", registry.EndpointUpdate{Query: hogql("select 1 as one")})
	if table := s.settled(t, "fails", 2); table.Fill == 0 {
		t.Errorf("the table of the next version is %+v", table)
	}
}

// TestPanic: a fill that panics has failed.
func TestPanic(t *testing.T) {
	s := startChanged(t, t.TempDir(), time.Hour, admission.Limits{Places: 8, Project: 4, Queue: 10}, func(c *materialize.Config) { c.Compiler = nil })
	s.create(t, "broken", byEvent)
	eventually.Is(t, "the fill has failed", func() bool { return s.registry.Snapshot().Endpoint(s.project, "broken").Current().Table.Errors > 0 })
	if table := s.registry.Snapshot().Endpoint(s.project, "broken").Current().Table; table.LastError != "The fill failed." {
		t.Errorf("the table is %+v", table)
	}
}

// TestInDoubt: the table stays if it is not known whether the registry has been told to read it.
func TestInDoubt(t *testing.T) {
	dir := t.TempDir()
	store, err := registry.OpenStore(t.Context(), "sqlite:"+filepath.Join(dir, "registry.db"), dir)
	if err != nil {
		t.Fatal(err)
	}
	s := startOn(t, warehousetest.InDoubt{Store: store, Text: `"fill":`}, time.Hour, admission.Limits{Places: 8, Project: 4, Queue: 10}, func(*materialize.Config) {})
	load(t, s.project, "a")
	e := s.create(t, "doubtful", byEvent)
	table := s.settled(t, "doubtful", 1)
	_, release, err := s.registry.Lock(t.Context(), fmt.Sprintf("table-%d-%s-1", s.project, e.ID), "test") // waits for the end of the fill
	if err != nil {
		t.Fatal(err)
	}
	release()
	if got := rows(t, s.project, e, 1, table.Fill); got != `["a", 1]` {
		t.Errorf("runs read %s", got)
	}
}

// TestBrokenOff: the fill of a server that died is started again by another, and what it left is dropped. Tables of unknown endpoints stay.
func TestBrokenOff(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, 50*time.Millisecond)
	load(t, s.project, "a")
	e := s.create(t, "broken", byEvent)
	table := s.settled(t, "broken", 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	begun, err := s.registry.BeginFill(t.Context(), s.project, e.ID, 1, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	leave := func(endpoint string, fill int64) clickhouse.MaterializedTable {
		t.Helper()
		left := clickhouse.MaterializedTable{Project: s.project, Endpoint: uuid.MustParse(endpoint), Version: 1, Fill: fill}
		if _, err := client.Materialize(t.Context(), clickhouse.Materialization{Query: clickhouse.Query{SQL: "SELECT 1 AS c0", Project: s.project}, Table: left}); err != nil {
			t.Fatal(err)
		}
		return left
	}
	leave(e.ID, begun.Pending)
	others := leave(uuid.NewString(), 1)
	if got := rows(t, s.project, e, 1, table.Fill); got != `["a", 1]` {
		t.Errorf("during a fill runs read %s", got)
	}
	start(t, dir, 50*time.Millisecond)
	after := s.settled(t, "broken", 1)
	if after.Fill <= begun.Pending {
		t.Errorf("after a fill that broke off the table is %+v", after)
	}
	eventually.Is(t, "the other tables are gone", func() bool { return len(tables(t, e)) == 1 })
	if got := rows(t, s.project, e, 1, after.Fill); got != `["a", 1]` {
		t.Errorf("the rows are %s", got)
	}
	if _, err := client.Materialize(t.Context(), clickhouse.Materialization{Query: clickhouse.Query{SQL: "SELECT 1 AS c0", Project: s.project}, Table: others}); err == nil {
		t.Error("the table of an endpoint that is not known was dropped")
	}
}

// TestMissing: a table that is gone from ClickHouse is filled again, long before that is due.
func TestMissing(t *testing.T) {
	s := start(t, t.TempDir(), 50*time.Millisecond)
	load(t, s.project, "a")
	e := s.create(t, "gone", byEvent)
	first := s.settled(t, "gone", 1)
	if err := client.DropMaterialized(t.Context(), tables(t, e)[0]); err != nil {
		t.Fatal(err)
	}
	var again *registry.Table
	eventually.Is(t, "it is filled again", func() bool {
		again = s.settled(t, "gone", 1)
		return again.Fill > first.Fill
	})
	if got := rows(t, s.project, e, 1, again.Fill); got != `["a", 1]` {
		t.Errorf("the rows are %s", got)
	}
	time.Sleep(200 * time.Millisecond)
	if now := s.settled(t, "gone", 1); now.Fill != again.Fill {
		t.Errorf("a table that is there was filled again: %+v", now)
	}
}

// cutOff is a store that can't be reached for a while.
type cutOff struct {
	registry.Store

	away *atomic.Bool
}

func (s cutOff) Revision(ctx context.Context) (uint64, int64, error) {
	if s.away.Load() {
		return 0, 0, errors.New("no route to host")
	}
	return s.Store.Revision(ctx)
}

// TestCutOff: a server that can't reach the registry drops no tables, because others may have filled them.
func TestCutOff(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, time.Hour)
	load(t, s.project, "a")
	e := s.create(t, "kept", byEvent)
	first := s.settled(t, "kept", 1)
	store, err := registry.OpenStore(t.Context(), "sqlite:"+filepath.Join(dir, "registry.db"), dir)
	if err != nil {
		t.Fatal(err)
	}
	away := new(atomic.Bool)
	startOn(t, cutOff{store, away}, 50*time.Millisecond, admission.Limits{Places: 8, Project: 4, Queue: 10}, func(*materialize.Config) {})
	away.Store(true)
	s.update(t, "kept", registry.EndpointUpdate{Table: registry.TableUpdate{Buckets: map[string]string{"timestamp": "hour"}}})
	second := s.settled(t, "kept", 1)
	if second.Fill <= first.Fill {
		t.Fatalf("the table is %+v", second)
	}
	time.Sleep(500 * time.Millisecond)
	if got := tables(t, e); len(got) != 2 {
		t.Errorf("while a server is cut off there are %v", got)
	}
	away.Store(false)
	eventually.Is(t, "the other table is gone", func() bool { return len(tables(t, e)) == 1 })
	if got := rows(t, s.project, e, 1, second.Fill); got != `["a", 1]` {
		t.Errorf("the rows are %s", got)
	}
}

// TestOneAtATime: only one of several servers fills a table.
func TestOneAtATime(t *testing.T) {
	dir := t.TempDir()
	var servers []*server
	var busy []*admission.Place
	for range 3 {
		s := startLimited(t, dir, time.Hour, admission.Limits{Places: 4, Project: 1, Queue: 10})
		servers = append(servers, s)
		place, err := s.Places.Enter(t.Context(), admission.Request{Project: servers[0].project})
		if err != nil {
			t.Fatal(err)
		}
		defer place.Leave()
		busy = append(busy, place)
	}
	s := servers[0]
	load(t, s.project, "a")
	e := s.create(t, "once", byEvent)
	for _, other := range servers[1:] {
		if err := other.registry.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		other.Look()
	}
	eventually.Is(t, "all servers want to fill it", func() bool { return !slices.ContainsFunc(servers, func(s *server) bool { return s.Idle() }) })
	for _, place := range busy {
		place.Leave()
	}
	s.settled(t, "once", 1)
	for _, s := range servers {
		eventually.Is(t, "the server has looked again", s.Idle)
	}
	if got := tables(t, e); len(got) != 1 {
		t.Errorf("three servers made %v", got)
	}
}

// TestSuperseded: a fill that is no longer wanted ends.
func TestSuperseded(t *testing.T) {
	s := start(t, t.TempDir(), time.Hour)
	e := s.create(t, "slow", "select sum(cityHash64(number)) from numbers(1000000000000)")
	eventually.Is(t, "the fill runs", func() bool { return s.registry.Snapshot().Endpoint(s.project, "slow").Current().Table.Running })
	s.update(t, "slow", registry.EndpointUpdate{Table: registry.TableUpdate{On: new(false)}})
	s.update(t, "slow", registry.EndpointUpdate{Query: hogql("select 2 as two"), Table: registry.TableUpdate{On: new(true)}})
	if table := s.settled(t, "slow", 2); table.Fill == 0 {
		t.Errorf("the table of the next version is %+v", table)
	}
	eventually.Is(t, "the other table is gone", func() bool { return len(tables(t, e)) == 1 })
}

// TestBusyProject: fills that wait because their project's only place is taken keep no other project's from running.
func TestBusyProject(t *testing.T) {
	s := startLimited(t, t.TempDir(), time.Hour, admission.Limits{Places: 4, Project: 1, Queue: 10})
	load(t, s.project+1, "a")
	busy, err := s.Places.Enter(t.Context(), admission.Request{Project: s.project})
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Leave()
	const more = 3 // than run at a time
	for n := range more {
		s.create(t, fmt.Sprint("waits-", n), byEvent)
	}
	eventually.Is(t, "all fills wait for the place", func() bool {
		_, waiting := s.Places.Of(s.project)
		return waiting == more
	})
	other := &server{registry: s.registry, Filler: s.Filler, project: s.project + 1}
	other.create(t, "runs", byEvent)
	if table := other.settled(t, "runs", 1); table.Rows != 1 {
		t.Errorf("the other project's table is %+v", table)
	}
	busy.Leave()
	for n := range more {
		s.settled(t, fmt.Sprint("waits-", n), 1)
	}
}

// TestCohortNeedsThePlace: a table whose query reads cohorts that were never computed is filled, though their calculations need the only place that the
// project has.
func TestCohortNeedsThePlace(t *testing.T) {
	s := startLimited(t, t.TempDir(), time.Hour, admission.Limits{Places: 4, Project: 1, Queue: 10})
	load(t, s.project, "a", "b")
	filters := json.RawMessage(`{"properties": {"type": "AND", "values": [{"type": "behavioral", "value": "performed_event", "key": "a", "event_type": "events", "time_value": 10, "time_interval": "year"}]}}`)
	var names []string
	for range 2 {
		c, err := s.registry.CreateCohort(t.Context(), registry.NewCohort{Project: s.project, CohortFields: registry.CohortFields{Filters: registry.To(filters)}}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, fmt.Sprintf("person_id in cohort %d", c.ID))
	}
	e := s.create(t, "members", "select event, count() as n from events where "+strings.Join(names, " and ")+" group by event")
	table := s.settled(t, "members", 1)
	if table.Fill == 0 {
		t.Fatalf("the table is %+v", table)
	}
	if got := rows(t, s.project, e, 1, table.Fill); !strings.Contains(got, "a") {
		t.Errorf("the rows are %s", got)
	}
}

// TestElsewhere: while another server fills tables, however many, this one takes no place for them and fills others.
func TestElsewhere(t *testing.T) {
	s := startLimited(t, t.TempDir(), time.Hour, admission.Limits{Places: 1, Project: 1, Queue: 10})
	place, err := s.Places.Enter(t.Context(), admission.Request{Project: s.project})
	if err != nil {
		t.Fatal(err)
	}
	defer place.Leave()
	const held = 15 // more than are begun at a time
	var releases []func()
	for n := range held {
		e := s.create(t, fmt.Sprint("elsewhere-", n), byEvent)
		_, release, err := s.registry.Lock(t.Context(), fmt.Sprintf("table-%d-%s-1", s.project, e.ID), "another")
		if err != nil {
			t.Fatal(err)
		}
		releases = append(releases, release)
	}
	eventually.Is(t, "some fills wait for the place", func() bool { _, waiting := s.Places.Of(s.project); return waiting > 0 })
	if _, waiting := s.Places.Of(s.project); waiting > 10 {
		t.Errorf("%d fills wait for the place", waiting)
	}
	place.Leave()
	s.create(t, "here", byEvent)
	if table := s.settled(t, "here", 1); table.Fill == 0 {
		t.Errorf("the table is %+v", table)
	}
	if place, err = s.Places.Enter(t.Context(), admission.Request{Project: s.project, Wait: 5 * time.Second}); err != nil {
		t.Fatal("the only place is taken: ", err)
	}
	place.Leave()
	for n, release := range releases {
		release()
		s.settled(t, fmt.Sprint("elsewhere-", n), 1)
	}
}
