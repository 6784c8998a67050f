package warehouse_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/clickhousetest"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// others runs a statement as others would who write to the tables.
func others(t *testing.T, sql string) {
	t.Helper()
	clickhousetest.Execute(t, engine, sql)
}

// insert inserts an event as others would.
func insert(t *testing.T, project int64, at string) {
	t.Helper()
	others(t, fmt.Sprintf("INSERT INTO events (uuid, event, timestamp, team_id, distinct_id) VALUES ('%s', 'a', '%s', %d, 'ann')", uuid.NewString(), at, project))
}

// TestProbe: what others write changes the versions of the days and the project concerned, and so does what they change in place; merges change none.
func TestProbe(t *testing.T) {
	h := build(t, false)
	if !h.Probes() {
		t.Fatal("a ClickHouse of others is not probed")
	}
	stranger := &house{h.Warehouse, h.places, clickhousetest.Project()}
	for n := range 4 {
		insert(t, h.project, fmt.Sprintf("2024-03-04 1%d:00:00", n))
		insert(t, h.project, fmt.Sprintf("2024-03-0%d 10:00:00", n+1))
		insert(t, stranger.project, "2024-03-04 10:00:00")
	}
	for _, step := range []struct {
		name   string
		change func()
		moves  string
	}{
		{"nothing", func() {}, ""},
		{"a merge", func() { others(t, "OPTIMIZE TABLE events FINAL") }, ""},
		{"an event", func() { insert(t, h.project, "2024-03-04 20:00:00") }, "day events"},
		{"an earlier event", func() { insert(t, h.project, "2024-03-02 23:59:59") }, "before events"},
		{"an event of another project", func() { insert(t, stranger.project, "2024-03-04 20:00:00") }, ""},
		{"another merge", func() { others(t, "OPTIMIZE TABLE events FINAL") }, ""},
		{"a person", func() {
			others(t, fmt.Sprintf("INSERT INTO person (id, team_id, version) VALUES ('%s', %d, 1)", uuid.NewString(), h.project))
		}, "person"},
		{"a merge of people", func() {
			others(t, fmt.Sprintf("INSERT INTO person_distinct_id_overrides (distinct_id, person_id, team_id, version) VALUES ('ann', '%s', %d, 1)", uuid.NewString(), h.project))
		}, "person_distinct_id_overrides"},
		{"a change in place", func() {
			others(t, fmt.Sprintf("ALTER TABLE events UPDATE elements_chain = 'a' WHERE team_id = %d AND toDate(timestamp) = '2024-03-04'", h.project))
		}, "day before events"},
		{"a deletion", func() {
			others(t, fmt.Sprintf("DELETE FROM person_distinct_id_overrides WHERE team_id = %d AND distinct_id = 'ann'", h.project))
		}, "person_distinct_id_overrides"},
		{"events of this server", func() { h.load(t, event("bob", "2024-03-04T10:00:00Z")) }, "day events person person_distinct_id2"},
	} {
		before := h.versions(t)
		step.change()
		after := h.versions(t)
		for what := range before {
			moves := strings.Contains(" "+step.moves+" ", " "+what+" ")
			if moved := before[what] != after[what]; moved != moves || after[what] == "unknown" {
				t.Errorf("%s moves %s: %t, from %s to %s", step.name, what, moved, before[what], after[what])
			}
		}
	}
}

// TestProbeGoesOn: a probe that takes too long returns nothing, and the next continues where it ended.
func TestProbeGoesOn(t *testing.T) {
	h := build(t, false)
	h.EndProbesEarly()
	insert(t, h.project, "2024-03-04 10:00:00")
	others(t, fmt.Sprintf("INSERT INTO person (id, team_id, version) VALUES ('%s', %d, 1)", uuid.NewString(), h.project))
	ask := func() string { return h.version(t, time.Time{}, time.Time{}, physical.Events, "person") }
	if got := ask(); got != "unknown" {
		t.Fatalf("after the first query the version is %s", got)
	}
	got := ask()
	for tries := 0; got == "unknown" && tries < 20; tries++ {
		got = ask()
	}
	if got == "unknown" || ask() != got {
		t.Errorf("in the end the version is %s, then %s", got, ask())
	}
}

