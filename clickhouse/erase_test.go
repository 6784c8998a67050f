package clickhouse_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
)

// eraseEvents fills a project with events of two years and four people.
func eraseEvents(t *testing.T, projects ...int64) {
	t.Helper()
	conn := embeddedtest.Connect(t, engine.DSN())
	for _, p := range projects {
		sql := fmt.Sprintf("INSERT INTO events (uuid, event, properties, timestamp, team_id, distinct_id, person_id) SELECT generateUUIDv4(), 'e', "+
			"'{\"plan\":\"pro\"}', toDateTime(concat(toString(2024 + number %% 2), '-02-01 00:00:00')), %d, concat('it''s \\\\ ', toString(intDiv(number, 2) %% 4)), "+
			"generateUUIDv4() FROM numbers(80)", p)
		if err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
}

const eventsLeft = "SELECT toYear(timestamp), distinct_id, count() FROM events GROUP BY 1, 2 ORDER BY 1, 2"

// TestDelete: rows of other projects and partitions, and rows that do not meet the condition, stay; deleted rows are gone from the table after
// erasure.
func TestDelete(t *testing.T) {
	c := client(t)
	mine, other := project(), project()
	eraseEvents(t, mine, other)
	all := ask(t, c, other, eventsLeft)
	ids := clickhouse.ArrayParam("ids", "String", []string{`it's \ 1`, `it's \ 2`})
	for _, step := range []struct {
		name string
		d    clickhouse.Deletion
		want string
	}{
		{
			"of a partition",
			clickhouse.Deletion{Where: "distinct_id IN {ids:Array(String)}", Params: []clickhouse.Param{ids}, Partition: "2024"},
			`[2024,"it's \\ 0",10] [2024,"it's \\ 3",10] [2025,"it's \\ 0",10] [2025,"it's \\ 1",10] [2025,"it's \\ 2",10] [2025,"it's \\ 3",10]`,
		},
		{
			"with an alternative",
			clickhouse.Deletion{Where: "distinct_id IN {ids:Array(String)} OR toYear(timestamp) = 2024", Params: []clickhouse.Param{ids}},
			`[2025,"it's \\ 0",10] [2025,"it's \\ 3",10]`,
		},
		{"of all", clickhouse.Deletion{}, ""},
	} {
		step.d.Table, step.d.Project = "events", mine
		if err := c.Delete(t.Context(), step.d); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if diff := cmp.Diff(step.want, strings.ReplaceAll(strings.Join(ask(t, c, mine, eventsLeft), " "), ", ", ",")); diff != "" {
			t.Errorf("%s: events (-want +got):\n%s", step.name, diff)
		}
		if diff := cmp.Diff(all, ask(t, c, other, eventsLeft)); diff != "" {
			t.Errorf("%s: events of another project (-want +got):\n%s", step.name, diff)
		}
	}
	erased(t, c, "events")
	var hidden uint64
	if err := embeddedtest.Connect(t, engine.DSN()).QueryRow(t.Context(), fmt.Sprintf(
		"SELECT count() FROM events WHERE team_id = %d SETTINGS apply_deleted_mask = 0", mine)).Scan(&hidden); err != nil || hidden != 0 {
		t.Errorf("%d rows are in the table after erasure, %v", hidden, err)
	}
	if diff := cmp.Diff(all, ask(t, c, other, eventsLeft)); diff != "" {
		t.Errorf("after erasure: events of another project (-want +got):\n%s", diff)
	}
}

// erased erases a table, so that no row is hidden in its active parts. ClickHouse decides when to remove the old ones.
func erased(t *testing.T, c *clickhouse.Client, table string) {
	t.Helper()
	left, err := c.Unerased(t.Context(), table, time.Now().Add(time.Hour))
	if err != nil || left.Masked == 0 || left.Old == 0 || left.Statements == 0 {
		t.Errorf("before erasure %+v is left, %v; want something of everything", left, err)
	}
	at, err := c.Erase(t.Context(), table)
	if err != nil {
		t.Fatal(err)
	}
	if left, err = c.Unerased(t.Context(), table, at); err != nil || left.Masked != 0 {
		t.Errorf("after erasure %+v is left, %v; want no hidden rows", left, err)
	}
}

// TestDeleteRefuses: a deletion must name a project, and its condition can't break out of its place.
func TestDeleteRefuses(t *testing.T) {
	c := client(t)
	mine := project()
	eraseEvents(t, mine)
	for name, d := range map[string]clickhouse.Deletion{
		"no project":   {Table: "events"},
		"parentheses":  {Table: "events", Project: mine, Where: "1) OR (1"},
		"settings":     {Table: "events", Project: mine, Where: "1 SETTINGS mutations_sync = 0"},
		"no parameter": {Table: "events", Project: mine, Where: "distinct_id = {x:String}"},
		"no table":     {Table: "nothing", Project: mine},
	} {
		if err := c.Delete(t.Context(), d); err == nil {
			t.Errorf("a deletion with %s is no error", name)
		}
	}
	if got := ask(t, c, mine, "SELECT count() FROM events"); got[0] != "[80]" {
		t.Errorf("%s events are left, want all 80", got)
	}
	if reason, err := c.CanDelete(t.Context()); reason != "" || err != nil {
		t.Errorf("CanDelete() = %q, %v", reason, err)
	}
}

// TestGranted: the privilege to delete can be checked before a deletion.
func TestGranted(t *testing.T) {
	c := client(t)
	for right, want := range map[string]bool{"ALTER DELETE ON events": true, "CREATE USER ON *.*": false} {
		if got, err := c.Granted(t.Context(), right); got != want || err != nil {
			t.Errorf("%s: %t, %v", right, got, err)
		}
	}
	if got, err := c.Granted(t.Context(), "ALTER DELETE ON events", "CREATE USER ON *.*"); got || err != nil {
		t.Errorf("with one right of two: %t, %v", got, err)
	}
}

// TestDeleteWithAReplicaAway: a deletion that a replica has not done can be retried, and is not sent again before all have done it. The host that was
// asked stays in use.
func TestDeleteWithAReplicaAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pending, sent atomic.Int64
		host := func() *fakeHost { return mutatingHost(t, &pending, &sent) }
		c, _ := fakeHosts(t, clickhouse.Config{}, host(), host())
		wake(t, c)
		ids := func(id string) error {
			param := clickhouse.ArrayParam("ids", "String", []string{id})
			return c.Delete(t.Context(), clickhouse.Deletion{Table: "events", Project: 1, Where: "distinct_id IN {ids:Array(String)}", Params: []clickhouse.Param{param}})
		}
		erase := func() error {
			_, err := c.Erase(t.Context(), "events")
			return err
		}
		for _, step := range []struct {
			name    string
			pending int64
			do      func() error
			sent    int64 // in all
		}{
			{"a deletion", 1, func() error { return ids("a") }, 1},
			{"it is tried again", 1, func() error { return ids("a") }, 1},
			{"another one", 1, func() error { return ids("b") }, 2},
			{"that is tried again, too", 1, func() error { return ids("b") }, 2},
			{"an erasure", 1, erase, 3},
			{"it is tried again", 1, erase, 3},
			{"the replica is done", 0, func() error { return ids("a") }, 4},
			{"the same rows once more", 0, func() error { return ids("a") }, 5},
			{"once more, while one is away", 1, func() error { return ids("a") }, 6},
			{"the erasure is done", 0, erase, 7},
		} {
			pending.Store(step.pending)
			err := step.do()
			if ended := step.pending == 0; ended != (err == nil) || !ended && kindOf(err) != clickhouse.Unavailable {
				t.Errorf("%s: %v", step.name, err)
			}
			if got := sent.Load(); got != step.sent {
				t.Errorf("%s: %d statements were sent, want %d", step.name, got, step.sent)
			}
			isUp(t, c, 0, true, true)
		}
	})
}

