package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/ingest/ingesttest"
)

// tenant shares every table of one database with strangers, whose rows lie before and behind its own. It has a second
// database for itself: what it is answered in both must be the same.
const tenant = 201

var strangers = []int64{200, 202}

// marker is in every text that the strangers have stored, and in nothing else.
const marker = "zvmarkb"

// tenants are the ways to ask as the tenant.
type tenants struct {
	alone    *clickhouse.Client // nobody else's rows are there
	both     *clickhouse.Client // beside the strangers' rows
	unfenced *clickhouse.Client // the same without additional_table_filters
	logs     *observer.ObservedLogs
	db       *schema.Database
	actions  *query.Actions
}

// day is when everything happens.
var day = time.Date(2024, 1, 2, 0, 0, 0, 0, time.UTC)

// newTenants fills both databases.
func newTenants(t *testing.T) *tenants {
	t.Helper()
	core, logs := observer.New(zap.DebugLevel)
	log := zap.New(core)
	all := &tenants{logs: logs, actions: newTenantActions(t), db: &schema.Database{
		Project: tenant, Location: time.UTC, Layout: schema.NativeLayout(),
		GroupTypes: map[string]int{"organization": 0, "squad": 1},
		Cohorts:    schema.NewCohorts([]schema.Cohort{{ID: 5, Name: "fives", Version: 3}, {ID: 6, Name: "sixes", Static: true}, {ID: 7, Name: "nobody", Version: 9}}, false),
		Properties: schema.PropertyTypes{
			{Scope: schema.EventProperty, Name: "n"}:            schema.NumericProperty,
			{Scope: schema.PersonProperty, Name: "n"}:           schema.NumericProperty,
			{Scope: schema.EventProperty, Name: "flag"}:         schema.BooleanProperty,
			{Scope: schema.EventProperty, Name: "at"}:           schema.DateTimeProperty,
			{Scope: schema.GroupProperty, Group: 0, Name: "at"}: schema.DateTimeProperty,
		},
	}}
	all.db.Held = func(table string) ([][]any, error) { return heldRows(table), nil }
	open := func(dsn string) *clickhouse.Client {
		c, err := clickhouse.Open(clickhouse.Config{DSN: dsn, MaxExecutionTime: 10 * time.Second, MaxMemory: 1 << 30}, log)
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
	all.alone = open(newDatabase(t, "alone"))
	shared := newDatabase(t, "both")
	all.both = open(shared)
	all.unfenced = open(withoutFilters(t, shared))
	for _, c := range []*clickhouse.Client{all.alone, all.both} {
		if err := c.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		settle(t, c, tenant)
	}
	for _, stranger := range strangers {
		settle(t, all.both, stranger)
	}
	finish(t, "alone", tenant)
	finish(t, "both", append(strangers, tenant)...)
	return all
}

// newDatabase makes a database on the engine, and gives its DSN.
func newDatabase(t *testing.T, name string) string {
	t.Helper()
	execute(t, dsn, "DROP DATABASE IF EXISTS "+name, "CREATE DATABASE "+name)
	return within(t, name)
}

func within(t *testing.T, database string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + database
	return u.String()
}

func execute(tb testing.TB, dsn string, statements ...string) {
	tb.Helper()
	conn := embeddedtest.Connect(tb, dsn)
	for _, statement := range statements {
		if err := conn.Exec(tb.Context(), statement); err != nil {
			tb.Fatalf("%s: %v", statement, err)
		}
	}
}

// withoutFilters gives the DSN of a proxy before the engine that takes the second fence out of every request, and
// leaves all else.
func withoutFilters(t *testing.T, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	engine := &url.URL{Scheme: "http", Host: u.Host}
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(engine)
		values := r.Out.URL.Query()
		values.Del("additional_table_filters")
		r.Out.URL.RawQuery = values.Encode()
	}})
	t.Cleanup(proxy.Close)
	u.Host = strings.TrimPrefix(proxy.URL, "http://")
	return u.String()
}

