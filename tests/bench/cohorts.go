package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/cohort"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// cohortPeople is the number of people in the events.
const cohortPeople = 2_000_000

// cohortContest compares the calculation of a cohort with handwritten SQL for the same members. Both write them to the table of members.
type cohortContest struct {
	name    string
	filters string // the leaves, joined by AND
	hand    string

	members      string
	ours, theirs []float64 // seconds
}

// cohortEvents inserts events. Half of them are views, a tenth purchases.
const cohortEvents = `INSERT INTO {database}.events (uuid, event, timestamp, team_id, distinct_id, person_id, properties)
	WITH cityHash64(number, 'event') AS e, toUInt64(cityHash64(number, 'person') % {people}) AS person
	SELECT reinterpretAsUUID(sipHash128(number)), multiIf(e % 10 < 5, '$pageview', e % 10 = 5, 'buy', concat('event_', toString(e % 50))),
		toDateTime64({start} + e % {seconds}, 6, 'UTC') + toIntervalMicrosecond(e % 1000000), 1, concat('user-', toString(person)),
		reinterpretAsUUID(sipHash128(person, 'person')), concat('{"$browser":"', ['Chrome', 'Safari', 'Firefox'][1 + e % 3], '"}')
	FROM numbers({from}, {count})`

const cohortPersons = `INSERT INTO {database}.person (id, created_at, team_id, properties, version)
	SELECT reinterpretAsUUID(sipHash128(number, 'person')), toDateTime64({start}, 6, 'UTC'), 1, concat('{"plan":"', ['free', 'team', 'company'][1 + number % 3], '"}'), 1
	FROM numbers({people})`

const cohortMerges = `INSERT INTO {database}.person_distinct_id_overrides (team_id, distinct_id, person_id, is_deleted, version)
	SELECT 1, concat('user-', toString(number * 3)), reinterpretAsUUID(sipHash128(toUInt64(number * 3 + 1), 'person')), 0, 1 FROM numbers(2000)`

// cohortBatch is the number of events that one statement inserts.
const cohortBatch = 1_000_000

