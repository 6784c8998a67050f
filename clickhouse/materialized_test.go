package clickhouse_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/ingesttest"
)

func materialization(project int64, sql string, order ...string) clickhouse.Materialization {
	return clickhouse.Materialization{
		Query: clickhouse.Query{SQL: sql, Project: project}, Order: order,
		Table: clickhouse.MaterializedTable{Project: project, Endpoint: uuid.New(), Version: 1, Fill: 5},
	}
}

// TestMaterialize: a table has the rows of its query, from one project only, and only queries of that project that name the table read them.
func TestMaterialize(t *testing.T) {
	c := client(t)
	mine, other := project(), project()
	for i, p := range []int64{mine, other} {
		lines := strings.Repeat(`{"event":"e","distinct_id":"b","timestamp":"2024-01-01T00:00:00Z"}`+"\n", i+2)
		if _, err := ingest.New(c).Import(t.Context(), ingest.Options{Project: p, Now: now}, ingesttest.Lines(lines)); err != nil {
			t.Fatal(err)
		}
	}
	m := materialization(mine, "SELECT event AS `a b`, nullIf(distinct_id, {none:String}) AS d, tuple(1, NULL) AS t, toLowCardinality(1) AS l FROM events WHERE team_id > 0", "a b", "d")
	m.Params = []clickhouse.Param{{Name: "none", Type: "String", Value: "x"}}
	if count, err := c.Materialize(t.Context(), m); err != nil || count != 2 {
		t.Fatalf("Materialize() = %d rows, %v (%v)", count, err, errors.Unwrap(err))
	}
	stored, err := c.StoredTables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(stored, func(s clickhouse.StoredTable) bool {
		return s.Name == m.Table.Name() && strings.Contains(s.Create, "fsync_after_insert = 1") && strings.Contains(s.Create, "fsync_part_directory = 1")
	}) {
		t.Errorf("the table does not sync its rows: %+v", stored)
	}
	q := clickhouse.Query{SQL: "SELECT count(), any(`a b`), any(d), any(team_id) FROM " + m.Table.Name(), Tables: []string{m.Table.Name()}}
	for _, tt := range []struct {
		project int64
		want    string
	}{{mine, fmt.Sprintf(`[2, "e", "b", %d]`, mine)}, {other, `[0, "", null, 0]`}} {
		q.Project = tt.project
		var got rows
		if _, err := c.Query(t.Context(), q, &got); err != nil {
			t.Fatal(err, errors.Unwrap(err))
		}
		if diff := cmp.Diff([]string{tt.want}, got.Texts); diff != "" {
			t.Errorf("what project %d reads (-want +got):\n%s", tt.project, diff)
		}
	}
	if _, err := c.Materialize(t.Context(), m); err == nil {
		t.Error("a table was made twice")
	}
	theirs := m
	theirs.Project = other
	if _, err := c.Materialize(t.Context(), theirs); err == nil {
		t.Error("a table of one project was made for another")
	}
	has := func() bool {
		all, err := c.MaterializedTables(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slices.Contains(all, m.Table)
	}
	if !has() {
		t.Error("the table is not listed")
	}
	for range 2 {
		if err := c.DropMaterialized(t.Context(), m.Table); err != nil {
			t.Fatal(err)
		}
	}
	if has() {
		t.Error("a table that was dropped is listed")
	}
}

// TestMaterializesFence tries to write with more than a SELECT, and to see the rows of others.
func TestMaterializesFence(t *testing.T) {
	c := client(t)
	p := project()
	for _, sql := range []string{
		"SELECT 1 AS a SETTINGS additional_table_filters = {}",
		"SELECT 1 AS a) SETTINGS additional_table_filters = {}, max_threads = (1",
		"SELECT 1 AS a; DROP TABLE events",
		"SELECT 1 AS a) UNION ALL SELECT 1, 2 FROM (SELECT 1",
		"SELECT 1 AS a, 2 AS team_id",
		"SELECT 1 /* ",
	} {
		if _, err := c.Materialize(t.Context(), materialization(p, sql)); err == nil {
			t.Errorf("%s was run", sql)
		}
	}
	if _, err := c.Materialize(t.Context(), materialization(0, "SELECT 1 AS a")); err == nil {
		t.Error("a table without a project was made")
	}
}

func TestMaterializeTooMuch(t *testing.T) {
	m := materialization(project(), fmt.Sprintf("SELECT number AS a FROM numbers(%d)", clickhouse.MaxMaterializedRows+5))
	_, err := client(t).Materialize(t.Context(), m)
	if known, ok := errors.AsType[*clickhouse.Error](err); !ok || known.Kind != clickhouse.TooLarge {
		t.Errorf("a table with too many rows: %v", err)
	}
}

func TestCanMaterialize(t *testing.T) {
	if reason, err := client(t).CanMaterialize(t.Context()); reason != "" || err != nil {
		t.Errorf("CanMaterialize() = %q, %v", reason, err)
	}
}
