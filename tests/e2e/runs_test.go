package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// runsServer starts a server on which a project runs one query at a time, for as long as a test may take.
func runsServer(t *testing.T) *harness.Client {
	t.Helper()
	s := harness.Start(t, "limits {\n\t\t\tconcurrency 1\n\t\t\trate 100000/s\n\t\t\tmax_execution_time 1h\n\t\t}")
	id, key := s.Project(t, "runs")
	return s.Client(id, key)
}

// endless is a query that takes hours.
const endless = "select max(cityHash64(toString(number + %d))) from numbers(4000000000000)"

// begin starts a background run.
func begin(t *testing.T, c *harness.Client, id, hogql string) {
	t.Helper()
	answer := c.Do(t, http.MethodPost, "query/", map[string]any{
		"query": map[string]any{"kind": "HogQLQuery", "query": hogql}, "refresh": "async", "client_query_id": id,
	})
	if answer.Status != http.StatusAccepted || status(answer)["id"] != id || status(answer)["complete"] != false {
		t.Fatalf("beginning %s: %d %s", id, answer.Status, answer.Raw)
	}
}

func status(answer harness.Answer) map[string]any {
	found, _ := answer.Body["query_status"].(map[string]any)
	return found
}

// poll requests the status of a run until it is as wanted.
func poll(t *testing.T, c *harness.Client, id string, wanted func(harness.Answer) bool) harness.Answer {
	t.Helper()
	var answer harness.Answer
	harness.Eventually(t, 2*time.Minute, func() error {
		if answer = c.Do(t, http.MethodGet, "query/"+id+"/?show_progress=true", nil); !wanted(answer) {
			return fmt.Errorf("the status of %s is %d %s", id, answer.Status, answer.Raw)
		}
		return nil
	})
	return answer
}

// timeElapsed returns the seconds in the progress of a status; 0 if it has none.
func timeElapsed(answer harness.Answer) float64 {
	progress, _ := status(answer)["query_progress"].(map[string]any)
	n, _ := progress["time_elapsed"].(float64)
	return n
}

// pickedUp reports whether ClickHouse is running a query.
func pickedUp(answer harness.Answer) bool { return status(answer)["pickup_time"] != nil }

func complete(answer harness.Answer) bool { return answer.Status != http.StatusAccepted }

// TestBackgroundRun follows a run to its end.
func TestBackgroundRun(t *testing.T) {
	c := newProject(t)
	const hogql = "select number, 'é' as name from numbers(3)"
	begin(t, c, "whole", hogql)
	done := poll(t, c, "whole", complete)
	if done.Status != http.StatusOK {
		t.Fatalf("%d %s", done.Status, done.Raw)
	}
	results, _ := status(done)["results"].(map[string]any)
	blocking := c.HogQL(t, hogql)
	if results["is_cached"] != false || blocking.Body["is_cached"] != true {
		t.Errorf("cached: %v in the run, %v afterwards", results["is_cached"], blocking.Body["is_cached"])
	}
	delete(results, "is_cached")
	delete(blocking.Body, "is_cached")
	if diff := cmp.Diff(blocking.Body, results); diff != "" {
		t.Errorf("the run's results and the answer of the query route (-want +got):\n%s", diff)
	}
	start, _ := time.Parse(time.RFC3339Nano, fmt.Sprint(status(done)["start_time"]))
	end, _ := time.Parse(time.RFC3339Nano, fmt.Sprint(status(done)["end_time"]))
	expires, _ := time.Parse(time.RFC3339Nano, fmt.Sprint(status(done)["expiration_time"]))
	if start.IsZero() || end.Before(start) || expires.Sub(end) != 10*time.Minute {
		t.Errorf("from %s to %s, kept until %s", start, end, expires)
	}
	begin(t, c, "mistake", "select sum(toString(number)) from numbers(3)")
	failed := poll(t, c, "mistake", complete)
	if failed.Status != http.StatusBadRequest || status(failed)["error"] != true || status(failed)["error_code"] != "illegal_type_of_argument" {
		t.Errorf("a run that fails on ClickHouse: %d %s", failed.Status, failed.Raw)
	}
}

