// Command bench prints the figures in docs/performance.md: ratios of alternating measurements on the same machine, and a
// summary table with their goals at the end. Arguments select figures: cached (which needs wrk), stale,
// rows, exports, properties, insights, settled, probe, cohorts, capture, import, compile; the default is all of these. Another one, profile, shows where the time of a hit
// goes.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

const (
	rounds     = 5
	runFor     = "4s"
	bodyTarget = 2048 // bytes of the served response
)

func main() {
	var insights insightBench
	var capture captureBench
	var imports importBench
	flag.IntVar(&insights.events, "events", 10_000_000, "number of events for the insights, the settled past and the cohorts")
	flag.StringVar(&insights.folder, "data", "", "`folder` that keeps these events for the next run (default: generate them each time)")
	flag.IntVar(&capture.seconds, "capture-seconds", 20, "how long events are captured, in seconds, for each size of batches")
	flag.IntVar(&capture.size, "capture-size", 0, "the size of batches of captured events; 0 means each of 1, 10 and 100")
	flag.IntVar(&capture.rate, "capture-rate", 20_000, "events per second in batches of 100")
	flag.IntVar(&imports.events, "import-events", 500_000, "number of events that are imported")
	flag.Parse()
	if err := run(context.Background(), flag.Args(), &insights, &capture, &imports); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, chosen []string, insights *insightBench, capture *captureBench, imports *importBench) error {
	folder, err := os.MkdirTemp("", "analytics-bench-")
	if err != nil {
		return fmt.Errorf("creating a folder: %w", err)
	}
	defer os.RemoveAll(folder)
	figures := []figure{
		{"cached", func() ([]goal, error) { return cachedRun(folder) }},
		{"stale", func() ([]goal, error) { return staleHits(folder) }},
		{"rows", func() ([]goal, error) { return uncachedRows(ctx, folder) }},
		{"exports", func() ([]goal, error) { return exportMemory(folder) }},
		{"properties", func() ([]goal, error) { return propertyReads(ctx, folder) }},
		{"insights", func() ([]goal, error) { return insights.measure(ctx, folder) }},
		{"settled", func() ([]goal, error) { return settledPast(ctx, folder, insights.events) }},
		{"probe", func() ([]goal, error) { return probeCost(ctx, folder, insights) }},
		{"cohorts", func() ([]goal, error) { return cohortCalculations(ctx, folder, insights.events) }},
		{"capture", func() ([]goal, error) { return capture.measure(folder) }},
		{"import", func() ([]goal, error) { return imports.measure(folder) }},
		{"compile", compileBenchmark},
		{profileFigure, func() ([]goal, error) { return profileHit(folder) }},
	}
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
		reached, err := f.measure()
		if err != nil {
			return fmt.Errorf("measuring %s: %w", f.name, err)
		}
		goals = append(goals, reached...)
	}
	if len(goals) > 0 {
		printGoals(goals)
	}
	return nil
}

// profileFigure has no goal, and is only printed if it is an argument.
const profileFigure = "profile"

// figure is one of the printed tables.
type figure struct {
	name    string
	measure func() ([]goal, error)
}

// rival is a server of the same bytes.
type rival struct {
	name, url string
	header    map[string]string
	persecond []float64
}

// cachedRun compares a cached endpoint run with Caddy's respond, which responds to the same POST with the same bytes.
func cachedRun(folder string) (goals []goal, err error) {
	if _, err := exec.LookPath("wrk"); err != nil {
		return nil, errors.New("wrk is missing; on Debian: apt-get install wrk")
	}
	client, err := open(folder, "cached", unlimited)
	if err != nil {
		return nil, err
	}
	server := client.Server
	defer func() { err = errors.Join(err, server.Stop()) }()
	if err := publish(client); err != nil {
		return nil, err
	}
	body, err := warm(client)
	if err != nil {
		return nil, err
	}
	if err := serveStatically(server, body); err != nil {
		return nil, err
	}
	ours := cachedRival(client)
	rivals := []*rival{{name: "Caddy respond, same bytes", url: server.URL + "/static", header: ours.header}, ours}
	if url := os.Getenv("BENCH_CHPROXY_URL"); url != "" {
		rivals = append(rivals, &rival{name: "chproxy, cached", url: url})
	}
	for range rounds { // alternate, so that noise affects all alike
		for _, r := range rivals {
			n, err := load(folder, r, runFor)
			if err != nil {
				return nil, err
			}
			r.persecond = append(r.persecond, n)
		}
	}
	fmt.Printf("Requests per second, one wrk thread, 16 connections, %d bytes, median of %d alternating rounds of %s\n\n", len(body), rounds, runFor)
	fmt.Printf("%-28s %10s %8s\n", "", "req/s", "ratio")
	base := median(rivals[0].persecond)
	for _, r := range rivals {
		fmt.Printf("%-28s %10.0f %8.2f\n", r.name, median(r.persecond), median(r.persecond)/base)
	}
	what := fmt.Sprintf("cached run, requests/s, %d bytes", len(body))
	goals = append(goals, atLeast(what, "Caddy respond, same bytes, same POST", 0.9, median(rivals[1].persecond)/base))
	if len(rivals) == 3 {
		ratio := median(rivals[1].persecond) / median(rivals[2].persecond)
		fmt.Printf("%-28s %10s %8.2f\n", "cached run / chproxy", "", ratio)
		goals = append(goals, atLeast(what, "chproxy, a cached response of the same size", 1.5, ratio))
	} else {
		fmt.Println("chproxy is not measured: set BENCH_CHPROXY_URL to a chproxy URL that serves a cached query of this size")
		goals = append(goals, goal{what: what, against: "chproxy", goal: ">= 1.5", measured: "not measured: BENCH_CHPROXY_URL is not set"})
	}
	fmt.Println()
	return goals, nil
}

