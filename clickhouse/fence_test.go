package clickhouse_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/ingesttest"
)

// TestFence runs SQL without a project filter. It may only return rows of the query's project.
func TestFence(t *testing.T) {
	c := client(t)
	mine, other := project(), project()
	for _, p := range []int64{mine, other} {
		lines := fmt.Sprintf(`
			{"type":"person","distinct_ids":["a","b"],"properties":{"of":"%[1]d"}}
			{"type":"group","group_type":"org","group_key":"g","properties":{"of":"%[1]d"}}
			{"event":"e","distinct_id":"a","timestamp":"2024-01-01T00:00:00Z","properties":{"of":"%[1]d","$groups":{"org":"g"}}}
			{"event":"e","distinct_id":"c","timestamp":"2024-01-02T00:00:00Z","properties":{"of":"%[1]d"}}
			{"type":"person","distinct_ids":["a","c"],"properties":{}}
			{"type":"cohort","cohort_id":5,"distinct_ids":["a"]}`, p)
		if _, err := ingest.New(c).Import(t.Context(), ingest.Options{Project: p, Now: now, Cohorts: []int64{5}}, ingesttest.Lines(lines)); err != nil {
			t.Fatal(err)
		}
		computed := fmt.Sprintf("INSERT INTO cohortpeople SELECT person_id, cohort_id, team_id, 1, 1 FROM person_static_cohort WHERE team_id = %d", p)
		if err := embeddedtest.Connect(t, engine.DSN()).Exec(t.Context(), computed); err != nil {
			t.Fatal(err)
		}
	}
	of := fmt.Sprintf(`["%d"]`, mine)
	tests := []struct {
		name, sql string
		want      []string
	}{
		{"events", "SELECT DISTINCT toString(properties.of) FROM events", []string{of}},
		{"an OR cannot open it", "SELECT DISTINCT toString(properties.of) FROM events WHERE 1 OR team_id = " + strconv.FormatInt(other, 10), []string{of}},
		{"another project's filter", fmt.Sprintf("SELECT count() FROM events WHERE team_id = %d", other), []string{`[0]`}},
		{"with its database", "SELECT DISTINCT toString(properties.of) FROM analytics.events", []string{of}},
		{"with an alias", "SELECT DISTINCT toString(x.properties.of) FROM events AS x", []string{of}},
		{"with FINAL", "SELECT DISTINCT toString(properties.of) FROM events FINAL", []string{of}},
		{"in a subquery", "SELECT DISTINCT toString(of) FROM (SELECT properties.of AS of FROM events)", []string{of}},
		{"in a CTE", "WITH all AS (SELECT * FROM events) SELECT DISTINCT toString(properties.of) FROM all", []string{of}},
		{"in a scalar subquery", "SELECT toString((SELECT any(properties.of) FROM events))", []string{of}},
		{"in IN", "SELECT count() FROM numbers(100000) WHERE number IN (SELECT team_id FROM events)", []string{`[1]`}},
		{"both sides of a join", "SELECT DISTINCT toString(a.properties.of), toString(b.properties.of) FROM events a JOIN events b ON a.event = b.event", []string{fmt.Sprintf(`["%[1]d", "%[1]d"]`, mine)}},
		{"a left join", "SELECT DISTINCT toString(p.properties.of) FROM numbers(1) n LEFT JOIN person p ON 1 = 1 WHERE p.is_deleted = 0 AND length(toString(p.properties.of)) > 0", []string{of}},
		{"a union", "SELECT DISTINCT of FROM (SELECT toString(properties.of) of FROM events UNION ALL SELECT toString(group_properties.of) FROM groups)", []string{of}},
		{"the word in quotes", "SELECT DISTINCT toString(`settings`) FROM (SELECT properties.of AS `settings`, 'it\\'s -- SETTINGS' FROM events)", []string{of}},
		{"person", "SELECT DISTINCT team_id FROM person", []string{fmt.Sprintf("[%d]", mine)}},
		{"person_distinct_id2", "SELECT DISTINCT team_id FROM person_distinct_id2", []string{fmt.Sprintf("[%d]", mine)}},
		{"person_distinct_id_overrides", "SELECT DISTINCT team_id FROM person_distinct_id_overrides", []string{fmt.Sprintf("[%d]", mine)}},
		{"groups", "SELECT DISTINCT team_id FROM groups", []string{fmt.Sprintf("[%d]", mine)}},
		{"cohortpeople", "SELECT DISTINCT team_id FROM cohortpeople", []string{fmt.Sprintf("[%d]", mine)}},
		{"person_static_cohort", "SELECT DISTINCT team_id FROM person_static_cohort", []string{fmt.Sprintf("[%d]", mine)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, ask(t, c, mine, tt.sql)); diff != "" {
				t.Errorf("printed rows (-want +got):\n%s", diff)
			}
			var blocks rows
			if err := c.QueryBlocks(t.Context(), clickhouse.Query{SQL: tt.sql, Project: mine}, &blocks); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, blocks.Texts); diff != "" {
				t.Errorf("rows from blocks (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFenceCannotBeLifted tries to change the settings that restrict a query, and to write.
func TestFenceCannotBeLifted(t *testing.T) {
	c := client(t)
	p := project()
	for _, sql := range []string{
		"INSERT INTO events (team_id) VALUES (1)",
		"DROP TABLE events",
		"ALTER TABLE events DELETE WHERE 1",
		"CREATE TABLE x (a Int8) ENGINE = Memory",
		"SET readonly = 0",
		"SELECT 1 SETTINGS readonly = 0",
		"SELECT count() FROM events SETTINGS additional_table_filters = {}",
		"SELECT count() FROM events SETTINGS max_execution_time = 1000",
		"SELECT count() FROM (SELECT 1 FROM events SETTINGS additional_table_filters = {})",
		"SELECT count() FROM (SELECT 1 FROM events\nsettings\tadditional_table_filters = {})",
		`SELECT '\'' FROM (SELECT 1 FROM events SETTINGS additional_table_filters = {})`,
		"SELECT '''' FROM (SELECT 1 FROM events SETTINGS additional_table_filters = {})",
		"SELECT $$'$$ FROM (SELECT 1 FROM events SETTINGS additional_table_filters = {}) WHERE 1 = $$'$$",
		"SELECT 1 -- '\nFROM (SELECT 1 FROM events SETTINGS additional_table_filters = {}) -- '",
		"SELECT 1 // '\nFROM (SELECT 1 FROM events SETTINGS additional_table_filters = {}) -- '",
		"SELECT 1 /* ' */ FROM (SELECT 1 FROM events SETTINGS additional_table_filters = {}) -- '",
		"SELECT 1 # '\nFROM (SELECT 1 FROM events SETTINGS additional_table_filters = {}) -- '",
		"SELECT ‘'’ FROM (SELECT 1 FROM events SETTINGS additional_table_filters = {}) WHERE 1 = ‘'’",
		"SELECT 'open",
		"SELECT 1; SELECT 2",
	} {
		if _, err := c.Query(t.Context(), clickhouse.Query{SQL: sql, Project: p}, &rows{}); err == nil {
			t.Errorf("%s was run", sql)
		}
	}
	if _, err := c.Query(t.Context(), clickhouse.Query{SQL: "SELECT 1"}, &rows{}); err == nil {
		t.Error("a query without a project was run")
	}
}

func TestLimits(t *testing.T) {
	open := func(config clickhouse.Config) *clickhouse.Client {
		config.DSN = engine.DSN()
		return openWith(t, config)
	}
	tests := []struct {
		name   string
		config clickhouse.Config
		sql    string
		want   clickhouse.Error
	}{
		{"rows", clickhouse.Config{MaxResultRows: 1000}, "SELECT number FROM numbers(100000)", clickhouse.Error{Kind: clickhouse.TooLarge, Code: 396, Name: "too_many_rows_or_bytes", Message: "the result exceeds its size limit"}},
		{"bytes", clickhouse.Config{MaxResultBytes: 1000}, "SELECT number FROM numbers(100000)", clickhouse.Error{Kind: clickhouse.TooLarge, Code: 396, Name: "too_many_rows_or_bytes", Message: "the result exceeds its size limit"}},
		{"memory", clickhouse.Config{MaxMemory: 20 << 20}, "SELECT uniqExact(number) FROM numbers(10000000)", clickhouse.Error{Kind: clickhouse.Memory, Code: 241, Name: "memory_limit_exceeded", Message: "the query ran out of memory"}},
		{"time", clickhouse.Config{MaxExecutionTime: 1}, "SELECT count() FROM numbers(1000000000000) WHERE NOT ignore(sipHash64(number))", clickhouse.Error{Kind: clickhouse.Timeout, Code: 159, Name: "timeout_exceeded", Message: "the query exceeded its time limit"}},
		{"a mistake", clickhouse.Config{}, "SELECT nothing FROM events", clickhouse.Error{Kind: clickhouse.UserError, Code: 47, Name: "unknown_identifier", Message: "Unknown expression identifier `nothing`."}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := open(tt.config)
			err := untilServerSays(func() error {
				_, err := c.Query(t.Context(), clickhouse.Query{SQL: tt.sql, Project: project()}, &rows{})
				return err
			})
			var got *clickhouse.Error
			if !errors.As(err, &got) {
				t.Fatalf("got %v", err)
			}
			if diff := cmp.Diff(tt.want, *got, ignoreCause); diff != "" {
				t.Errorf("error (-want +got):\n%s\n%v", diff, errors.Unwrap(got))
			}
		})
	}
}

// TestCollectOf reads the rows of some projects without a filter. It may only return theirs.
func TestCollectOf(t *testing.T) {
	c := client(t)
	projects := []int64{project(), project(), project(), project()}
	for _, p := range projects {
		line := `{"event":"e","distinct_id":"a","timestamp":"2024-01-01T00:00:00Z"}`
		if _, err := ingest.New(c).Import(t.Context(), ingest.Options{Project: p, Now: now}, ingesttest.Lines(line)); err != nil {
			t.Fatal(err)
		}
	}
	for _, of := range [][]int64{projects[:1], projects[1:3], {projects[0], projects[3]}} {
		for _, table := range []string{"events", "analytics.events", "person", "person_distinct_id2"} {
			var got []int64
			err := c.CollectOf(t.Context(), of, clickhouse.Query{SQL: "SELECT DISTINCT team_id FROM " + table + " ORDER BY team_id"}, func(cells []clickhouse.Cell) error {
				id, err := cells[0].Int()
				got = append(got, id)
				return err
			})
			if diff := cmp.Diff(of, got); diff != "" || err != nil {
				t.Errorf("%s of %v: %v (-want +got):\n%s", table, of, err, diff)
			}
		}
	}
	if err := c.CollectOf(t.Context(), []int64{projects[0], 0}, clickhouse.Query{SQL: "SELECT 1"}, nil); err == nil || !strings.Contains(err.Error(), "BUG") {
		t.Errorf("without a project: %v", err)
	}
}
