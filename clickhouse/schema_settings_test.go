package clickhouse_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/ingesttest"
)

// TestTablesBoundPaths: the tables that we create keep rare paths in buckets and sync inserted rows, and so do those of an earlier version. Another
// product's tables are unchanged.
func TestTablesBoundPaths(t *testing.T) {
	dsn, err := url.Parse(engine.DSN())
	if err != nil {
		t.Fatal(err)
	}
	exec := func(sql string) {
		t.Helper()
		if err := embeddedtest.Connect(t, dsn.String()).Exec(context.WithoutCancel(t.Context()), sql); err != nil {
			t.Fatalf("%v\n%s", err, sql)
		}
	}
	exec("DROP DATABASE IF EXISTS older")
	exec("CREATE DATABASE older")
	dsn.Path = "/older"
	c := openWith(t, clickhouse.Config{DSN: dsn.String()})
	settings := func() (with []string) {
		t.Helper()
		rows, err := embeddedtest.Connect(t, dsn.String()).Query(t.Context(),
			"SELECT name FROM system.tables WHERE database = 'older' AND position(engine_full, 'object_shared_data_serialization_version = \\'map_with_buckets\\'') > 0 ORDER BY name")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rows.Close() }() // Scan reports errors
		for rows.Next() {
			var name string
			if err := rows.Scan(&name); err != nil {
				t.Fatal(err)
			}
			with = append(with, name)
		}
		return with
	}
	migrate := func() {
		t.Helper()
		if err := c.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	load := func(event string) { // with many property names
		t.Helper()
		var properties strings.Builder
		for n := range 1000 {
			fmt.Fprintf(&properties, `,"name_%06d":1`, n)
		}
		line := fmt.Sprintf(`{"event":%q,"distinct_id":"x","timestamp":"2024-01-01T00:00:00Z","properties":{%s}}`, event, properties.String()[1:])
		if _, err := ingest.New(c).Import(t.Context(), ingest.Options{Project: 1, Now: now}, ingesttest.Lines(line)); err != nil {
			t.Fatal(err)
		}
	}
	migrate()
	want := []string{"events", "groups", "person"}
	if diff := cmp.Diff(want, settings()); diff != "" {
		t.Errorf("new tables (-want +got):\n%s", diff)
	}
	load("a")
	for _, name := range want { // as an earlier version left them
		exec("ALTER TABLE " + name + " RESET SETTING object_shared_data_serialization_version")
	}
	if got := settings(); len(got) != 0 {
		t.Fatalf("tables with the setting: %v", got)
	}
	exec("ALTER TABLE events RESET SETTING min_bytes_for_wide_part")
	const synced = "SELECT count() FROM system.tables WHERE database = 'older' AND name IN ('events', 'person', 'person_distinct_id2') " +
		"AND engine_full LIKE '%fsync_after_insert = 1%' AND engine_full LIKE '%fsync_part_directory = 1%'"
	if got := ask(t, c, 1, synced); strings.Join(got, "") != "[3]" {
		t.Errorf("new tables that sync what is inserted: %v", got)
	}
	exec("ALTER TABLE person RESET SETTING fsync_after_insert, fsync_part_directory")
	exec("OPTIMIZE TABLE events FINAL")
	const tuned = "SELECT count() FROM system.tables WHERE database = 'older' AND name = 'events' " +
		"AND engine_full LIKE '%min_bytes_for_wide_part = %'"
	if got := ask(t, c, 1, tuned); strings.Join(got, "") != "[0]" {
		t.Errorf("tables are tuned already: %v", got)
	}
	migrate()
	if diff := cmp.Diff(want, settings()); diff != "" {
		t.Errorf("older tables (-want +got):\n%s", diff)
	}
	if got := ask(t, c, 1, tuned); strings.Join(got, "") != "[1]" {
		t.Errorf("older tables are not tuned: %v", got)
	}
	if got := ask(t, c, 1, synced); strings.Join(got, "") != "[3]" {
		t.Errorf("older tables that sync what is inserted: %v", got)
	}
	load("b")
	exec("OPTIMIZE TABLE events FINAL")
	if got := ask(t, c, 1, "SELECT event, properties.name_000999 FROM events ORDER BY event"); strings.Join(got, " ") != `["a", 1] ["b", 1]` {
		t.Errorf("events: %v", got)
	}
}
