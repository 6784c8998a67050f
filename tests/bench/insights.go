package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// contest compares an insight with handwritten SQL for the same numbers.
type contest struct {
	name string
	node string // the insight, as JSON for the query route
	hand string // ClickHouse SQL
	goal float64

	// numbers returns the numbers by which both results are compared; nil means all numbers above zero.
	numbers      func(v any) []float64
	ours, theirs []float64 // seconds
}

// insightRounds is how often each insight is run: after five rounds, the medians of the fast ones differ by a fifth between runs.
const insightRounds = 15

// insightBench compares the SQL of insights over generated events with handwritten SQL.
type insightBench struct{ events int }

func (b *insightBench) measure(ctx context.Context, kept histories) (goals []goal, err error) {
	engine, err := kept.start(ctx, wideHistory(b.events))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	client, err := clickhouse.Open(clickhouse.Config{DSN: engine.DSN()}, zap.NewNop())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()

	if err := fillCohort(ctx, client); err != nil {
		return nil, err
	}
	all := append(contests(), funnelContests()...)
	for range insightRounds {
		for _, c := range all {
			if err := c.measure(ctx, client); err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	fmt.Printf("Insights over %d events, seconds, median of %d alternating rounds\n\n", b.events, insightRounds)
	fmt.Printf("%-44s %10s %10s %8s %8s\n", "", "our SQL", "handwritten", "ratio", "goal")
	for _, c := range all {
		a, b := median(c.ours), median(c.theirs)
		fmt.Printf("%-44s %10.3f %10.3f %8.2f %8.2f\n", c.name, a, b, a/b, c.goal)
		goals = append(goals, atMost(c.name, "handwritten SQL", c.goal, a/b))
	}
	fmt.Println()
	return goals, nil
}

// generatedSchema returns the schema of the generated project.
func generatedSchema() *schema.Database {
	return &schema.Database{
		Project: benchProject, Location: time.UTC, Layout: schema.NativeLayout(), Cohorts: benchCohorts,
		Properties: schema.PropertyTypes{
			{Scope: schema.EventProperty, Name: "amount"}: schema.NumericProperty,
			{Scope: schema.EventProperty, Name: "paid"}:   schema.BooleanProperty,
		},
		Values: generatedValues(), ValuesComplete: true,
	}
}

// generatedValues returns the kinds of values of the generated properties, as recorded when events arrive.
func generatedValues() schema.PropertyValues {
	values := schema.PropertyValues{
		{Scope: schema.EventProperty, Name: "amount"}: physical.Wholes | physical.Floats,
		{Scope: schema.EventProperty, Name: "paid"}:   physical.Booleans,
		{Scope: schema.PersonProperty, Name: "seats"}: physical.Wholes,
		{Scope: schema.PersonProperty, Name: "email"}: physical.Texts,
		{Scope: schema.PersonProperty, Name: "plan"}:  physical.Texts,
	}
	for _, name := range []string{"$browser", "$os", "$current_url", "$pathname", "$session_id", "$referring_domain", "$geoip_country_code"} {
		values[schema.PropertyKey{Scope: schema.EventProperty, Name: name}] = physical.Texts
	}
	return values
}

// measure runs both sides once and compares their numbers.
func (c *contest) measure(ctx context.Context, client *clickhouse.Client) error {
	node, err := compiler.Parse([]byte(c.node))
	if err != nil {
		return fmt.Errorf("reading the insight: %w", err)
	}
	compiled, err := compiler.Compile(node, compiler.Env{Database: generatedSchema(), Now: generatedNow})
	if err != nil {
		return fmt.Errorf("compiling the insight: %w", err)
	}
	params := make([]clickhouse.Param, len(compiled.Params))
	for i, p := range compiled.Params {
		params[i] = clickhouse.Param(p)
	}
	rows, seconds, err := kept(ctx, client, clickhouse.Query{SQL: compiled.SQL, Params: params, Project: benchProject})
	if err != nil {
		return err
	}
	answer, err := compiled.Shape(rows.Rows())
	if err != nil {
		return fmt.Errorf("shaping the result: %w", err)
	}
	c.ours = append(c.ours, seconds)
	ours, err := c.digest(slices.Values([][]byte{answer.Results}))
	if err != nil {
		return err
	}
	rows, seconds, err = kept(ctx, client, clickhouse.Query{SQL: c.hand, Project: benchProject})
	if err != nil {
		return err
	}
	c.theirs = append(c.theirs, seconds)
	theirs, err := c.digest(rows.Rows())
	if err != nil {
		return err
	}
	if len(ours) == 0 || !slices.EqualFunc(ours, theirs, near) {
		return fmt.Errorf("our numbers are %.20v …, those of the handwritten SQL %.20v … (%d, %d)", ours[:min(20, len(ours))], theirs[:min(20, len(theirs))], len(ours), len(theirs))
	}
	return nil
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b)) }

