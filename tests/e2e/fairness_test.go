package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// longCount counts until its time is up. Each number gives a different query.
const longCount = "select count() from numbers(4000000000000) where cityHash64(number + %d) %% 7 = 1"

// TestAnotherProjectDoesNotWait: while one project runs as many long queries as it can, another project's query is answered at once.
func TestAnotherProjectDoesNotWait(t *testing.T) {
	const longest = 30 * time.Second
	s := harness.Start(t, "limits {\n\t\t\trate 100000/s\n\t\t\tmax_execution_time 30s\n\t\t}")
	busy, good := s.Client(s.Project(t, "busy")), s.Client(s.Project(t, "good"))
	for i := range 6 {
		begin(t, busy, fmt.Sprint("background_", i), fmt.Sprintf(longCount, i))
		body := map[string]any{
			"query": map[string]string{"kind": "HogQLQuery", "query": fmt.Sprintf(longCount, 100+i)}, "client_query_id": fmt.Sprint("blocking_", i),
		}
		go func() { _, _ = busy.Send(http.MethodPost, "query/", body) }() // it is canceled, or times out
	}
	defer func() { // the server would wait for them before it stops
		for i := range 6 {
			busy.Do(t, http.MethodDelete, fmt.Sprintf("query/background_%d/", i), nil)
			busy.Do(t, http.MethodDelete, fmt.Sprintf("query/blocking_%d/", i), nil)
		}
	}()
	harness.Eventually(t, time.Minute, func() error {
		found := samples(t, s)
		if n := found[fmt.Sprintf(`caddy_analytics_queries_waiting{project="%d"}`, busy.Project)]; n == "" || n == "0" {
			return fmt.Errorf("%q queries of the busy project wait", n)
		}
		return nil
	})
	for i := range 3 {
		began := time.Now()
		if answer := good.HogQL(t, fmt.Sprintf("select count() + %d from events", i)); answer.Status != http.StatusOK {
			t.Fatalf("%d %s", answer.Status, answer.Raw)
		}
		if took := time.Since(began); took > longest/3 { // it takes at most a second, or as long as those of the busy project
			t.Errorf("the query of another project took %s", took)
		}
	}
}

// TestPublishingIsLimited: publishing counts towards the key's rate, waits for a place, and runs no scalar subqueries.
func TestPublishingIsLimited(t *testing.T) {
	s := harness.Start(t, "limits {\n\t\t\trate 3/h\n\t\t\tmax_execution_time 1h\n\t\t}")
	id, key := s.Project(t, "publishing")
	c := s.Client(id, key)
	send := func(n int) harness.Answer {
		return c.Do(t, http.MethodPost, "endpoints/", map[string]any{
			"name": fmt.Sprint("slow_", n), "query": map[string]string{
				"kind": "HogQLQuery", "query": fmt.Sprintf("select ("+longCount+") as n, event from events", n),
			},
		})
	}
	for i, want := range []int{201, 201, 201, 429, 429} {
		began := time.Now()
		answer := send(i)
		if answer.Status != want || time.Since(began) > time.Minute {
			t.Fatalf("publish %d answers %d after %s: %s", i+1, answer.Status, time.Since(began), answer.Raw)
		}
		if answer.Status == http.StatusTooManyRequests && answer.Header.Get("Retry-After") == "" {
			t.Errorf("publish %d: no Retry-After", i+1)
		}
		if want == http.StatusCreated {
			wanted := []any{map[string]any{"name": "n", "type": "integer"}, map[string]any{"name": "event", "type": "string"}}
			for _, column := range answer.Body["columns"].([]any) {
				delete(column.(map[string]any), "clickhouse_type")
			}
			if diff := cmp.Diff(any(wanted), answer.Body["columns"]); diff != "" {
				t.Errorf("columns (-want +got):\n%s", diff)
			}
		}
	}
	if left := send(9).Header.Get("RateLimit"); !strings.HasPrefix(left, `"key";r=0;`) {
		t.Errorf("RateLimit %q", left)
	}
}

