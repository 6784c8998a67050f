package engine_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// keptText is the condition on the time of events in printed SQL.
var keptText = regexp.MustCompile("(?:(?:`(?:[^`\\\\]|\\\\.)*`|\\w+)\\.)?timestamp >= toDateTime64\\(\\{p\\d+:String\\}, 6, \\{p\\d+:String\\}\\)")

// aged are the ways to ask of a project that keeps its events from day on.
type aged struct {
	*tenants

	young    *clickhouse.Client // a database that never held the older events
	old      *clickhouse.Client // one that holds them, and older rows of the log of queries, with the marker in their texts
	unfenced *clickhouse.Client // the same without additional_table_filters
}

func newAged(t *testing.T) *aged {
	t.Helper()
	all := &aged{tenants: newTenants(t)}
	all.young = all.alone
	old := newDatabase(t, "aged")
	open := func(dsn string) *clickhouse.Client {
		c, err := clickhouse.Open(clickhouse.Config{DSN: dsn, MaxExecutionTime: 10 * time.Second, MaxMemory: 1 << 30}, zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.Close(); err != nil {
				t.Errorf("closing a client: %v", err)
			}
		})
		return c
	}
	all.old, all.unfenced = open(old), open(withoutFilters(t, old))
	if err := all.old.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	settle(t, all.old, tenant)
	finish(t, "aged", tenant)
	// What is copied is chosen in a subquery: a WHERE beside REPLACE means the new value.
	copied := func(table, column, from, replaced string) {
		for _, before := range []string{"1 MICROSECOND", "90 MINUTE", "400 DAY"} {
			execute(t, old, fmt.Sprintf("INSERT INTO %s SELECT * REPLACE (toDateTime64('%s 00:00:00', 6, 'UTC') - INTERVAL %s AS %s, %s) "+
				"FROM (SELECT * FROM %[1]s WHERE team_id = %[6]d AND %[4]s >= '2024-01-02')", table, from, before, column, replaced, tenant))
		}
		var young, all uint64
		if err := embeddedtest.Connect(t, old).QueryRow(t.Context(), fmt.Sprintf("SELECT countIf(%s >= '%s'), count() FROM %s", column, from, table)).Scan(&young, &all); err != nil {
			t.Fatal(err)
		}
		if young == 0 || all != 4*young {
			t.Fatalf("%s has %d rows, %d of them young", table, all, young)
		}
	}
	copied("events", "timestamp", "2024-01-02", fmt.Sprintf("generateUUIDv4() AS uuid, concat('%s', event) AS event, concat('{\"word\":\"%[1]s\",\"n\":77}')::JSON AS properties", marker))
	copied("query_log", "event_time", day.AddDate(0, 0, -physical.LogDays).Format(time.DateOnly), fmt.Sprintf("generateUUIDv4() AS id, concat('%s', query) AS query", marker))
	return all
}

// TestKept writes random queries and asks them of a project that does not keep its older events, but has them on disk yet. The answers must
// be those of a database that never held them, also with either fence alone. The log of queries has rows that are too old, too.
func TestKept(t *testing.T) {
	all := newAged(t)
	examineMany(t, all.db, 300, all.examine)
}

// TestKeptLog: rows of the log of queries that are too old are in no answer, though they are on disk yet.
func TestKeptLog(t *testing.T) {
	all := newAged(t)
	kept := *all.db
	kept.EventsFrom = day
	for _, text := range []string{
		"select count(), uniq(query), min(event_time), max(event_time) from query_log",
		"select query from query_log where event_time < '2023-12-03' or query like '%" + marker + "%'",
		"select count() from query_log as a join query_log as b on a.query_id = b.query_id",
		"select e.event, count() from events as e left join query_log as q on e.distinct_id = q.query_id group by e.event order by e.event",
		"select (select count() from query_log), count() from events where distinct_id in (select query_id from query_log)",
	} {
		compiled, err := compiler.Compile(&query.HogQL{Query: text}, compiler.Env{Database: &kept, Now: day})
		if err != nil {
			t.Fatal(err)
		}
		want := all.ask(t.Context(), t, all.young, asked(compiled))
		if got := all.ask(t.Context(), t, all.old, asked(compiled)); got.verdict() != want.verdict() || want.err != nil {
			t.Errorf("%s\n--- got\n%s\n--- want\n%s", text, short(got.text), short(want.text))
		}
	}
}

// examine asks one query of both databases.
func (all *aged) examine(t *testing.T, g *generator, text string, seed uint64, c *tally) {
	t.Helper()
	env := compiler.Env{Database: all.db, Actions: all.actions, Now: day}
	whole, err := compiler.Compile(&query.HogQL{Query: text}, env)
	kept := *all.db
	kept.EventsFrom = day
	env.Database = &kept
	compiled, keptErr := compiler.Compile(&query.HogQL{Query: text}, env)
	if err != nil || keptErr != nil {
		if (err == nil) != (keptErr == nil) {
			c.bad.Add(1)
			t.Errorf("seed %d: %v, and with a bound on the age of events %v\n%s", seed, err, keptErr, text)
		}
		return
	}
	want := all.ask(t.Context(), t, all.young, asked(whole))
	if want.err != nil {
		c.errors.Add(1)
	} else {
		c.answered.Add(1)
	}
	q, client, name := asked(compiled), all.old, "both fences"
	switch seed % 3 {
	case 0:
		client, name = all.unfenced, "the guards alone"
	case 1:
		q.SQL, name = keptText.ReplaceAllString(q.SQL, "1 = 1"), "additional_table_filters alone"
	}
	got := all.ask(t.Context(), t, client, q)
	differs := !g.unstable && !got.cut() && !want.cut() && got.verdict() != want.verdict()
	if !g.unstable {
		c.compared.Add(1)
	}
	if leaks := strings.Contains(strings.ToLower(got.text), marker); leaks || differs {
		c.bad.Add(1)
		t.Errorf("seed %d, %s: leaks %t, differs %t\n%s\n--- SQL\n%s\n%v\n--- got\n%s\n--- want\n%s",
			seed, name, leaks, differs, text, q.SQL, q.Params, short(got.text), short(want.text))
	}
}

// asked is a compiled query of the tenant as ClickHouse gets it.
func asked(c *compiler.Compiled) clickhouse.Query {
	q := clickhouse.Query{SQL: c.SQL, Project: tenant, EventsFrom: c.EventsFrom}
	for _, p := range c.Params {
		q.Params = append(q.Params, clickhouse.Param(p))
	}
	return q
}
