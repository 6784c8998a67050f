package e2e_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// settledTrend requests a trend by day, and returns the answer.
func settledTrend(t *testing.T, c *harness.Client, from, to, refresh string) harness.Answer {
	t.Helper()
	answer := c.Do(t, http.MethodPost, "query/", map[string]any{"refresh": refresh, "query": map[string]any{
		"kind": "TrendsQuery", "interval": "day", "dateRange": map[string]any{"date_from": from, "date_to": to},
		"series": []any{map[string]any{"kind": "EventsNode", "event": "a", "math": "dau"}},
	}})
	if answer.Status != http.StatusOK {
		t.Fatalf("a trend: %d %s", answer.Status, answer.Raw)
	}
	return answer
}

// settledEvent returns a line of an import.
func settledEvent(day, person int) string {
	return fmt.Sprintf(`{"event":"a","distinct_id":"u%d","timestamp":"2026-03-%02dT10:00:00Z"}`+"\n", person, day)
}

// TestSettledPast: a query repeated a day later computes a single bucket, and a query that computes nothing uses none of the rate; a late event
// reopens its own bucket, and no other.
func TestSettledPast(t *testing.T) {
	c, other := newProject(t), newProject(t)
	var lines strings.Builder
	for day := 1; day <= 12; day++ {
		for person := range day {
			lines.WriteString(settledEvent(day, person))
		}
	}
	importLines(t, c, lines.String())
	importLines(t, other, lines.String())
	ask := func(c *harness.Client, from, to, status string) harness.Answer {
		t.Helper()
		answer := settledTrend(t, c, from, to, "blocking")
		if got := answer.Header.Get("Cache-Status"); got != "caddy-analytics; "+status {
			t.Errorf("%s to %s: Cache-Status: %s, want %s", from, to, got, status)
		}
		whole := settledTrend(t, c, from, to, "force_blocking")
		if got := whole.Header.Get("Cache-Status"); got != "caddy-analytics; fwd=request; stored" {
			t.Errorf("%s to %s, forced: Cache-Status: %s", from, to, got)
		}
		if got, want := fmt.Sprint(answer.Body["results"]), fmt.Sprint(whole.Body["results"]); got != want {
			t.Errorf("%s to %s: %s, as a whole %s", from, to, got, want)
		}
		return answer
	}
	ask(c, "2026-03-01", "2026-03-10", `fwd=miss; stored; detail="10 of 10 buckets computed"`)
	answer := ask(c, "2026-03-02", "2026-03-11", `fwd=partial; stored; detail="1 of 10 buckets computed"`)
	if got := answer.Header.Get("Server-Timing"); !strings.Contains(got, `, buckets;desc="1 of 10"`) || !strings.Contains(got, "clickhouse;") {
		t.Errorf("Server-Timing: %s", got)
	}
	if answer.Header.Get("RateLimit") == "" {
		t.Error("a bucket that was computed counts on no rate")
	}
	answer = ask(c, "2026-03-01", "2026-03-11", `fwd=partial; stored; detail="0 of 11 buckets computed"`)
	if got := answer.Header.Get("Server-Timing"); !strings.Contains(got, `, buckets;desc="0 of 11"`) || strings.Contains(got, "clickhouse;") {
		t.Errorf("Server-Timing of an answer for which nothing ran: %s", got)
	}
	if got := answer.Header.Get("RateLimit"); got != "" {
		t.Errorf("an answer for which nothing ran counts on a rate: %s", got)
	}
	importLines(t, c, settledEvent(5, 100))
	ask(c, "2026-03-01", "2026-03-11", `fwd=partial; stored; detail="1 of 11 buckets computed"`)
	// The person who signs up had events as somebody else on two days.
	identify := func(anonymous int) string {
		return fmt.Sprintf(`{"event":"$identify","distinct_id":"u0","timestamp":"2026-03-12T10:00:00Z","properties":{"$anon_distinct_id":"u%d"}}`+"\n", anonymous)
	}
	importLines(t, c, settledEvent(3, 200)+settledEvent(8, 200)+identify(300)) // its property is new in the project
	ask(c, "2026-03-01", "2026-03-11", `fwd=partial; stored; detail="2 of 11 buckets computed"`)
	importLines(t, c, settledEvent(3, 201))
	ask(c, "2026-03-01", "2026-03-11", `fwd=partial; stored; detail="1 of 11 buckets computed"`)
	importLines(t, c, identify(200))
	ask(c, "2026-03-01", "2026-03-11", `fwd=partial; stored; detail="2 of 11 buckets computed"`)
	ask(other, "2026-03-01", "2026-03-10", `fwd=miss; stored; detail="10 of 10 buckets computed"`)
	response, err := http.Get("http://" + c.Server.Admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	metrics, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	for result, n := range map[string]int{"computed": 17, "kept": 58} {
		if want := fmt.Sprintf(`caddy_analytics_buckets_total{endpoint="",project="%d",result="%s"} %d`, c.Project, result, n); !strings.Contains(string(metrics), want+"\n") {
			t.Errorf("the metrics lack %s", want)
		}
	}
}

// TestSettledPastOnDisk: a server that stops saves its buckets for the next start, and only for that one: after a crash, and for data written since, all
// buckets are recomputed.
func TestSettledPastOnDisk(t *testing.T) {
	const option = "cache {\n\t\t\tsettled_past_on_disk on\n\t\t}"
	s := harness.Start(t, option)
	project, key := s.Project(t, "buckets")
	c := s.Client(project, key)
	for day := range 12 {
		importLines(t, c, settledEvent(day+1, day))
	}
	file := filepath.Join(s.Folder, "data", "buckets.zst")
	ask := func(last int, want string) {
		t.Helper()
		to := fmt.Sprintf("2026-03-%02d", last)
		answer := settledTrend(t, c, "2026-03-02", to, "blocking")
		if got := answer.Header.Get("Cache-Status"); !strings.Contains(got, fmt.Sprintf("detail=%q", want+" buckets computed")) {
			t.Errorf("to %s: Cache-Status: %s, want %s", to, got, want)
		}
		whole := settledTrend(t, c, "2026-03-02", to, "force_blocking")
		if got, want := fmt.Sprint(answer.Body["results"]), fmt.Sprint(whole.Body["results"]); got != want {
			t.Errorf("to %s: %s, as a whole %s", to, got, want)
		}
	}
	do := func(steps ...func() error) {
		t.Helper()
		for _, step := range steps {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
	}
	gone := func() error {
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the file of buckets is there while the server runs, or after a crash: %w", err)
		}
		return nil
	}
	ask(10, "9 of 9")
	do(s.Stop, s.Run, gone)
	ask(11, "1 of 10")
	importLines(t, c, settledEvent(5, 100)+settledEvent(6, 100))
	ask(10, "2 of 9")
	do(s.Stop, s.Run, gone)
	ask(12, "1 of 11")

	do(s.Kill, s.Run, gone)
	ask(10, "9 of 9")

	do(s.Stop)
	saved, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	do(s.Run)
	importLines(t, c, settledEvent(7, 100))
	do(s.Stop, func() error { return os.WriteFile(file, saved, 0o600) }, s.Run, gone)
	ask(10, "9 of 9")

	do(s.Stop, func() error { return os.WriteFile(file, saved[:len(saved)/2], 0o600) }, s.Run, gone)
	ask(10, "9 of 9")
	if !strings.Contains(s.Log(), "the saved buckets cannot be read") {
		t.Error("nothing is logged of a file that is cut off")
	}

	do(s.Stop)
	text, err := os.ReadFile(s.Caddyfile())
	if err != nil {
		t.Fatal(err)
	}
	do(func() error { return os.WriteFile(s.Caddyfile(), bytes.Replace(text, []byte(option), nil, 1), 0o600) }, s.Run, gone)
	ask(10, "9 of 9")
}
