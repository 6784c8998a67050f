package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// probedTrend is the query that a probe is compared with: a trend by day over all events.
const probedTrend = "SELECT toStartOfDay(timestamp) AS day, count() FROM events WHERE event = '$pageview' GROUP BY day ORDER BY day"

// probeCost compares a probe, which asks a ClickHouse that others write to whether there is new data, with a trend over the same events.
func probeCost(ctx context.Context, histories histories, events int) (goals []goal, err error) {
	engine, err := histories.start(ctx, wideHistory(events))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	config := clickhouse.Config{DSN: engine.DSN()}
	client, err := clickhouse.Open(config, zap.NewNop())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	place, err := admission.New(admission.Limits{Places: 2, Project: 2}).Enter(ctx, admission.Request{Project: benchProject})
	if err != nil {
		return nil, err
	}
	defer place.Leave()
	var first, again, trend []float64
	for range rounds {
		cold, warm, err := probes(ctx, config, place)
		if err != nil {
			return nil, err
		}
		first, again = append(first, cold), append(again, warm)
		_, seconds, err := kept(ctx, client, clickhouse.Query{SQL: probedTrend, Project: benchProject})
		if err != nil {
			return nil, err
		}
		trend = append(trend, seconds)
	}
	fmt.Printf("Whether there are new data, over %d events, seconds, median of %d alternating rounds\n\n", events, rounds)
	fmt.Printf("%-44s %10s %10s\n", "", "seconds", "of a trend")
	fmt.Printf("%-44s %10.3f\n", "a trend by day", median(trend))
	for _, p := range []struct {
		name    string
		seconds float64
		most    float64
	}{{"the first probe of a project", median(first), 2}, {"a probe of data that are known", median(again), 0.2}} {
		ratio := p.seconds / median(trend)
		fmt.Printf("%-44s %10.3f %10.2f\n", p.name, p.seconds, ratio)
		goals = append(goals, atMost(p.name, "a trend by day", p.most, ratio))
	}
	fmt.Println()
	return goals, nil
}

// probes probes the data twice with a new warehouse, and returns how many seconds each took.
func probes(ctx context.Context, config clickhouse.Config, place *admission.Place) (cold, warm float64, err error) {
	wh, err := warehouse.Open(config, nil, zap.NewNop())
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, wh.Close()) }()
	if _, err := wh.Prepare(ctx); err != nil {
		return 0, 0, err
	}
	reads := schema.Reads{Tables: []string{physical.Events}}
	look := func() (float64, error) {
		began := time.Now()
		data, err := wh.Data(ctx, place, benchProject, reads)
		took := time.Since(began).Seconds()
		if err != nil {
			return 0, err
		}
		if _, ok := data.Version(reads, time.Time{}, time.Time{}); !ok {
			return 0, errors.New("the version of the data is not known")
		}
		return took, nil
	}
	if cold, err = look(); err != nil {
		return 0, 0, err
	}
	warm, err = look()
	return cold, warm, err
}
