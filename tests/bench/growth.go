package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// eventsPerPerson is the average number of events per person in the compared histories.
const eventsPerPerson = 50

// maxBend is the largest factor by which the time of a query over ten times the events may exceed ten times the time.
const maxBend = 1.25

// grown are the names of the contests whose time is compared.
var grown = []string{
	"trend of one event, 90 days", "the same, unique people", "the same, by a property, 25 values and others",
	"retention over 12 weeks", "funnel of 3 steps, 90 days",
}

// growth measures how long insights take over histories of three sizes, whose events have ten properties.
func growth(ctx context.Context, kept histories, events int) (goals []goal, err error) {
	names := []int{events / 100, events / 10, events}
	took := make(map[string][]float64)
	for _, n := range names {
		if err := measureGrowth(ctx, kept, growingHistory(n), took); err != nil {
			return nil, err
		}
	}
	fmt.Printf("Insights over histories of three sizes, seconds, medians of %d rounds, and nanoseconds per event of the largest\n\n", growthRounds)
	fmt.Printf("%-48s %10d %10d %10d %10s\n", "events", names[0], names[1], names[2], "ns/event")
	for _, name := range grown {
		t := took[name]
		fmt.Printf("%-48s %10.3f %10.3f %10.3f %10.2f\n", name, t[0], t[1], t[2], t[2]/float64(names[2])*1e9)
		goals = append(goals, atMost(name+", ten times the events", "ten times the time", maxBend, t[2]/t[1]/10))
	}
	fmt.Println()
	return goals, nil
}

// growthRounds is how often each insight is run.
const growthRounds = 3

func measureGrowth(ctx context.Context, kept histories, h history, took map[string][]float64) (err error) {
	if _, err := harness.Binary(); err != nil { // building is not part of writing
		return err
	}
	_, missing := os.Stat(kept.of(h))
	began := time.Now()
	engine, err := kept.start(ctx, h)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	size, err := folderSize(kept.of(h))
	if err != nil {
		return err
	}
	written := "of an earlier run"
	if missing != nil {
		written = fmt.Sprintf("written in %.0f s", time.Since(began).Seconds())
	}
	fmt.Printf("%d events: %s, %.1f bytes per event on the disk\n", h.events, written, float64(size)/float64(h.events))
	client, err := clickhouse.Open(clickhouse.Config{DSN: engine.DSN()}, zap.NewNop())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	known := append(contests(), funnelContests()...)
	var all []*contest
	for _, name := range grown {
		i := slices.IndexFunc(known, func(c *contest) bool { return c.name == name })
		if i < 0 {
			return fmt.Errorf("there is no insight %q", name)
		}
		all = append(all, known[i])
	}
	for range growthRounds {
		for _, c := range all {
			if err := c.measure(ctx, client); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
		}
	}
	for _, c := range all {
		took[c.name] = append(took[c.name], median(c.ours))
	}
	return nil
}