// settle imports what a project has. The tenant's texts are mostly numbers, the strangers' are words with the marker, so
// that expressions which suit the one fail on the other.
func settle(t *testing.T, c *clickhouse.Client, project int64) {
	t.Helper()
	var lines strings.Builder
	encoder := json.NewEncoder(&lines)
	write := func(line map[string]any) {
		if err := encoder.Encode(line); err != nil {
			t.Fatal(err)
		}
	}
	word := func(i int) string { return fmt.Sprint(1000 + i) }
	mixed := func(i int) string { return []string{"17", "word", "", "3.5"}[i%4] }
	if project != tenant {
		word = func(i int) string { return fmt.Sprintf("%s-%d", marker, i) }
		mixed = word
	}
	properties := func(i int) map[string]any {
		p := map[string]any{
			"word": word(i), "digits": word(i % 7), "mixed": mixed(i), "n": i % 5, "flag": i%2 == 0, "at": day.Add(time.Duration(i) * time.Hour),
			"nested": map[string]any{"deep": map[string]any{"er": word(i)}, "x": i}, "list": []any{word(i), i, map[string]any{"id": word(i)}},
			"k k": word(i), "it's": word(i), "b`t`": word(i), `q"q`: word(i), "p%c": word(i), "a.b": word(i), "ünï": word(i),
			"$browser": word(i), "team_id": project, "events": word(i), "size0": word(i), "null": word(i), "": word(i), "^word": word(i),
		}
		if project != tenant { // keys of its own, and other types under the same keys
			p["n"], p["flag"], p["at"] = 900_000_000+i, word(i), word(i)
			p[marker], p["shape"], p["only"] = word(i), map[string]any{marker: word(i)}, word(i)
			p["team_id"] = tenant
		} else {
			p["shape"] = []any{i, word(i)}
		}
		return p
	}
	for i := range 24 {
		write(map[string]any{
			"type": "person", "distinct_ids": []string{word(i), word(100 + i)}, "properties": properties(i), "created_at": day.Add(time.Duration(i) * time.Minute),
		})
	}
	for i := range 12 {
		name := []string{"organization", "squad"}[i%2]
		write(map[string]any{
			"type": "group", "group_type": name, "group_type_index": i % 2, "group_key": word(i), "properties": properties(i), "created_at": day,
		})
	}
	for i := range 60 {
		p := properties(i)
		p["$group_0"], p["$group_1"] = word(i%6*2), word(i%6*2+1)
		p["$session_id"] = fmt.Sprintf("018cc7a%d-0000-7000-8000-%012d", project%10, i/4)
		p["$window_id"], p["$current_url"] = word(i%9), "https://"+word(i)+".example/"+word(i)+"?q="+word(i)
		p["$set"] = map[string]any{"latest": word(i)}
		write(map[string]any{
			"event": word(i % 6), "distinct_id": word(i % 30), "timestamp": day.Add(time.Duration(i*37) * time.Minute), "properties": p,
			"uuid":           fmt.Sprintf("%08d-0000-4000-8000-%012d", project, i),
			"elements_chain": fmt.Sprintf(`a.%[1]s:text="%[1]s"href="/%[1]s"attr_id="%[1]s";button:text="%[1]s"`, word(i)),
		})
	}
	for _, cohort := range []int64{5, 6} {
		write(map[string]any{"type": "cohort", "cohort_id": cohort, "distinct_ids": []string{word(int(cohort)), word(7), word(8)}})
	}
	options := ingest.Options{Project: project, Now: day.Add(24 * time.Hour), Cohorts: []int64{5, 6}}
	if report, err := ingest.New(c).Import(t.Context(), options, ingesttest.Lines(lines.String())); err != nil || report.Bad > 0 {
		t.Fatalf("importing: %v: %+v", err, report)
	}
}

// finish writes what no import writes, and merges each table, so that the projects' rows lie in the same granules.
func finish(t *testing.T, database string, projects ...int64) {
	t.Helper()
	dsn := within(t, database)
	execute(t, dsn, "ALTER TABLE query_log REMOVE TTL") // its rows are of years ago
	for _, project := range projects {
		members(t, dsn, project)
		execute(t, dsn, fmt.Sprintf("INSERT INTO person_distinct_id_overrides (team_id, distinct_id, person_id, is_deleted, version) "+
			"SELECT team_id, distinct_id, max(person_id) OVER (PARTITION BY team_id), 0, 1 FROM person_distinct_id2 WHERE team_id = %d "+
			"ORDER BY distinct_id LIMIT 9", project))
		execute(t, dsn, fmt.Sprintf("INSERT INTO query_log (team_id, id, event_time, query_id, query_start_time, query_duration_ms, kind, query, name, endpoint, "+
			"endpoint_version, key_id, customer, created_by, is_personal_api_key_request, result_rows, result_bytes, status, exception_code, exception) "+
			"SELECT team_id, uuid, timestamp, distinct_id, timestamp, length(event), event, distinct_id, event, event, 1, event, distinct_id, 2, 1, 3, 4, event, 5, event "+
			"FROM events WHERE team_id = %d", project))
	}
	// The time of the import is the clock's, and is not the same in both databases: a later version takes its place.
	execute(t, dsn, "INSERT INTO events SELECT * REPLACE (timestamp AS inserted_at, _timestamp + INTERVAL 1 SECOND AS _timestamp) FROM events")
	for _, table := range []string{"events", "person", "person_distinct_id2", "person_distinct_id_overrides", "groups", "cohortpeople", "person_static_cohort", "query_log"} {
		execute(t, dsn, "OPTIMIZE TABLE "+table+" FINAL")
		var rows uint64
		if err := embeddedtest.Connect(t, dsn).QueryRow(t.Context(), "SELECT count() FROM "+table).Scan(&rows); err != nil || rows == 0 {
			t.Fatalf("the table %s of %s has %d rows, %v", table, database, rows, err)
		}
	}
}