// mutatingHost counts the statements that change rows. While some are pending, a replica is away.
func mutatingHost(t *testing.T, pending, sent *atomic.Int64) *fakeHost {
	t.Helper()
	return &fakeHost{answer: func(w http.ResponseWriter, r *http.Request, sql string) {
		switch {
		case strings.Contains(sql, "system.mutations"):
			numbers(w, int(pending.Load()))
		case !strings.HasPrefix(sql, "DELETE FROM") && !strings.HasPrefix(sql, "ALTER TABLE"):
			numbers(w, 1)
		case r.URL.Query().Get("mutations_sync") != "2":
			t.Errorf("nobody waits for replicas: %s", r.URL)
		default:
			if sent.Add(1); pending.Load() > 0 {
				refuse(w, 341, "Mutation is not finished because some replicas are inactive right now: b. Mutation will be done asynchronously. (UNFINISHED)")
			}
		}
	}}
}

// TestMembersWithAReplicaAway: members of cohorts are deleted like other rows.
func TestMembersWithAReplicaAway(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(context.Context, *clickhouse.Client) (bool, error)
	}{
		{"a version", func(ctx context.Context, c *clickhouse.Client) (bool, error) { return c.DropVersion(ctx, 1, 2, 3) }},
		{"other versions", func(ctx context.Context, c *clickhouse.Client) (bool, error) {
			return c.DropOtherVersions(ctx, 1, 2, 3)
		}},
		{"a static member", func(ctx context.Context, c *clickhouse.Client) (bool, error) {
			return c.RemoveMember(ctx, 1, 2, uuid.Nil)
		}},
		{"all static members", func(ctx context.Context, c *clickhouse.Client) (bool, error) { return c.RemoveMembers(ctx, 1, 2) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var pending, sent atomic.Int64
				c, _ := fakeHosts(t, clickhouse.Config{}, mutatingHost(t, &pending, &sent), mutatingHost(t, &pending, &sent))
				wake(t, c)
				pending.Store(1)
				for range 2 {
					if some, err := tt.do(t.Context(), c); !some || kindOf(err) != clickhouse.Unavailable {
						t.Errorf("while a replica is away: %t, %v", some, err)
					}
				}
				if got := sent.Load(); got != 1 {
					t.Errorf("%d statements were sent, want 1", got)
				}
				pending.Store(0)
				if some, err := tt.do(t.Context(), c); !some || err != nil {
					t.Errorf("after it came back: %t, %v", some, err)
				}
			})
		})
	}
}