// TestProgressAndCancel watches runs on the engine, and cancels them: the next query gets their place at once.
func TestProgressAndCancel(t *testing.T) {
	c := runsServer(t)
	begin(t, c, "long", fmt.Sprintf(endless, 0))
	moving := poll(t, c, "long", func(answer harness.Answer) bool {
		if complete(answer) {
			t.Fatalf("it ended: %d %s", answer.Status, answer.Raw)
		}
		return timeElapsed(answer) >= 1
	})
	// ClickHouse reads in granules, which projects share, so callers do not learn how much it has read.
	want := map[string]any{
		"time_elapsed": timeElapsed(moving), "rows_read": 0.0, "bytes_read": 0.0, "estimated_rows_total": 0.0, "active_cpu_time": 0.0,
	}
	if diff := cmp.Diff(any(want), status(moving)["query_progress"]); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	if answer := c.Do(t, http.MethodGet, "query/long/", nil); status(answer)["query_progress"] != nil {
		t.Errorf("progress that nobody asked for: %s", answer.Raw)
	}

	t.Run("one that waits for its turn", func(t *testing.T) {
		begin(t, c, "queued", fmt.Sprintf(endless, 1))
		if answer := c.Do(t, http.MethodGet, "query/queued/", nil); pickedUp(answer) {
			t.Errorf("two run at once: %s", answer.Raw)
		}
		for id, want := range map[string]string{"long": "The query is running already; it was not cancelled.", "queued": "The query was cancelled."} {
			if answer := c.Do(t, http.MethodDelete, "query/"+id+"/?dequeue_only=true", nil); answer.Status != http.StatusOK || answer.Body["message"] != want {
				t.Errorf("%s: %d %s", id, answer.Status, answer.Raw)
			}
		}
		if answer := c.Do(t, http.MethodGet, "query/queued/", nil); answer.Status != http.StatusNotFound {
			t.Errorf("afterwards: %d %s", answer.Status, answer.Raw)
		}
	})
	t.Run("one of two that share a computation", func(t *testing.T) {
		begin(t, c, "second", fmt.Sprintf(endless, 0))
		c.Do(t, http.MethodDelete, "query/long/", nil)
		before := poll(t, c, "second", pickedUp)
		after := poll(t, c, "second", func(answer harness.Answer) bool {
			return complete(answer) || timeElapsed(answer) > timeElapsed(before)
		})
		if complete(after) {
			t.Errorf("the other's cancel ended it: %d %s", after.Status, after.Raw)
		}
	})
	t.Run("the last one", func(t *testing.T) {
		if answer := c.Do(t, http.MethodDelete, "query/second", nil); answer.Status != http.StatusOK || answer.Body["message"] != "The query was cancelled." {
			t.Errorf("%d %s", answer.Status, answer.Raw)
		}
		want := fmt.Sprintf("Query second not found for team %d", c.Project)
		if answer := c.Do(t, http.MethodGet, "query/second/", nil); answer.Status != http.StatusNotFound || answer.Body["detail"] != want {
			t.Errorf("afterwards: %d %s", answer.Status, answer.Raw)
		}
		if rows := c.Query(t, "select 2"); len(rows) != 1 { // it would wait for its turn if the engine were still working
			t.Errorf("the next query: %v", rows)
		}
	})
	t.Run("one whose caller waits", func(t *testing.T) {
		body := fmt.Sprintf(`{"query":{"kind":"HogQLQuery","query":%q},"client_query_id":"blocking"}`, fmt.Sprintf(endless, 2))
		answers := make(chan harness.Answer, 1)
		go func() {
			answer, err := c.Send(http.MethodPost, "query/", body)
			if err != nil {
				answer.Raw = []byte(err.Error())
			}
			answers <- answer
		}()
		poll(t, c, "blocking", pickedUp)
		c.Do(t, http.MethodDelete, "query/blocking/", nil)
		if answer := <-answers; answer.Status != http.StatusBadRequest || answer.Body["code"] != "query_was_cancelled" {
			t.Errorf("%d %s", answer.Status, answer.Raw)
		}
		if rows := c.Query(t, "select 3"); len(rows) != 1 {
			t.Errorf("the next query: %v", rows)
		}
	})
	publish(t, c, "silent", fmt.Sprintf(endless, 3))
	publish(t, c, "chatty", "select number, cityHash64(number) from numbers(4000000000000)")
	for _, tt := range []struct{ path, want string }{
		{"silent/run", "400 query_was_cancelled"},
		{"silent/run.csv", "400 query_was_cancelled"},
		{"silent/run.parquet", "400 query_was_cancelled"},
		{"chatty/run.ndjson", "200 unexpected EOF"}, // interrupted after the client has begun to read it
		{"chatty/run.arrow", "200 unexpected EOF"},
		{"chatty/run.parquet", "200 unexpected EOF"},
	} {
		t.Run(tt.path, func(t *testing.T) {
			id := strings.ReplaceAll(tt.path, "/", "-")
			ended := make(chan string, 1)
			go func() {
				answer, err := c.Send(http.MethodPost, "endpoints/"+tt.path, map[string]string{"client_query_id": id})
				if err != nil {
					ended <- fmt.Sprint(answer.Status, " ", err)
					return
				}
				ended <- fmt.Sprint(answer.Status, " ", answer.Body["code"])
			}()
			poll(t, c, id, func(answer harness.Answer) bool { return timeElapsed(answer) >= 1 })
			if answer := c.Do(t, http.MethodDelete, "query/"+id+"/", nil); answer.Body["message"] != "The query was cancelled." {
				t.Errorf("%d %s", answer.Status, answer.Raw)
			}
			if got := <-ended; got != tt.want {
				t.Errorf("the run ended with %s, want %s", got, tt.want)
			}
			if rows := c.Query(t, "select 4"); len(rows) != 1 {
				t.Errorf("the next query: %v", rows)
			}
		})
	}
}

