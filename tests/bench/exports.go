package main

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// exported is a query for rows to export, with numbers, times, repeated strings and unique strings.
const exported = "select number as n, concat('a line of text, number ', toString(cityHash64(number))) as text, " +
	"arrayElement(['Chrome', 'Firefox', 'Safari', 'Mobile Safari'], 1 + number %% 4) as browser, toDateTime(number) as time, number * 0.37 as amount, " +
	"concat('https://app.example.com/page/', toString(number %% 5000)) as url, if(number %% 7 = 0, null, number %% 100) as maybe from numbers(%d)"

// files are the export formats, with the number of rows that make about a gigabyte.
var files = []struct {
	format string
	rows   int
}{{"csv", 8_000_000}, {"ndjson", 5_500_000}, {"arrow", 20_000_000}, {"parquet", 55_000_000}}

// exportMemory measures the memory of the server and its engine while they export about a gigabyte, with a new server for each
// format, because memory that a process used before would hide part of it.
func exportMemory(folder string) (goals []goal, err error) {
	const mb = 1e6
	fmt.Printf("Peak memory while a file is exported, MB above idle, as counted by the kernel\n\n")
	fmt.Printf("%-10s %10s %10s %10s\n", "", "file", "server", "engine")
	for _, f := range files {
		size, grown, err := export(folder, f.format, f.rows)
		if err != nil {
			return nil, fmt.Errorf("exporting %s: %w", f.format, err)
		}
		server, engine := float64(grown.Server)/mb, float64(grown.Engine)/mb
		fmt.Printf("%-10s %10.0f %10.0f %10.0f\n", f.format, float64(size)/mb, server, engine)
		goals = append(goals, goal{
			what: fmt.Sprintf("memory while %.1f GB of %s are exported", float64(size)/1e9, f.format), against: "server and engine, above idle", goal: "< 64 MB",
			measured: fmt.Sprintf("%.0f and %.0f MB", server, engine), missed: max(server, engine) >= 64,
		})
	}
	fmt.Println()
	return goals, nil
}

// export exports a file once, and returns its size and the growth of memory.
func export(folder, format string, rows int) (size int64, grown harness.Memory, err error) {
	client, err := open(folder, format, "limits {\n\t\t\tmax_execution_time 10m\n\t\t}")
	if err != nil {
		return 0, grown, err
	}
	server := client.Server
	defer func() { err = errors.Join(err, server.Stop()) }()
	for name, rows := range map[string]int{"small": 1, "large": rows} {
		answer, err := client.Send(http.MethodPost, "endpoints/", map[string]any{
			"name": name, "query": map[string]any{"kind": "HogQLQuery", "query": fmt.Sprintf(exported, rows)},
		})
		if err := checked("publishing", answer, err, http.StatusCreated); err != nil {
			return 0, grown, err
		}
	}
	if _, err := client.Drain("endpoints/small/run." + format); err != nil {
		return 0, grown, err
	}
	idle, err := server.Rest()
	if err != nil {
		return 0, grown, err
	}
	if size, err = client.Drain("endpoints/large/run." + format); err != nil {
		return 0, grown, err
	}
	peak, err := server.Peak()
	return size, peak.Sub(idle), err
}
