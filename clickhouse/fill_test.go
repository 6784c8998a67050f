package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/ingesttest"
)

// members is a fill of a cohort's members.
func members(project int64, sql string, params ...clickhouse.Param) clickhouse.Fill {
	return clickhouse.Fill{
		Query: clickhouse.Query{SQL: sql, Params: params, Project: project}, Table: "cohortpeople", Columns: []string{"person_id"},
		Fixed: []clickhouse.FixedColumn{{Name: "cohort_id", Number: 7}, {Name: "version", Number: 1 << 40}, {Name: "sign", Number: 1}},
	}
}

// TestFill: rows are written for the query's project and no other, and come only from that project, whatever the SELECT says.
func TestFill(t *testing.T) {
	c := client(t)
	mine, other := project(), project()
	for _, p := range []int64{mine, other} {
		lines := `{"type":"person","distinct_ids":["a"],"properties":{}}` + "\n" + `{"event":"e","distinct_id":"b","timestamp":"2024-01-01T00:00:00Z"}`
		if _, err := ingest.New(c).Import(t.Context(), ingest.Options{Project: p, Now: now}, ingesttest.Lines(lines)); err != nil {
			t.Fatal(err)
		}
	}
	strangers := fmt.Sprintf("SELECT person_id FROM person_distinct_id2 WHERE team_id = %d OR 1", other)
	if err := c.Fill(t.Context(), members(mine, strangers)); err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	long := clickhouse.Param{Name: "ids", Type: "Array(String)", Value: "[" + strings.Repeat("'b', ", 20_000) + "'x']"}
	if err := c.Fill(t.Context(), members(other, "SELECT id FROM person WHERE toString(id) IN {ids:Array(String)}", long)); err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	const kept = "SELECT count(), uniqExact(person_id), any(cohort_id), any(team_id), any(version), any(sign) FROM cohortpeople WHERE cohort_id = 7"
	if diff := cmp.Diff([]string{fmt.Sprintf("[2, 2, 7, %d, 1099511627776, 1]", mine)}, ask(t, c, mine, kept)); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{`[0]`}, ask(t, c, other, "SELECT count() FROM cohortpeople")); diff != "" {
		t.Errorf("rows of another project (-want +got):\n%s", diff)
	}
}

// TestFillsFence tries to write with more than a SELECT.
func TestFillsFence(t *testing.T) {
	c := client(t)
	p := project()
	for _, sql := range []string{
		"SELECT id FROM person SETTINGS additional_table_filters = {}",
		"SELECT id FROM (SELECT id FROM person SETTINGS additional_table_filters = {})",
		"SELECT generateUUIDv4()) SETTINGS readonly = 0, additional_table_filters = {}, max_threads = (1",
		"SELECT generateUUIDv4(); DROP TABLE cohortpeople",
		"SELECT generateUUIDv4()) UNION ALL SELECT generateUUIDv4(), 1, 1, 1, 1 FROM (SELECT 1",
		"DROP TABLE cohortpeople",
		"SELECT generateUUIDv4(), 5",
		"SELECT 1 /* ",
	} {
		if err := c.Fill(t.Context(), members(p, sql)); err == nil {
			t.Errorf("%s was run", sql)
		}
	}
	if err := c.Fill(t.Context(), members(0, "SELECT generateUUIDv4()")); err == nil {
		t.Error("a fill without a project was run")
	}
	if diff := cmp.Diff([]string{`[0]`}, ask(t, c, p, "SELECT count() FROM cohortpeople")); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// TestFillsLimits: a fill has its own time limit and the usual memory limit, and spills to disk where it can.
func TestFillsLimits(t *testing.T) {
	small := openWith(t, clickhouse.Config{DSN: engine.DSN(), MaxExecutionTime: time.Second, MaxMemory: 200 << 20})
	slow := members(project(), "SELECT toUUID('00000000-0000-4000-8000-000000000000') FROM numbers(1000000000000) WHERE sipHash64(number) = 0")
	slow.MaxTime = time.Second
	tests := []struct {
		name string
		fill clickhouse.Fill
		want clickhouse.ErrorKind
	}{
		{"time", slow, clickhouse.Timeout},
		{"memory", members(project(), "SELECT reinterpretAsUUID(arrayJoin(groupArray(number))) FROM numbers(100000000)"), clickhouse.Memory},
		{"a mistake", members(project(), "SELECT nothing FROM events"), clickhouse.UserError},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := small.Fill(t.Context(), tt.fill)
			if got, ok := errors.AsType[*clickhouse.Error](err); !ok || got.Kind != tt.want {
				t.Errorf("got %v (%v), want an error of the kind %v", err, errors.Unwrap(err), tt.want)
			}
		})
	}
	t.Run("longer than a query may take", func(t *testing.T) {
		p := project()
		if err := small.Fill(t.Context(), members(p, "SELECT generateUUIDv4() FROM numbers(20) WHERE sleepEachRow(0.1) = 0")); err != nil {
			t.Error(err, errors.Unwrap(err))
		}
	})
	t.Run("on disk", func(t *testing.T) {
		p := project()
		sql := "SELECT reinterpretAsUUID(count()) FROM (SELECT sipHash64(number) AS h, count() AS n FROM numbers(6000000) GROUP BY h) WHERE n = 1"
		if err := small.Fill(t.Context(), members(p, sql)); err != nil {
			t.Error(err, errors.Unwrap(err))
		}
		if diff := cmp.Diff([]string{`[1]`}, ask(t, small, p, "SELECT count() FROM cohortpeople")); diff != "" {
			t.Errorf("rows (-want +got):\n%s", diff)
		}
	})
}

// TestFillIsStopped: a fill whose context ends is stopped on the server.
func TestFillIsStopped(t *testing.T) {
	c := client(t)
	ctx, cancel := context.WithCancel(t.Context())
	p := project()
	endless := members(p, "SELECT generateUUIDv4() FROM numbers(1000000000000) WHERE sipHash64(number, 'mark:endless fill') = 0")
	ended := make(chan error)
	go func() { ended <- c.Fill(ctx, endless) }()
	waitForQuery(t, c, p, "endless fill", true)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	waitForQuery(t, c, p, "endless fill", false)
}
