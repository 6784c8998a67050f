package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

const (
	benchProject = 1
	benchEvents  = 5_000_000
	benchBatch   = 500_000
)

// benchEvent is the properties of an event, derived from its number: a small page view.
const benchEvent = `concat('{"$browser":"', ['Chrome', 'Firefox', 'Safari', 'Mobile Safari', 'Edge'][1 + number % 5], ` +
	`'","$os":"', ['Windows', 'Mac OS X', 'Linux', 'iOS', 'Android'][1 + intDiv(number, 3) % 5], ` +
	`'","$current_url":"https://app.example.com/page/', toString(number % 5000), ` +
	`'","$screen_width":', toString(800 + number % 1500), ',"amount":', toString(number % 1000 + 0.25), ',"plan":"free"}')`

// reading is a query over properties, in HogQL and in the SQL that PostHog generates for properties in a String column.
type reading struct {
	name, hogql, posthog string
	goal                 float64   // 0: none
	ours, theirs         []float64 // seconds
}

// postHogText returns PostHog's SQL for the text of a property.
func postHogText(name string) string {
	return `replaceRegexpAll(nullIf(nullIf(JSONExtractRaw(events.properties, '` + name + `'), ''), 'null'), '^"|"$', '')`
}

// propertyReads compares queries over properties: our SQL on our tables with PostHog's SQL on String properties, in the
// same engine.
func propertyReads(ctx context.Context, folder string) (goals []goal, err error) {
	engine, err := startEngine(ctx, filepath.Join(folder, "properties"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	ours, theirs, err := fillBoth(ctx, engine.DSN())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ours.Close(), theirs.Close()) }()

	readings := []*reading{
		{
			name: "breakdown by a property", goal: 12,
			hogql: "select properties.$browser as browser, count() as n from events group by browser order by n desc",
			posthog: "SELECT " + postHogText("$browser") + " AS browser, count() AS n FROM events WHERE equals(events.team_id, 1) " +
				"GROUP BY browser ORDER BY n DESC LIMIT 101",
		},
		{
			name: "sum of a numeric property", goal: 12,
			hogql:   "select sum(properties.amount) from events",
			posthog: "SELECT sum(accurateCastOrNull(" + postHogText("amount") + ", 'Float64')) FROM events WHERE equals(events.team_id, 1) LIMIT 101",
		},
		{
			name:  "count of one value",
			hogql: "select count() from events where properties.$browser = 'Firefox'",
			posthog: "SELECT count() FROM events WHERE and(equals(events.team_id, 1), ifNull(equals(" + postHogText("$browser") +
				", 'Firefox'), 0)) LIMIT 101",
		},
	}
	for range rounds {
		for _, r := range readings {
			if err := r.measure(ctx, ours, theirs); err != nil {
				return nil, err
			}
		}
	}
	fmt.Printf("Properties of %d events, seconds, median of %d alternating rounds\n\n", benchEvents, rounds)
	fmt.Printf("%-28s %10s %14s %8s\n", "", "our SQL", "PostHog's SQL", "ratio")
	for _, r := range readings {
		a, b := median(r.ours), median(r.theirs)
		fmt.Printf("%-28s %10.3f %14.3f %8.1f\n", r.name, a, b, b/a)
		if r.goal > 0 {
			goals = append(goals, atLeast(fmt.Sprintf("%s, %d events", r.name, benchEvents), "PostHog's SQL on String properties", r.goal, b/a))
		}
	}
	fmt.Println()
	return goals, nil
}

// measure runs both queries once and compares their rows.
func (r *reading) measure(ctx context.Context, ours, theirs *clickhouse.Client) error {
	db := &schema.Database{
		Project: benchProject, Location: time.UTC, Layout: schema.NativeLayout(),
		Properties: schema.PropertyTypes{{Scope: schema.EventProperty, Name: "amount"}: schema.NumericProperty},
		Values: schema.PropertyValues{ // as recorded when the events arrive
			{Scope: schema.EventProperty, Name: "$browser"}: physical.Texts,
			{Scope: schema.EventProperty, Name: "amount"}:   physical.Floats,
		},
	}
	compiled, err := compiler.Compile(&query.HogQL{Query: r.hogql}, compiler.Env{Database: db, Now: time.Now()})
	if err != nil {
		return fmt.Errorf("compiling %q: %w", r.hogql, err)
	}
	params := make([]clickhouse.Param, len(compiled.Params))
	for i, p := range compiled.Params {
		params[i] = clickhouse.Param(p)
	}
	a, seconds, err := timed(ctx, ours, clickhouse.Query{SQL: compiled.SQL, Params: params, Project: benchProject})
	if err != nil {
		return err
	}
	r.ours = append(r.ours, seconds)
	b, seconds, err := timed(ctx, theirs, clickhouse.Query{SQL: r.posthog, Project: benchProject})
	if err != nil {
		return err
	}
	r.theirs = append(r.theirs, seconds)
	if a != b {
		return fmt.Errorf("%s: our rows are %s, PostHog's %s", r.name, a, b)
	}
	return nil
}