// cachedRival returns the endpoint that publish creates.
func cachedRival(client *harness.Client) *rival {
	return &rival{
		name: "cached endpoint run", url: fmt.Sprintf("%s/api/projects/%d/endpoints/bench/run", client.Server.URL, client.Project),
		header: map[string]string{"Authorization": "Bearer " + client.Key, "Content-Type": "application/json"},
	}
}

// publish creates an endpoint with a response of about bodyTarget bytes.
func publish(client *harness.Client) error {
	query := "select number as position, concat('row number ', toString(number)) as label, number * 1.5 as value from numbers(52)"
	answer, err := client.Send(http.MethodPost, "endpoints/", map[string]any{
		"name": "bench", "query": map[string]any{"kind": "HogQLQuery", "query": query},
	})
	if err != nil || answer.Status != http.StatusCreated {
		return fmt.Errorf("publishing: %w: %s", err, answer.Raw)
	}
	return nil
}

// runBody is the body of every load request.
const runBody = `{"limit":100}`

// warm runs the endpoint until it is served from the cache, and returns the body.
func warm(client *harness.Client) ([]byte, error) {
	for range 100 {
		answer, err := client.Send(http.MethodPost, "endpoints/bench/run", runBody)
		if err != nil || answer.Status != http.StatusOK {
			return nil, fmt.Errorf("running: %w: %s", err, answer.Raw)
		}
		if strings.Contains(answer.Header.Get("Cache-Status"), "; hit") {
			if n := len(answer.Raw); n < bodyTarget*3/4 || n > bodyTarget*5/4 {
				return nil, fmt.Errorf("the response has %d bytes, want about %d", n, bodyTarget)
			}
			return answer.Raw, nil
		}
	}
	return nil, errors.New("the run was never served from the cache")
}

// serveStatically reloads the config with a respond directive that serves the same bytes.
func serveStatically(server *harness.Server, body []byte) error {
	site := "respond /static `" + string(body) + "`\n\theader /static Content-Type application/json"
	if err := os.WriteFile(server.Caddyfile(), []byte(server.Config(site)), 0o600); err != nil {
		return fmt.Errorf("writing the Caddyfile: %w", err)
	}
	if err := server.Reload(); err != nil {
		return err
	}
	req, err := http.NewRequest(http.MethodPost, server.URL+"/static", strings.NewReader(runBody))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("requesting respond: %w", err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil || !bytes.Equal(got, body) {
		return fmt.Errorf("respond serves %d bytes, want %d: %w", len(got), len(body), err)
	}
	return nil
}

var (
	perSecond = regexp.MustCompile(`Requests/sec:\s+([\d.]+)`)
	failed    = regexp.MustCompile(`Non-2xx or 3xx responses|Socket errors`)
)

// load runs wrk against a rival once.
func load(folder string, r *rival, runFor string) (float64, error) {
	var script strings.Builder
	fmt.Fprintf(&script, "wrk.method = \"POST\"\nwrk.body = [[%s]]\n", runBody)
	for name, value := range r.header {
		fmt.Fprintf(&script, "wrk.headers[%q] = %q\n", name, value)
	}
	path := filepath.Join(folder, "load.lua")
	if err := os.WriteFile(path, []byte(script.String()), 0o600); err != nil {
		return 0, fmt.Errorf("writing the load script: %w", err)
	}
	out, err := exec.Command("wrk", "-t1", "-c16", "-d"+runFor, "-s", path, r.url).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("wrk: %w: %s", err, out)
	}
	match := perSecond.FindSubmatch(out)
	if match == nil || failed.Match(out) {
		return 0, fmt.Errorf("%s failed under load: %s", r.name, out)
	}
	return strconv.ParseFloat(string(match[1]), 64)
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