// TestEraseMaterialized: tables that were filled before a time are dropped and off the disk. Later ones stay, and are not waited for when they are dropped.
func TestEraseMaterialized(t *testing.T) {
	c, p, before := client(t), project(), time.UnixMilli(1000)
	fill := func(number int64) clickhouse.MaterializedTable {
		t.Helper()
		m := materialization(p, "SELECT 1 AS a")
		m.Table.Fill = number
		if _, err := c.Materialize(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		return m.Table
	}
	drop := func(table clickhouse.MaterializedTable) {
		t.Helper()
		if err := c.DropMaterialized(t.Context(), table); err != nil {
			t.Fatal(err)
		}
		if listed := ask(t, c, p, "SELECT count() FROM system.dropped_tables WHERE table = '"+table.Name()+"'"); !slices.Equal(listed, []string{"[1]"}) {
			t.Fatalf("ClickHouse has dropped %v tables of that name", listed)
		}
	}
	erase := func(want bool) {
		t.Helper()
		if none, err := c.EraseMaterialized(t.Context(), p, before); err != nil || none != want {
			t.Errorf("EraseMaterialized() = %t, %v, want %t", none, err, want)
		}
	}
	old, later, replaced := fill(999), fill(1000), fill(1001)
	drop(replaced)
	erase(true)
	left, err := c.MaterializedTables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(left, old) || !slices.Contains(left, later) {
		t.Errorf("left are %v", left)
	}
	drop(fill(998))
	erase(false)
}
