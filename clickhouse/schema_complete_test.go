package clickhouse_test

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
)

// TestOlderTablesAreCompleted: tables of an earlier version get what came later, and are then like new ones. Each change is logged; without changes,
// nothing is. Tables of another product stay as they are.
func TestOlderTablesAreCompleted(t *testing.T) {
	dsn, err := url.Parse(engine.DSN())
	if err != nil {
		t.Fatal(err)
	}
	conn := embeddedtest.Connect(t, dsn.String())
	exec := func(statements ...string) {
		t.Helper()
		for _, sql := range statements {
			if err := conn.Exec(context.WithoutCancel(t.Context()), sql); err != nil {
				t.Fatalf("%v\n%s", err, sql)
			}
		}
	}
	dsn.Path = "/completed"
	exec("DROP DATABASE IF EXISTS completed", "CREATE DATABASE completed")
	migrate := func() (messages []string) {
		t.Helper()
		core, logs := observer.New(zap.InfoLevel)
		c, err := clickhouse.Open(clickhouse.Config{DSN: dsn.String()}, zap.New(core))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }() // nothing runs
		if err := c.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, entry := range logs.All() {
			if text := entry.Message; strings.Contains(text, "tables") || strings.Contains(text, "table ") {
				messages = append(messages, text)
			}
		}
		return messages
	}
	definition := func(table string) string {
		t.Helper()
		var text string
		row := conn.QueryRow(t.Context(), "SELECT create_table_query FROM system.tables WHERE database = 'completed' AND name = '"+table+"'")
		if err := row.Scan(&text); err != nil {
			t.Fatal(err)
		}
		return text
	}
	if diff := cmp.Diff([]string{"creating tables in ClickHouse"}, migrate()); diff != "" {
		t.Errorf("of a new database it logs (-want +got):\n%s", diff)
	}
	fresh := definition("events")
	exec("ALTER TABLE completed.events DROP INDEX session_id", "ALTER TABLE completed.events DROP COLUMN inserted_at",
		"ALTER TABLE completed.events DROP COLUMN `$window_id`",
		"DROP TABLE completed.person_distinct_id_overrides SYNC",
		"DROP TABLE completed.groups SYNC", "CREATE TABLE completed.groups (team_id Int64, other String) ENGINE = MergeTree ORDER BY team_id")
	if diff := cmp.Diff([]string{"creating tables in ClickHouse", "changing a table that an older version of this program made; its rows stay"}, migrate()); diff != "" {
		t.Errorf("of older tables it logs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(fresh, definition("events")); diff != "" {
		t.Errorf("the completed table (-new +completed):\n%s", diff)
	}
	if got := definition("groups"); strings.Contains(got, "group_key") {
		t.Errorf("the table of another product has become %s", got)
	}
	if got := migrate(); got != nil {
		t.Errorf("where nothing is missing it logs %v", got)
	}
}