// rowText collects the rows as one text.
type rowText []byte

func (*rowText) Columns([]clickhouse.Column) error { return nil }

func (r *rowText) Row(row []byte) error {
	*r = append(*r, row...)
	return nil
}

func timed(ctx context.Context, client *clickhouse.Client, q clickhouse.Query) (rows string, seconds float64, err error) {
	var sink rowText
	start := time.Now()
	if _, err := client.Query(ctx, q, &sink); err != nil {
		return "", 0, fmt.Errorf("%w\n%s", errors.Join(err, errors.Unwrap(err)), q.SQL)
	}
	return string(sink), time.Since(start).Seconds(), nil
}

// fillBoth creates our tables and a database with PostHog's table of events, and inserts the same events into both.
func fillBoth(ctx context.Context, dsn string) (ours, theirs *clickhouse.Client, err error) {
	address, err := url.Parse(dsn)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the engine's address: %w", err)
	}
	if ours, err = clickhouse.Open(clickhouse.Config{DSN: dsn}, zap.NewNop()); err != nil {
		return nil, nil, err
	}
	if err := ours.Migrate(ctx); err != nil {
		return nil, nil, errors.Join(err, ours.Close())
	}
	statements := []string{
		"CREATE DATABASE posthog",
		"CREATE TABLE posthog.events (uuid UUID, event String, properties String, timestamp DateTime64(6, 'UTC'), team_id Int64, distinct_id String, " +
			"_timestamp DateTime64(6, 'UTC')) ENGINE = ReplacingMergeTree(_timestamp) PARTITION BY toYear(timestamp) " +
			"ORDER BY (team_id, toDate(timestamp), event, cityHash64(distinct_id), cityHash64(uuid))",
	}
	for from := 0; from < benchEvents; from += benchBatch {
		for _, table := range []string{embedded.Database + ".events", "posthog.events"} {
			statements = append(statements, fmt.Sprintf("INSERT INTO %s (uuid, event, properties, timestamp, team_id, distinct_id) "+
				"SELECT generateUUIDv4(), '$pageview', %s, toDateTime64('2024-01-01', 6, 'UTC') + toIntervalSecond(number), %d, toString(number %% 50000) "+
				"FROM numbers(%d, %d)", table, benchEvent, benchProject, from, benchBatch))
		}
	}
	options, err := driver.ParseDSN(dsn)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("reading the engine's address: %w", err), ours.Close())
	}
	conn, err := driver.Open(options)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("connecting to the engine: %w", err), ours.Close())
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	fmt.Fprintf(os.Stderr, "writing 2 × %d events …\n", benchEvents)
	for _, sql := range statements {
		if err := conn.Exec(ctx, sql); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("%w\n%s", err, sql), ours.Close())
		}
	}
	if err := settled(ctx, conn); err != nil {
		return nil, nil, errors.Join(err, ours.Close())
	}
	address.Path = "/posthog"
	if theirs, err = clickhouse.Open(clickhouse.Config{DSN: address.String()}, zap.NewNop()); err != nil {
		return nil, nil, errors.Join(err, ours.Close())
	}
	return ours, theirs, nil
}

// settled waits until the engine has finished merging, which would slow down the queries.
func settled(ctx context.Context, conn driver.Conn) error {
	for {
		var merges uint64
		if err := conn.QueryRow(ctx, "SELECT count() FROM system.merges").Scan(&merges); err != nil {
			return fmt.Errorf("reading the engine's merges: %w", err)
		}
		if merges == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
}