// TestProbeNeedsAPlace: ClickHouse is not asked about a project without a place of it.
func TestProbeNeedsAPlace(t *testing.T) {
	h := build(t, false)
	reads := schema.Reads{Tables: []string{physical.Events}}
	strange := &house{h.Warehouse, h.places, clickhousetest.Project()}
	for name, place := range map[string]*admission.Place{"none": nil, "another project's": strange.place(t)} {
		if _, err := h.Data(t.Context(), place, h.project, reads); err == nil || !strings.Contains(err.Error(), "BUG") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestProbeOtherEngines: nothing is known of tables whose rows are not in their own parts.
func TestProbeOtherEngines(t *testing.T) {
	h := build(t, false)
	insert(t, h.project, "2024-03-04 10:00:00")
	others(t, "CREATE TABLE groups_kept AS groups")
	others(t, "RENAME TABLE groups TO groups_beneath")
	others(t, "CREATE VIEW groups AS SELECT * FROM groups_beneath")
	got := h.version(t, time.Time{}, time.Time{}, physical.Events)
	others(t, "DROP VIEW groups")
	others(t, "RENAME TABLE groups_beneath TO groups")
	others(t, "DROP TABLE groups_kept")
	if got != "unknown" {
		t.Errorf("with a view among the tables, the version is %s", got)
	}
}

// TestProbeWhileOthersWrite: a reader that finds the same version before and after counting the events counts the same number.
func TestProbeWhileOthersWrite(t *testing.T) {
	h := build(t, false)
	insert(t, h.project, "2024-03-04 10:00:00")
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 0; ctx.Err() == nil && n < 100; n++ {
			insert(t, h.project, "2024-03-04 10:00:00")
			if n%10 == 9 {
				others(t, "OPTIMIZE TABLE events FINAL")
			}
		}
	})
	count := func() string {
		return clickhousetest.Ask(t, client, h.project, "SELECT count() FROM events WHERE toDate(timestamp) = '2024-03-04'")[0]
	}
	for range 60 {
		before := h.version(t, time.Time{}, time.Time{}, physical.Events)
		first := count()
		second := count()
		if after := h.version(t, time.Time{}, time.Time{}, physical.Events); before == after && before != "unknown" && first != second {
			t.Errorf("version %s has %s and %s events", before, first, second)
		}
	}
	stop()
	wg.Wait()
	last := h.version(t, time.Time{}, time.Time{}, physical.Events)
	if again := h.version(t, time.Time{}, time.Time{}, physical.Events); last == "unknown" || again != last {
		t.Errorf("at the end the version is %s, then %s", last, again)
	}
}

// BenchmarkProbe compares probes of a million events, in new and in known parts, with a trend by day over them.
func BenchmarkProbe(b *testing.B) {
	project := clickhousetest.Project()
	options, err := driver.ParseDSN(engine.DSN())
	if err != nil {
		b.Fatal(err)
	}
	conn, err := driver.Open(options)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.Exec(b.Context(), fmt.Sprintf("INSERT INTO events (uuid, event, timestamp, team_id, distinct_id, _timestamp) SELECT generateUUIDv4(), "+
		"['a', 'b', 'c'][1 + number %% 3], toDateTime('2024-01-01', 'UTC') + intDiv(number * 90 * 86400, 1000000), %d, toString(number %% 1000), now() FROM numbers(1000000)", project)); err != nil {
		b.Fatal(err)
	}
	reads := schema.Reads{Tables: []string{physical.Events}}
	places := admission.New(admission.Limits{Places: 2, Project: 2})
	place, err := places.Enter(b.Context(), admission.Request{Project: project})
	if err != nil {
		b.Fatal(err)
	}
	defer place.Leave()
	var first, again, trend time.Duration
	for b.Loop() {
		w, err := warehouse.Open(clickhouse.Config{DSN: engine.DSN()}, nil, zap.NewNop())
		if err != nil {
			b.Fatal(err)
		}
		if _, err := w.Prepare(b.Context()); err != nil {
			b.Fatal(err)
		}
		for _, took := range []*time.Duration{&first, &again} {
			began := time.Now()
			if _, err := w.Data(b.Context(), place, project, reads); err != nil {
				b.Fatal(err)
			}
			*took += time.Since(began)
		}
		began := time.Now()
		clickhousetest.Ask(b, client, project, "SELECT toStartOfDay(timestamp) AS day, count() FROM events WHERE event = 'a' GROUP BY day ORDER BY day")
		trend += time.Since(began)
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(first)/float64(trend), "first/trend")
	b.ReportMetric(float64(again)/float64(trend), "known/trend")
}
