package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

const (
	settledDays = 90
	// settledAsks is how often each query is run, each time a day later. The first run computes all of its buckets.
	settledAsks = 12
)

// settledFigure is a query over the last ninety days, run again each day.
type settledFigure struct {
	name string
	node string // {from} and {to} are the first and the last day

	first       float64   // seconds of CPU time of the first run, without cached buckets
	again       float64   // of the later runs, in total
	whole       float64   // of the same results computed as a whole
	wait, waits []float64 // milliseconds of wall time: assembled from buckets, and as a whole
	buckets     string    // Cache-Status of the last run
}

func settledFigures() []*settledFigure {
	trend := func(series, more string) string {
		return `{"kind":"TrendsQuery","interval":"day","dateRange":{"date_from":"{from}","date_to":"{to}"},"series":[{"kind":"EventsNode","event":"$pageview"` + series + `}]` + more + `}`
	}
	return []*settledFigure{
		{name: "count of events", node: trend("", "")},
		{name: "unique users", node: trend(`,"math":"dau"`, "")},
		{name: "count by a property", node: trend("", `,"breakdownFilter":{"breakdown":"$browser","breakdown_type":"event"}`)},
		{name: "lifecycle", node: `{"kind":"LifecycleQuery","interval":"day","dateRange":{"date_from":"{from}","date_to":"{to}"},"series":[{"kind":"EventsNode","event":"$pageview"}]}`},
		{name: "HogQL by day", node: `{"kind":"HogQLQuery","query":"select toStartOfDay(timestamp) as day, count() as n from events where timestamp >= toDateTime('{from} 00:00:00') ` +
			`and timestamp < toDateTime('{to} 00:00:00') + interval 1 day group by day order by day"}`},
	}
}

// settledPast compares the cost of running queries over the last ninety days again a day later with the cost of computing them as a whole.
func settledPast(ctx context.Context, scratch string, kept histories, name string, h history) (goals []goal, err error) {
	client, err := open(scratch, name, unlimited)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, client.Server.Stop()) }()
	if err := client.Server.Stop(); err != nil {
		return nil, err
	}
	data := filepath.Join(scratch, name, "data", "engine")
	engine, err := kept.start(ctx, h)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(engine.Close(), os.RemoveAll(data), os.Symlink(kept.of(h), data), client.Server.Run()); err != nil {
		return nil, err
	}
	all := settledFigures()
	for n := range settledAsks {
		for _, f := range all {
			if err := f.measure(client, generatedNow.AddDate(0, 0, n-settledAsks), n == 0); err != nil {
				return nil, fmt.Errorf("%s: %w", f.name, err)
			}
		}
	}
	fmt.Printf("Answers of %d days by day over %d events of %d days, asked for again %d times, each time a day later: seconds of processor time\n\n",
		settledDays, h.events, generatedHistory, settledAsks-1)
	fmt.Printf("%-24s %12s %12s %12s %8s %10s %10s  %s\n", "", "first time", "again", "as a whole", "ratio", "wall, ms", "whole, ms", "buckets")
	for _, f := range all {
		again, whole := f.again/(settledAsks-1), f.whole/(settledAsks-1)
		fmt.Printf("%-24s %12.3f %12.3f %12.3f %8.3f %10.1f %10.1f  %s\n", f.name, f.first, again, whole, again/whole, median(f.wait), median(f.waits), f.buckets)
		goals = append(goals, goal{
			what: "a day later: " + f.name, against: "the whole answer, processor time", goal: "<= 0.05", measured: fmt.Sprintf("%.3f", again/whole), missed: again > whole*0.05,
		})
	}
	fmt.Println()
	return goals, nil
}

// measure runs the query for the days until last: assembled from buckets, and as a whole.
func (f *settledFigure) measure(client *harness.Client, last time.Time, first bool) error {
	together, wall, header, err := f.ask(client, last, "blocking")
	if err != nil {
		return err
	}
	f.buckets = header.Get("Cache-Status")
	whole, walls, _, err := f.ask(client, last, "force_blocking")
	if err != nil {
		return err
	}
	if first {
		f.first = together
		return nil
	}
	f.again += together
	f.whole += whole
	f.wait, f.waits = append(f.wait, wall), append(f.waits, walls)
	return nil
}

// ask returns the CPU time in seconds and the wall time in milliseconds.
func (f *settledFigure) ask(client *harness.Client, last time.Time, refresh string) (processor, wall float64, header http.Header, err error) {
	node := strings.NewReplacer(
		"{from}", last.AddDate(0, 0, 1-settledDays).Format(time.DateOnly), "{to}", last.Format(time.DateOnly),
	).Replace(f.node)
	before, err := client.Server.ProcessorTime()
	if err != nil {
		return 0, 0, nil, err
	}
	began := time.Now()
	answer, err := client.Send(http.MethodPost, "query/", `{"refresh":"`+refresh+`","query":`+node+`}`)
	took := time.Since(began)
	if err := checked("asking", answer, err, http.StatusOK); err != nil {
		return 0, 0, nil, err
	}
	after, err := client.Server.ProcessorTime()
	return (after - before).Seconds(), took.Seconds() * 1000, answer.Header, err
}
