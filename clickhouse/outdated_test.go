package clickhouse_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
)

// TestOutdated: a part with only outdated events is dropped whole, of other parts only the outdated events are deleted, and no other event is lost.
func TestOutdated(t *testing.T) {
	c := client(t)
	conn := embeddedtest.Connect(t, engine.DSN())
	short, long, forever := project(), project(), project()
	insert := func(day string, projects ...int64) {
		t.Helper()
		sql := "INSERT INTO events (team_id, uuid, event, distinct_id, timestamp) "
		for n, p := range projects {
			if n > 0 {
				sql += " UNION ALL "
			}
			sql += fmt.Sprintf("SELECT %d, generateUUIDv4(), 'e', 'x', toDateTime64('%s 12:00:00', 6, 'UTC') FROM numbers(3)", p, day)
		}
		if err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	insert("1987-05-01", short, long)          // all too old
	insert("1988-05-01", short, long, forever) // two of three too old
	insert("1989-02-01", short, long)          // one of two too old
	insert("1989-09-01", short, long, forever) // none too old
	at := func(text string) time.Time {
		day, err := time.Parse(time.DateOnly, text)
		if err != nil {
			t.Fatal(err)
		}
		return day
	}
	kept := []clickhouse.Kept{{Project: short, From: at("1989-09-01")}, {Project: long, From: at("1989-01-01")}}
	dropped, left, err := c.DropOutdated(t.Context(), kept)
	want := []clickhouse.Outdated{{Project: short, Partition: "1988", Events: 3}, {Project: long, Partition: "1988", Events: 3}, {Project: short, Partition: "1989", Events: 3}}
	if diff := cmp.Diff(want, left); err != nil || dropped != 6 || diff != "" {
		t.Fatalf("%v, dropped %d, left (-want +got):\n%s", err, dropped, diff)
	}
	for _, o := range left {
		for _, k := range kept {
			if k.Project == o.Project {
				if err := c.DeleteOutdated(t.Context(), k, o.Partition); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for p, want := range map[int64]string{short: "[3]", long: "[6]", forever: "[6]"} {
		if got := ask(t, c, p, "SELECT count() FROM events"); got[0] != want {
			t.Errorf("project %d has %v events, want %s", p, got, want)
		}
	}
	if _, left, err := c.DropOutdated(t.Context(), kept); err != nil || len(left) > 0 {
		t.Errorf("again: %v, left %v", err, left)
	}
}