// TestRunsAndConfigs: a run continues when the config is reloaded, even with another cache, and is still known afterwards. A process that replaces a
// killed one does not know its runs.
func TestRunsAndConfigs(t *testing.T) {
	c := runsServer(t)
	begin(t, c, "ended", "select 1")
	poll(t, c, "ended", complete)
	begin(t, c, "running", fmt.Sprintf(endless, 0))
	poll(t, c, "running", pickedUp)
	text, err := os.ReadFile(c.Server.Caddyfile())
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(string(text), "limits {", "cache {\n\t\t\tmax_size 64MiB\n\t\t}\n\t\tlimits {", 1)
	for _, config := range []string{string(text) + "\n# changed\n", other} {
		if err := os.WriteFile(c.Server.Caddyfile(), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := c.Server.Reload(); err != nil {
			t.Fatal(err)
		}
		if answer := c.Do(t, http.MethodGet, "query/ended/", nil); answer.Status != http.StatusOK {
			t.Errorf("the ended run after a reload: %d %s", answer.Status, answer.Raw)
		}
		was := -1.0
		poll(t, c, "running", func(answer harness.Answer) bool {
			if complete(answer) {
				t.Fatalf("the reload ended it: %d %s", answer.Status, answer.Raw)
			}
			is := timeElapsed(answer)
			if was < 0 {
				was = is
			}
			return is > was
		})
	}
	if err := c.Server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := c.Server.Run(); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"ended", "running"} {
		want := fmt.Sprintf("Query %s not found for team %d", id, c.Project)
		if answer := c.Do(t, http.MethodGet, "query/"+id+"/", nil); answer.Status != http.StatusNotFound || answer.Body["detail"] != want {
			t.Errorf("%s after a kill: %d %s", id, answer.Status, answer.Raw)
		}
	}
	begin(t, c, "running", fmt.Sprintf(endless, 0)) // the server is stopped while it runs
	poll(t, c, "running", pickedUp)
}
