// Command bench prints the figures in docs/performance.md: ratios of alternating measurements on the same machine, and a summary table with their goals at
// the end. Arguments select figures: cached (which needs wrk and h2load), stale, rows, exports, properties, insights, settled, settled-growth, probe,
// cohorts, capture, import, growth, scale, idle, compile; the default is all of these. Another figure, profile, shows where the time of a hit goes.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// rounds is how often candidates take turns by default.
const rounds = 5

func main() {
	var cached cachedBench
	var insights insightBench
	var capture captureBench
	var imports importBench
	flag.IntVar(&cached.rounds, "cached-rounds", rounds, "how often each of two servers is loaded, for each configuration")
	flag.IntVar(&cached.seconds, "cached-seconds", 3, "how long one such load takes, in seconds")
	flag.IntVar(&insights.events, "events", 10_000_000, "number of events for the insights, the settled past and the cohorts")
	data := flag.String("data", "", "`folder` that keeps generated events for the next run (default: generate them each time)")
	flag.IntVar(&capture.seconds, "capture-seconds", 20, "how long events are captured, in seconds, for each size of batches")
	flag.IntVar(&capture.size, "capture-size", 0, "the size of batches of captured events; 0 means each of 1, 10 and 100")
	flag.IntVar(&capture.rate, "capture-rate", 20_000, "events per second in batches of 100")
	flag.IntVar(&imports.events, "import-events", 500_000, "number of events that are imported")
	growth := flag.Int("growth-events", 10_000_000, "number of events of the largest history of the figures growth and settled-growth; growth has two others with a tenth and a hundredth")
	document := flag.String("record", "", "`file` of Markdown whose figures are replaced by those of this run")
	flag.Parse()
	if err := run(context.Background(), flag.Args(), &cached, &insights, &capture, &imports, *growth, *data, *document); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(
	ctx context.Context, chosen []string, cached *cachedBench, insights *insightBench, capture *captureBench, imports *importBench, growthEvents int, data, document string,
) error {
	folder, err := os.MkdirTemp("", "analytics-bench-")
	if err != nil {
		return fmt.Errorf("creating a folder: %w", err)
	}
	defer os.RemoveAll(folder)
	if data != "" { // symbolic links point to it
		if data, err = filepath.Abs(data); err != nil {
			return fmt.Errorf("finding the folder of events: %w", err)
		}
	}
	figures := figuresOf(ctx, folder, histories{cmp.Or(data, folder)}, cached, insights, capture, imports, growthEvents)
	for _, name := range chosen {
		if !slices.ContainsFunc(figures, func(f figure) bool { return f.name == name }) {
			return fmt.Errorf("unknown figure %q", name)
		}
	}
	var goals []goal
	for _, f := range figures {
		if len(chosen) == 0 && f.name == profileFigure || len(chosen) > 0 && !slices.Contains(chosen, f.name) {
			continue
		}
		text, reached, err := printed(f.measure)
		if err != nil {
			return fmt.Errorf("measuring %s: %w", f.name, err)
		}
		if document != "" && f.name != profileFigure {
			if err := record(document, command(), f.name, text, reached, time.Now()); err != nil {
				return err
			}
		}
		goals = append(goals, reached...)
	}
	if len(goals) > 0 {
		printGoals(goals)
	}
	return nil
}

// figuresOf returns all figures.
func figuresOf(
	ctx context.Context, folder string, kept histories, cached *cachedBench, insights *insightBench, capture *captureBench, imports *importBench, growthEvents int,
) []figure {
	return []figure{
		{"cached", func() ([]goal, error) { return cached.measure(ctx, folder) }},
		{"stale", func() ([]goal, error) { return staleHits(folder) }},
		{"rows", func() ([]goal, error) { return uncachedRows(ctx, folder) }},
		{"exports", func() ([]goal, error) { return exportMemory(folder) }},
		{"properties", func() ([]goal, error) { return propertyReads(ctx, folder) }},
		{"insights", func() ([]goal, error) { return insights.measure(ctx, kept) }},
		{"settled", func() ([]goal, error) { return settledPast(ctx, folder, kept, "settled", wideHistory(insights.events)) }},
		{"settled-growth", func() ([]goal, error) {
			return settledPast(ctx, folder, kept, "settled-growth", growingHistory(growthEvents))
		}},
		{"probe", func() ([]goal, error) { return probeCost(ctx, kept, insights.events) }},
		{"cohorts", func() ([]goal, error) { return cohortCalculations(ctx, folder, insights.events) }},
		{"capture", func() ([]goal, error) { return capture.measure(folder) }},
		{"import", func() ([]goal, error) { return imports.measure(folder) }},
		{"growth", func() ([]goal, error) { return growth(ctx, kept, growthEvents) }},
		{"scale", func() ([]goal, error) { return scale(ctx, folder) }},
		{"idle", func() ([]goal, error) { return idle(folder) }},
		{"compile", compileBenchmark},
		{profileFigure, func() ([]goal, error) { return profileHit(folder) }},
	}
}

// profileFigure has no goal, and is only printed if it is an argument.
const profileFigure = "profile"

// figure is one of the printed tables.
type figure struct {
	name    string
	measure func() ([]goal, error)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// compileLine matches a line of the compiler's benchmark: nanoseconds and allocations.
var compileLine = regexp.MustCompile(`(?m)^BenchmarkCompile/\S+\s+\d+\s+([\d.]+) ns/op.*\s(\d+) allocs/op`)

// compileBenchmark runs the compiler's own benchmark.
func compileBenchmark() ([]goal, error) {
	root, err := harness.Root()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	cmd := exec.Command("go", "test", "./compiler", "-run", "^$", "-bench", "Compile", "-benchmem")
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, io.MultiWriter(os.Stdout, &out), os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("the compile benchmark: %w", err)
	}
	fmt.Println()
	lines := compileLine.FindAllStringSubmatch(out.String(), -1)
	if len(lines) == 0 {
		return nil, errors.New("the compile benchmark printed no figures")
	}
	var slowest, most float64
	for _, line := range lines {
		ns, err := strconv.ParseFloat(line[1], 64)
		if err != nil {
			return nil, fmt.Errorf("the compile benchmark: %w", err)
		}
		allocations, err := strconv.ParseFloat(line[2], 64)
		if err != nil {
			return nil, fmt.Errorf("the compile benchmark: %w", err)
		}
		slowest, most = max(slowest, ns/1000), max(most, allocations)
	}
	queries := fmt.Sprintf("%d typical queries", len(lines))
	return []goal{
		{what: "compile HogQL, the slowest", against: queries, goal: "< 100 µs", measured: fmt.Sprintf("%.0f µs", slowest), missed: slowest >= 100},
		{what: "compile HogQL, the most allocations", against: queries, goal: "< 300", measured: fmt.Sprintf("%.0f", most), missed: most >= 300},
	}, nil
}
