package upkeep

import (
	"context"
	"net/url"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
)

// TestDeleteIsRefused: if rows can't be deleted, a project stays as it is.
func TestDeleteIsRefused(t *testing.T) {
	dsn, err := url.Parse(engine.DSN())
	if err != nil {
		t.Fatal(err)
	}
	exec := func(statements ...string) {
		conn := embeddedtest.Connect(t, dsn.String())
		for _, sql := range statements {
			if err := conn.Exec(context.WithoutCancel(t.Context()), sql); err != nil {
				t.Fatalf("%v\n%s", err, sql)
			}
		}
	}
	exec("CREATE DATABASE undeletable")
	dsn.Path = "/undeletable"
	exec("CREATE TABLE events (team_id Int64) ENGINE = Memory",
		"CREATE TABLE person (team_id Int64, id UUID, version UInt64, is_deleted UInt8) ENGINE = Memory",
		"CREATE TABLE groups (team_id Int64, group_type_index UInt8, group_key String) ENGINE = Memory")
	client, err := clickhouse.Open(clickhouse.Config{DSN: dsn.String()}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	wh := warehouse.With(client, schema.NativeLayout())
	defer func() { _ = wh.Close() }()
	k := still(t, wh)
	p := create(t, k, "stays", 0)
	if _, err := k.Delete(t.Context(), p.ID, p.Name); err == nil || !strings.Contains(err.Error(), "is of the engine Memory") {
		t.Errorf("Delete() gives %v", err)
	}
	if snap := k.Registry.Snapshot(); snap.Project(p.ID) == nil || snap.Removal(p.ID) != nil {
		t.Error("the project is deleted")
	}
}
