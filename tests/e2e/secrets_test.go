package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// TestLogsHoldNoValues runs queries that succeed and fail in all ways on a server with the most verbose log, with a marker as a literal, as a variable's
// value, and in a row, and searches the log for it.
func TestLogsHoldNoValues(t *testing.T) {
	const literal, value, row = "MARKERliteral", "MARKERvalue", "MARKERrow"
	// The first brace ends the block of the analytics app, the last one opens a block for the brace that follows.
	s := harness.Start(t, "limits {\n\t\t\tmax_execution_time 1s\n\t\t\tmax_memory 64MiB\n\t\t}\n\t}\n\tdebug\n\tservers {")
	id, key := s.Project(t, "secrets")
	c := s.Client(id, key)
	lines := fmt.Sprintf(`{"event":"%[1]s","distinct_id":"x","timestamp":"2024-01-01T00:00:00Z","properties":{"p":"%[1]s"}}
{"event":"%[1]s","distinct_id":"%[1]s","timestamp":"%[1]s"}
`, row)
	if _, _, err := s.Command(strings.NewReader(lines), "import", "--project", fmt.Sprint(id), "-"); err == nil {
		t.Error("a bad line is no error")
	}
	if answer := c.Do(t, http.MethodPost, "insight_variables/", map[string]any{"name": "who", "type": "String", "default_value": "nobody"}); answer.Status != http.StatusCreated {
		t.Fatalf("defining a variable: %d %s", answer.Status, answer.Raw)
	}
	statuses := map[int]int{}
	for n, sql := range []string{
		"select '%s'",
		"select toDate('%s')",
		"select toUUID('%s')",
		"select concat('%s', properties.p) as x, toDate(x) from events",
		"select toUUID(properties.p), '%s' from events",
		"select throwIf(1, '%s')",
		"select sleep(3), '%s'",
		"select count(), '%s' from numbers(1000000000000)",
		"select groupArray(concat('%s', toString(number))) from numbers(100000000)",
		"select match(event, concat('[', '%s')) from events",
		"select multiMatchAny('x', [concat('%s', '{1,30000}')])",
		"select multiMatchAny('x', ['%s{1,30000}'])",
		"select '%s' from nowhere",
		"select JSONExtract(properties.p, concat('Array(', '%s')) from events",
		"select repeat('%s', 100000000)",
	} {
		answer := c.HogQL(t, fmt.Sprintf(sql, literal))
		statuses[answer.Status/100]++
		name := fmt.Sprintf("e%d", n)
		query := hogQL(strings.ReplaceAll(sql, "'%s'", "{variables.who}"))
		if c.Do(t, http.MethodPost, "endpoints/", map[string]any{"name": name, "query": query}).Status != http.StatusCreated {
			continue
		}
		for _, format := range []string{"run", "run.csv", "run.parquet"} {
			if format == "run" || answer.Status/100 != 5 { // a file that breaks off resets its connection
				_, _ = c.Send(http.MethodPost, "endpoints/"+name+"/"+format, map[string]any{"variables": map[string]any{"who": value}, "refresh": "force"})
			}
		}
		run := c.Do(t, http.MethodPost, "query/", map[string]any{"query": hogQL(fmt.Sprintf(sql, literal)), "refresh": "force_async", "client_query_id": name})
		for deadline := time.Now().Add(30 * time.Second); run.Status == http.StatusAccepted && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
			run = c.Do(t, http.MethodGet, "query/"+name+"/", nil)
		}
	}
	if statuses[2] == 0 || statuses[4] < 3 || statuses[5] == 0 {
		t.Errorf("the queries do not cover what can happen: %v", statuses)
	}
	log, err := os.ReadFile(filepath.Join(s.Folder, "server.log"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(log), "\"level\":\"debug\"") || !strings.Contains(string(log), "ClickHouse answered code") {
		t.Error("the log has no line of a failed query at the level debug")
	}
	for line := range strings.Lines(string(log)) {
		for _, marker := range []string{literal, value, row} {
			if strings.Contains(line, marker) {
				t.Errorf("%s is in the log: %.600s", marker, line)
			}
		}
	}
	for name := range samples(t, s) {
		if strings.Contains(name, "MARKER") {
			t.Errorf("a metric: %s", name)
		}
	}
}