// digest returns the sorted numbers of a result.
func (c *contest) digest(rows iter.Seq[[]byte]) ([]float64, error) {
	numbers := c.numbers
	if numbers == nil {
		numbers = positive
	}
	var out []float64
	for row := range rows {
		var v any
		if err := json.Unmarshal(row, &v); err != nil {
			return nil, fmt.Errorf("reading a row: %w", err)
		}
		out = append(out, numbers(v)...)
	}
	slices.Sort(out)
	return out, nil
}

// positive returns the numbers above zero in a row of handwritten SQL, or in the points of a result's items.
func positive(v any) []float64 {
	switch v := v.(type) {
	case float64:
		if v > 0 {
			return []float64{v}
		}
	case []any:
		var out []float64
		for _, e := range v {
			out = append(out, positive(e)...)
		}
		return out
	case map[string]any:
		return positive(v["data"])
	}
	return nil
}

// kept runs a query and keeps its rows.
func kept(ctx context.Context, client *clickhouse.Client, q clickhouse.Query) (*cache.Result, float64, error) {
	sink := keptRows{cache.NewBuilder(cache.Limits{MaxBytes: 1 << 30})}
	start := time.Now()
	if _, err := client.Query(ctx, q, sink); err != nil {
		return nil, 0, fmt.Errorf("%w\n%s", errors.Join(err, errors.Unwrap(err)), q.SQL)
	}
	return sink.rows.Result(), time.Since(start).Seconds(), nil
}

type keptRows struct{ rows *cache.Builder }

func (k keptRows) Columns([]clickhouse.Column) error { return k.rows.Columns(nil) }
func (k keptRows) Row(row []byte) error              { return k.rows.Row(row) }

// contests returns the comparisons. The ranges end on the last full day of the generated history.
func contests() []*contest {
	const (
		ninety  = `"dateRange": {"date_from": "2024-03-31", "date_to": "2024-06-28"}`
		within  = "timestamp >= toDateTime64('2024-03-31 00:00:00', 6, 'UTC') AND timestamp <= toDateTime64('2024-06-28 23:59:59.999999', 6, 'UTC')"
		half    = "timestamp >= toDateTime64('2024-01-01 00:00:00', 6, 'UTC') AND timestamp <= toDateTime64('2024-06-28 23:59:59.999999', 6, 'UTC')"
		merged  = "LEFT ANY JOIN (SELECT distinct_id, argMax(person_id, version) AS person_id FROM person_distinct_id_overrides WHERE team_id = 1 GROUP BY distinct_id HAVING argMax(is_deleted, version) = 0) AS o ON e.distinct_id = o.distinct_id"
		browser = "properties.`$browser`.:String"
	)
	return slices.Concat([]*contest{
		{
			name: "trend of one event, 90 days", goal: 1.15,
			node: `{"kind": "TrendsQuery", ` + ninety + `, "series": [{"kind": "EventsNode", "event": "$pageview"}]}`,
			hand: "SELECT toDate(timestamp) AS day, count() FROM events WHERE team_id = 1 AND event = '$pageview' AND " + within + " GROUP BY day",
		},
		{
			name: "the same, unique people", goal: 1.15,
			node: `{"kind": "TrendsQuery", ` + ninety + `, "series": [{"kind": "EventsNode", "event": "$pageview", "math": "dau"}]}`,
			hand: "SELECT toDate(timestamp) AS day, uniqExact(if(notEmpty(o.person_id), o.person_id, e.person_id)) FROM " +
				"(SELECT timestamp, distinct_id, person_id FROM events WHERE team_id = 1 AND event = '$pageview' AND " + within + ") AS e " + merged + " GROUP BY day",
		},
		{
			name: "the same, by a property, 25 values and others", goal: 1.15,
			node: `{"kind": "TrendsQuery", ` + ninety + `, "series": [{"kind": "EventsNode", "event": "$pageview"}], "breakdownFilter": {"breakdown": "$referring_domain"}}`,
			hand: strings.ReplaceAll("SELECT if(place <= 25, value, 'other') AS shown, day, sum(n) FROM (SELECT value, day, n, dense_rank() OVER (ORDER BY total DESC, value) AS place FROM "+
				"(SELECT "+browser+" AS value, toDate(timestamp) AS day, count() AS n, sum(n) OVER (PARTITION BY value) AS total FROM events "+
				"WHERE team_id = 1 AND event = '$pageview' AND "+within+" GROUP BY value, day)) GROUP BY shown, day", "$browser", "$referring_domain"),
		},
		{
			name: "two series, a formula, compared", goal: 1.15,
			node: `{"kind": "TrendsQuery", ` + ninety + `, "compareFilter": {"compare": true}, "trendsFilter": {"formula": "B/A"},
				"series": [{"kind": "EventsNode", "event": "$pageview"}, {"kind": "EventsNode", "event": "event_01"}]}`,
			hand: "SELECT toDate(timestamp) AS day, countIf(event = 'event_01') / countIf(event = '$pageview') FROM events " +
				"WHERE team_id = 1 AND event IN ('$pageview', 'event_01') AND " + half + " GROUP BY day",
		},
		pathsContest(),
	}, cohortTrends(within, merged), retentionContests())
}