// TestReloadKeepsPlaces: a reload with another concurrency or rate never gives out a place twice.
func TestReloadKeepsPlaces(t *testing.T) {
	s := harness.Start(t, "limits {\n\t\t\tconcurrency 1\n\t\t\trate 100000/s\n\t\t\tmax_execution_time 1h\n\t\t}")
	id, key := s.Project(t, "reloaded")
	c := s.Client(id, key)
	begin(t, c, "first", fmt.Sprintf(endless, 0))
	poll(t, c, "first", pickedUp)
	text, err := os.ReadFile(s.Caddyfile())
	if err != nil {
		t.Fatal(err)
	}
	reload := func(old, other string) {
		t.Helper()
		text = []byte(strings.Replace(string(text), old, other, 1))
		if err := os.WriteFile(s.Caddyfile(), text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	running := func() string {
		return samples(t, s)[fmt.Sprintf(`caddy_analytics_queries_running{project="%d"}`, id)]
	}
	reload("rate 100000/s", "rate 90000/s")
	begin(t, c, "second", fmt.Sprintf(endless, 1))
	harness.Eventually(t, time.Minute, func() error {
		if n := samples(t, s)[fmt.Sprintf(`caddy_analytics_queries_waiting{project="%d"}`, id)]; n != "1" {
			return fmt.Errorf("%s wait", n)
		}
		return nil
	})
	if n := running(); n != "1" {
		t.Errorf("after a reload with another rate %s run", n)
	}
	reload("concurrency 1", "concurrency 2")
	poll(t, c, "second", pickedUp)
	if n := running(); n != "2" {
		t.Errorf("after a reload with another concurrency %s run", n)
	}
	for _, id := range []string{"first", "second"} {
		c.Do(t, http.MethodDelete, "query/"+id+"/", nil)
	}
	harness.Eventually(t, time.Minute, func() error {
		if n := running(); n != "0" {
			return fmt.Errorf("%s run", n)
		}
		return nil
	})
}

// unsteady matches what differs between two answers to the same query, regardless of the client: ids, times and durations.
var unsteady = regexp.MustCompile(`"[0-9a-f-]{32,}"|"cache_[^"]*"|"20\d\d-[^"]*"|"t":[0-9.e-]+|[0-9.]+(,"[^"]*",-?\d+,0,0,)`)

// events returns lines to import: n events of a project, with one property.
func events(project int64, n int, property string) string {
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, `{"event":"seen","distinct_id":"d%d","timestamp":"2026-03-01T00:00:%02dZ","uuid":"00000000-0000-4000-8000-%04x%08x","properties":{%q:%d}}`+"\n",
			i%9, i%60, project, i, property, i)
	}
	return lines.String()
}

// TestFiguresOfOwnRows: a project gets the same figures whether or not another project has rows in the same granules, and whether or not those
// have a property of some name. The operator's metrics show that the granules are shared.
func TestFiguresOfOwnRows(t *testing.T) {
	tell := func(others bool) map[string]string {
		s := harness.Start(t, "limits {\n\t\t\trate 100000/s\n\t\t}")
		c, other := s.Client(s.Project(t, "own")), s.Client(s.Project(t, "other"))
		importLines(t, c, events(c.Project, 500, "plan"))
		if others {
			for i := range 8 { // several parts, which are soon merged with that of the first project
				importLines(t, other, events(other.Project+int64(i), 900, "secret"))
			}
			n, seen := 0, 0.0
			harness.Eventually(t, 2*time.Minute, func() error {
				n++
				c.Query(t, fmt.Sprintf("select count(), min(uuid), %d from events", n))
				now, err := strconv.ParseFloat(samples(t, s)[fmt.Sprintf(`caddy_analytics_query_read_rows_total{endpoint="",project="%d"}`, c.Project)], 64)
				if err != nil {
					return err
				}
				if now-seen <= 500 {
					seen = now
					return fmt.Errorf("a query of 500 rows does not read others yet, but %v", now)
				}
				return nil
			})
		}
		told := map[string]string{}
		note := func(what string, answer harness.Answer) {
			t.Helper()
			if answer.Status >= http.StatusBadRequest {
				t.Fatalf("%s: %d %s", what, answer.Status, answer.Raw)
			}
			told[what] = unsteady.ReplaceAllString(strings.ReplaceAll(string(answer.Raw), s.URL, ""), "…$1")
			for name, values := range answer.Header {
				switch name {
				case "Date", "X-Request-Id", "Etag", "Content-Length", "Server-Timing", "Ratelimit", "Ratelimit-Policy":
				default:
					told[what+", "+name] = strings.Join(values, ", ")
				}
			}
		}
		for name, query := range map[string]string{
			"count": "select count(), min(uuid) from events", "property": "select count() from events where properties.secret is null",
			"all": "select event, properties.secret from events order by timestamp, uuid limit 3",
		} {
			body := map[string]any{"kind": "HogQLQuery", "query": query, "explain": true, "modifiers": map[string]bool{"debug": true, "timings": true}}
			note(name, c.Do(t, http.MethodPost, "query/", map[string]any{"query": body, "client_query_id": name}))
			note(name+", its log", c.Do(t, http.MethodGet, "query/"+name+"/log/", nil))
			publish(t, c, name, query)
			note(name+", run", c.Do(t, http.MethodPost, "endpoints/"+name+"/run", map[string]any{"debug": true}))
			note(name+", as a file", c.Do(t, http.MethodPost, "endpoints/"+name+"/run.csv", nil))
			begin(t, c, name+"_async", strings.Replace(query, "select ", "select 1, ", 1))
			note(name+", its status", poll(t, c, name+"_async", complete))
			note(name+", the status' log", c.Do(t, http.MethodGet, "query/"+name+"_async/log/", nil))
		}
		return told
	}
	for round := range 3 { // on a busy machine, names are not always checked in time, and an answer lacks its warning
		alone, beside := tell(false), tell(true)
		var told []string
		for what, text := range alone {
			if diff := cmp.Diff(text, beside[what]); diff != "" {
				told = append(told, fmt.Sprintf("%s tells of another project's rows (-alone +beside):\n%s", what, diff))
			}
		}
		if len(told) == 0 {
			return
		}
		t.Logf("round %d: %s", round, strings.Join(told, "\n"))
	}
	t.Error("answers differ each time")
}