// cohortCalculations measures the calculation of cohorts of about a million people.
func cohortCalculations(ctx context.Context, scratch string, events int) (goals []goal, err error) {
	engine, err := startEngine(ctx, filepath.Join(scratch, "cohorts"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	client, err := clickhouse.Open(clickhouse.Config{DSN: engine.DSN(), Embedded: true}, zap.NewNop())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	if err := client.Migrate(ctx); err != nil {
		return nil, err
	}
	if err := fillCohorts(ctx, engine.DSN(), events); err != nil {
		return nil, err
	}
	all := cohortContests()
	for range rounds {
		for _, c := range all {
			if err := c.measure(ctx, client); err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	fmt.Printf("Calculation of cohorts over %d events of %d people, seconds, median of %d alternating rounds\n\n", events, cohortPeople, rounds)
	fmt.Printf("%-44s %10s %10s %10s %8s\n", "", "members", "our SQL", "by hand", "ratio")
	for _, c := range all {
		a, b := median(c.ours), median(c.theirs)
		fmt.Printf("%-44s %10s %10.3f %10.3f %8.2f\n", c.name, c.members, a, b, a/b)
		goals = append(goals, atMost(c.name, "handwritten SQL", 1.2, a/b))
	}
	fmt.Println()
	return goals, nil
}

func fillCohorts(ctx context.Context, dsn string, events int) (err error) {
	options, err := driver.ParseDSN(dsn)
	if err != nil {
		return fmt.Errorf("reading the engine's address: %w", err)
	}
	options.ReadTimeout = 10 * time.Minute
	conn, err := driver.Open(options)
	if err != nil {
		return fmt.Errorf("connecting to the engine: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	fmt.Fprintf(os.Stderr, "writing %d events of %d people …\n", events, cohortPeople)
	statements := []string{cohortPersons, cohortMerges}
	for from := 0; from < events; from += cohortBatch {
		statements = append(statements, strings.NewReplacer("{from}", fmt.Sprint(from), "{count}", fmt.Sprint(min(cohortBatch, events-from))).Replace(cohortEvents))
	}
	const seconds = generatedHistory * 24 * 60 * 60
	for _, sql := range statements {
		sql = strings.NewReplacer(
			"{database}", embedded.Database, "{people}", fmt.Sprint(cohortPeople), "{start}", fmt.Sprint(generatedNow.Unix()-seconds), "{seconds}", fmt.Sprint(seconds),
		).Replace(sql)
		if err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%w\n%s", err, sql)
		}
	}
	return settled(ctx, conn)
}

// measure computes the members once with each SQL, and compares them.
func (c *cohortContest) measure(ctx context.Context, client *clickhouse.Client) error {
	d, err := cohort.Read([]byte(`{"properties": {"type": "AND", "values": [`+c.filters+`]}}`), nil)
	if err != nil {
		return fmt.Errorf("reading the filters: %w", err)
	}
	compiled, err := compiler.CompileCohort(d, compiler.Env{Database: generatedSchema(), Now: generatedNow})
	if err != nil {
		return fmt.Errorf("compiling the cohort: %w", err)
	}
	params := make([]clickhouse.Param, len(compiled.Params))
	for i, p := range compiled.Params {
		params[i] = clickhouse.Param(p)
	}
	const ours, theirs = 1, 2
	seconds, err := calculate(ctx, client, ours, clickhouse.Query{SQL: compiled.SQL, Params: params, Project: benchProject})
	if err != nil {
		return fmt.Errorf("%w\n%s", err, compiled.SQL)
	}
	c.ours = append(c.ours, seconds)
	if seconds, err = calculate(ctx, client, theirs, clickhouse.Query{SQL: c.hand, Project: benchProject}); err != nil {
		return fmt.Errorf("%w\n%s", err, c.hand)
	}
	c.theirs = append(c.theirs, seconds)
	var sums [3]string
	for version := ours; version <= theirs; version++ {
		query := fmt.Sprintf("SELECT count(), toString(sum(cityHash64(person_id))) FROM %s WHERE team_id = %d AND version = %d", physical.ComputedMembers, benchProject, version)
		if err := client.Collect(ctx, clickhouse.Query{SQL: query, Project: benchProject}, func(cells []clickhouse.Cell) error {
			c.members, sums[version] = cells[0].Text(), cells[1].Text()
			return nil
		}); err != nil {
			return err
		}
	}
	if c.members == "0" || sums[ours] != sums[theirs] {
		return fmt.Errorf("our members are not those of the handwritten SQL, which are %s", c.members)
	}
	for version := uint64(ours); version <= theirs; version++ {
		if _, err := client.DropVersion(ctx, benchProject, benchCohort, version); err != nil {
			return err
		}
	}
	return nil
}

// calculate writes the ids of a query to the table of members, and returns how many seconds it took.
func calculate(ctx context.Context, client *clickhouse.Client, version uint64, q clickhouse.Query) (float64, error) {
	start := time.Now()
	err := client.Fill(ctx, clickhouse.Fill{
		Query: q, Table: physical.ComputedMembers, Columns: []string{cohort.PersonID},
		Fixed: []clickhouse.FixedColumn{{Name: "cohort_id", Number: benchCohort}, {Name: "sign", Number: 1}, {Name: "version", Number: version}},
	})
	return time.Since(start).Seconds(), err
}

// cohortContests returns the comparisons. Their windows are the last 60 of 180 days.
func cohortContests() []*cohortContest {
	const (
		window = `"time_value": 60, "time_interval": "day"`
		within = "timestamp >= toDateTime64('2024-05-01 00:00:00', 6, 'UTC') AND timestamp <= toDateTime64('2024-06-30 23:59:59.999999', 6, 'UTC')"
		exact  = "timestamp > toDateTime64('2024-05-01 00:00:00', 6, 'UTC') AND timestamp <= toDateTime64('2024-06-30 00:00:00', 6, 'UTC')"
		merged = "LEFT ANY JOIN (SELECT distinct_id, argMax(person_id, version) AS person_id FROM person_distinct_id_overrides WHERE team_id = 1 " +
			"GROUP BY distinct_id HAVING argMax(is_deleted, version) = 0) AS o ON e.distinct_id = o.distinct_id"
		person = "if(notEmpty(o.person_id), o.person_id, e.person_id)"
		onPlan = "SELECT id FROM person WHERE team_id = 1 GROUP BY id HAVING argMax(is_deleted = 0 AND ifNull(properties.plan.:String = 'team', 0), version)"
	)
	events := func(columns, where, having string) string {
		return "SELECT " + person + " AS person FROM (SELECT " + columns + "distinct_id, person_id FROM events WHERE team_id = 1 AND " + where + ") AS e " + merged +
			" GROUP BY person" + having
	}
	leaf := func(name, value, more string) string {
		return fmt.Sprintf(`{"type": "behavioral", "key": %q, "value": %q, "event_type": "events", %s}`, name, value, more)
	}
	const team = `{"type": "person", "key": "plan", "operator": "exact", "value": "team"}`
	return []*cohortContest{
		{
			name: "cohort: who did something in 60 days", filters: leaf("$pageview", "performed_event", window),
			hand: events("", "event = '$pageview' AND "+within, ""),
		},
		{
			name:    "cohort: twice or more, people on a plan",
			filters: leaf("$pageview", "performed_event_multiple", window+`, "operator": "gte", "operator_value": 2`) + ", " + team,
			hand:    events("", "event = '$pageview' AND "+exact, " HAVING count() >= 2 AND person IN ("+onPlan+")"),
		},
		{
			name:    "cohort: one event and not another",
			filters: leaf("$pageview", "performed_event", window) + ", " + leaf("buy", "performed_event", window+`, "negation": true`),
			hand: events("event, ", "event IN ('$pageview', 'buy') AND "+within,
				" HAVING countIf(event = '$pageview') > 0 AND countIf(event = 'buy') = 0"),
		},
		{
			name:    "cohort: for the first time in 60 days",
			filters: leaf("$pageview", "performed_event_first_time", window),
			hand: events("timestamp, ", "event = '$pageview' AND timestamp <= toDateTime64('2024-06-30 23:59:59.999999', 6, 'UTC')",
				" HAVING min(timestamp) >= toDateTime64('2024-05-01 00:00:00', 6, 'UTC')"),
		},
		{
			name: "cohort: two events in sequence within 7 days",
			filters: leaf("$pageview", "performed_event_sequence",
				window+`, "seq_event": "buy", "seq_event_type": "events", "seq_time_value": 7, "seq_time_interval": "day"`),
			hand: events("timestamp, event, ", "event IN ('$pageview', 'buy') AND "+within,
				" HAVING windowFunnel(604800000000)(toUInt64(toUnixTimestamp64Micro(timestamp)), event = '$pageview', event = 'buy') = 2"),
		},
	}
}