// members computes the members of cohorts. The strangers have the tenant's people in all of theirs, which have the tenant's
// numbers, its versions and newer ones.
func members(t *testing.T, dsn string, project int64) {
	t.Helper()
	if project != tenant {
		for cohort := 5; cohort < 8; cohort++ {
			execute(t, dsn,
				fmt.Sprintf("INSERT INTO person_static_cohort SELECT id, id, %d, %d, created_at, 0 FROM person WHERE team_id = %d", cohort, project, tenant),
				fmt.Sprintf("INSERT INTO cohortpeople SELECT id, %d, %d, 1, arrayJoin([3, 9]) FROM person WHERE team_id = %d", cohort, project, tenant))
		}
		return
	}
	people := func(from, count int) string {
		return fmt.Sprintf("FROM (SELECT DISTINCT id FROM person WHERE team_id = %d ORDER BY id LIMIT %d, %d)", tenant, from, count)
	}
	execute(t, dsn,
		fmt.Sprintf("INSERT INTO cohortpeople SELECT id, 5, %d, 1, 2 %s", tenant, people(0, 9)), // an old version
		fmt.Sprintf("INSERT INTO cohortpeople SELECT id, 5, %d, 1, 3 %s", tenant, people(3, 4)),
		fmt.Sprintf("INSERT INTO cohortpeople SELECT id, 6, %d, 1, 1 %s", tenant, people(8, 2)))
}

// outcome is what an asker gets: rows in no order, or an error.
type outcome struct {
	rows []string
	err  *clickhouse.Error
	text string // everything that could reach anybody, the log included
}

// ask runs a query as the tenant.
func (all *tenants) ask(ctx context.Context, t *testing.T, c *clickhouse.Client, q clickhouse.Query) outcome {
	t.Helper()
	var rows rowCollector
	_, err := c.Query(ctx, q, &rows)
	slices.Sort(rows)
	out := outcome{rows: rows, text: strings.Join(rows, "\n")}
	if err == nil {
		return out
	}
	if !errors.As(err, &out.err) {
		t.Fatalf("asking: %v", err)
	}
	out.rows = nil
	out.text += "\n" + err.Error() + "\n" + fmt.Sprint(errors.Unwrap(out.err))
	return out
}

// verdict is what the outcome comes to, without texts that name rows.
func (o outcome) verdict() string {
	if o.err != nil {
		return fmt.Sprintf("%v %d", o.err.Kind, o.err.Code)
	}
	return strings.Join(o.rows, "\n")
}

// cut reports whether a limit of time or size ended the query, which tells nothing.
func (o outcome) cut() bool {
	return o.err != nil && slices.Contains([]clickhouse.ErrorKind{clickhouse.Timeout, clickhouse.Memory, clickhouse.TooLarge, clickhouse.TooSlow}, o.err.Kind)
}

// heldRows are a few rows of a held table, with and without NULLs.
func heldRows(table string) [][]any {
	held, _ := schema.LookupHeld(table)
	rows := make([][]any, 3)
	for n := range rows {
		for i, f := range held.Fields {
			var v any
			switch f.Type.Kind {
			case hogql.Int:
				v = n*10 + i
			case hogql.Float:
				v = float64(n) / 4
			case hogql.UUID:
				v = fmt.Sprintf("00000000-0000-4000-8000-%012d", n)
			case hogql.DateTime:
				v = day.Add(time.Duration(n) * time.Hour).Format(time.RFC3339)
			case hogql.JSON:
				v = `{"a": {"b": "it's"}, "n": 1}`
			default:
				v = "held \\ ' " + f.Name
			}
			if f.Type.Nullable && (n+i)%3 == 0 {
				v = nil
			}
			rows[n] = append(rows[n], v)
		}
	}
	return rows
}
