package clickhouse_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/ingesttest"
)

// foreignTables are tables like those of a PostHog: JSON in String columns, group keys made from it, whole seconds, no column that reports whether
// created_at was given.
var foreignTables = []string{
	"CREATE TABLE events (uuid UUID, event String, properties String, timestamp DateTime64(6, 'UTC'), team_id Int64, distinct_id String, " +
		"elements_chain String, created_at DateTime64(6, 'UTC'), person_id UUID, person_created_at DateTime64(3), person_properties String, " +
		"group0_properties String, group0_created_at DateTime64(3), person_mode Enum8('full' = 0, 'propertyless' = 1, 'force_upgrade' = 2), " +
		"`$group_0` String MATERIALIZED JSONExtractString(properties, '$group_0') COMMENT 'column_materializer::$group_0', " +
		"`$session_id` String MATERIALIZED JSONExtractString(properties, '$session_id'), _timestamp DateTime, _offset UInt64, " +
		"CONSTRAINT bad CHECK event != 'refused') ENGINE = ReplacingMergeTree(_timestamp) PARTITION BY toYYYYMM(timestamp) " +
		"ORDER BY (team_id, toDate(timestamp), event, cityHash64(distinct_id), cityHash64(uuid))",
	"CREATE TABLE person (id UUID, created_at DateTime64, team_id Int64, properties String, is_identified Int8, is_deleted Int8, version UInt64, " +
		"_timestamp DateTime, _offset UInt64) ENGINE = ReplacingMergeTree(version) ORDER BY (team_id, id)",
	"CREATE TABLE groups (group_type_index UInt8, group_key String, created_at DateTime64, team_id Int64, group_properties String, " +
		"_timestamp DateTime, _offset UInt64) ENGINE = ReplacingMergeTree(_timestamp) ORDER BY (team_id, group_type_index, group_key)",
}

// foreign makes a database with such tables.
func foreign(t *testing.T, name string) *clickhouse.Client {
	t.Helper()
	dsn, err := url.Parse(engine.DSN())
	if err != nil {
		t.Fatal(err)
	}
	exec := func(statements ...string) {
		t.Helper()
		conn := embeddedtest.Connect(t, dsn.String())
		for _, sql := range statements {
			if err := conn.Exec(context.WithoutCancel(t.Context()), sql); err != nil {
				t.Fatalf("%v\n%s", err, sql)
			}
		}
	}
	exec("DROP DATABASE IF EXISTS "+name, "CREATE DATABASE "+name)
	dsn.Path = "/" + name
	exec(foreignTables...)
	c := openWith(t, clickhouse.Config{DSN: dsn.String()})
	if err := c.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestForeignTables(t *testing.T) {
	c := foreign(t, "posthog")
	var got []string
	columns, err := c.PhysicalColumns(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, column := range columns {
		if column.Table == "events" && strings.HasPrefix(column.Name, "$") || column.Table == "person" && column.Name == "properties" || column.Name == "distinct_id" {
			got = append(got, fmt.Sprintf("%s.%s %s %s %s %s", column.Table, column.Name, column.Type, column.DefaultKind, column.DefaultExpression, column.Comment))
		}
	}
	want := []string{
		"events.distinct_id String   ",
		"events.$group_0 String MATERIALIZED JSONExtractString(properties, '$group_0') column_materializer::$group_0",
		"events.$session_id String MATERIALIZED JSONExtractString(properties, '$session_id') ",
		"person.properties String   ",
		"person_distinct_id2.distinct_id String   ",
		"person_distinct_id_overrides.distinct_id String   ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
}

func TestImportIntoForeignTables(t *testing.T) {
	c := foreign(t, "posthog2")
	const p = 7
	var lines strings.Builder
	for i := range 100 {
		event := "good"
		if i == 30 || i == 77 {
			event = "refused"
		}
		fmt.Fprintf(&lines, "{\"event\":%q,\"distinct_id\":\"x\",\"timestamp\":\"2024-01-01T00:00:%02dZ\",\"properties\":{\"a.b\":1,\"$set\":{\"n\":%d},\"$groups\":{\"org\":\"o\"},\"$session_id\":\"s\"}}\n", event, i%60, i)
	}
	lines.WriteString(`{"type":"group","group_type":"org","group_key":"o","properties":{"size":3}}` + "\n")
	options := ingest.Options{Project: p, Now: now}
	report, err := ingest.New(c).Import(t.Context(), options, ingesttest.Lines(lines.String()))
	if err != nil {
		t.Fatal(err)
	}
	want := []ingest.BadLine{{Line: 31, Reason: "ClickHouse rejected the row's data (violated_constraint)"}, {Line: 78, Reason: "ClickHouse rejected the row's data (violated_constraint)"}}
	if diff := cmp.Diff(want, report.BadLines); diff != "" {
		t.Errorf("bad lines (-want +got):\n%s", diff)
	}
	if report.Events != 98 || report.Bad != 2 {
		t.Errorf("report: %+v", report)
	}
	options.GroupTypes = report.GroupTypes
	for range 2 {
		if report, err = ingest.New(c).Import(t.Context(), options, ingesttest.Lines(`{"type":"person","distinct_ids":["x","y"],"properties":{"new":1}}`,
			`{"type":"group","group_type":"org","group_key":"o","properties":{"more":4}}`)); err != nil {
			t.Fatal(err)
		}
	}
	for sql, want := range map[string]string{
		"SELECT count(), uniq(person_id), any(`$group_0`), any(`$session_id`), JSONExtractInt(any(properties), 'a.b') FROM events": `[98, 1, "o", "s", 1]`,
		"SELECT argMax(properties, version), max(version) FROM person":                                                             `["{\"n\":99,\"new\":1}", 1]`,
		"SELECT count() FROM person_distinct_id2":                                                                                  `[2]`,
		"SELECT argMax(group_properties, _timestamp), max(_timestamp) > toDateTime('2026-11-21 12:00:00') FROM groups":             `["{\"size\":3,\"more\":4}", 1]`,
		"SELECT argMax(created_at, _timestamp) FROM groups":                                                                        `["2024-01-01T00:00:00Z"]`,
	} {
		if got := ask(t, c, p, sql); got[0] != want {
			t.Errorf("%s\ngot %s, want %s", sql, got[0], want)
		}
	}
}

// TestForeignGroups: of two changes of a group in one second, the later one counts, where tables have whole seconds.
func TestForeignGroups(t *testing.T) {
	c := foreign(t, "posthog3")
	for _, ms := range []time.Duration{200, 800} {
		options := ingest.Options{Project: 7, Now: now.Add(ms * time.Millisecond), GroupTypes: []ingest.GroupType{{Name: "org"}}}
		line := fmt.Sprintf(`{"type":"group","group_type":"org","group_key":"o","properties":{"p%d":1}}`, ms)
		if _, err := ingest.New(c).Import(t.Context(), options, ingesttest.Lines(line)); err != nil {
			t.Fatal(err)
		}
	}
	const newest = "SELECT group_properties FROM groups WHERE _timestamp = (SELECT max(_timestamp) FROM groups)"
	if diff := cmp.Diff([]string{`["{\"p200\":1,\"p800\":1}"]`}, ask(t, c, 7, newest)); diff != "" {
		t.Errorf("properties (-want +got):\n%s", diff)
	}
}

// TestMigrateAgain migrates tables that are complete.
func TestMigrateAgain(t *testing.T) {
	c := client(t)
	before, err := c.PhysicalColumns(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	after, err := c.PhysicalColumns(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("columns (-before +after):\n%s", diff)
	}
}
