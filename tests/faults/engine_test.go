package faults_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// metric returns the value of a metric without labels.
func metric(t *testing.T, server *harness.Server, name string) float64 {
	t.Helper()
	resp, err := http.Get("http://" + server.Admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^caddy_analytics_` + name + ` (\S+)$`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("there is no metric %s", name)
	}
	value, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// TestHungEngine suspends the engine's process. The server restarts the engine, serves stale results in the meantime, and reports
// it in metrics and the log.
func TestHungEngine(t *testing.T) {
	server, c := start(t)
	if answer := c.Do(t, http.MethodPost, "endpoints/count/run", map[string]any{}); answer.Status != http.StatusOK {
		t.Fatalf("a run: %d %s", answer.Status, answer.Raw)
	}
	for name, want := range map[string]float64{"engine_up": 1, "engine_restarts_total": 0, "clickhouse_reachable": 1} {
		if got := metric(t, server, name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if got := metric(t, server, "engine_resident_memory_bytes"); got < 50<<20 {
		t.Errorf("the engine takes %v bytes", got)
	}
	if err := syscall.Kill(server.Engine(t), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	<-time.After(1100 * time.Millisecond) // the run's result is stale now
	asked := make(chan harness.Answer, 1)
	go func() {
		answer, _ := c.Send(http.MethodPost, "query/", map[string]any{"query": map[string]any{"kind": "HogQLQuery", "query": "select 2"}})
		asked <- answer
	}()
	stale := c.Do(t, http.MethodPost, "endpoints/count/run", map[string]any{})
	if stale.Status != http.StatusOK || fmt.Sprint(stale.Body["results"]) != "[[100]]" {
		t.Errorf("a stale run: %d %s", stale.Status, stale.Raw)
	}
	select {
	case answer := <-asked:
		if answer.Status != http.StatusServiceUnavailable && answer.Status != http.StatusOK { // from the next engine
			t.Errorf("a query on a hung engine: %d %s", answer.Status, answer.Raw)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("a query on a hung engine hangs too")
	}
	harness.Eventually(t, 2*time.Minute, func() error {
		if answer := c.HogQL(t, count); fmt.Sprint(answer.Body["results"]) != "[[100]]" {
			return fmt.Errorf("after the hang: %d %s", answer.Status, answer.Raw)
		}
		return nil
	})
	if got := metric(t, server, "engine_restarts_total"); got != 1 {
		t.Errorf("%v restarts, want 1", got)
	}
	if log := server.Log(); !strings.Contains(log, "the embedded engine hangs; killing it") {
		t.Error("the log does not say that the engine hung")
	}
}

// TestSilentClickHouse uses a ClickHouse that accepts connections and never answers. The server starts without waiting, and queries get
// 503 while everything else works.
func TestSilentClickHouse(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			defer func() { _ = conn.Close() }()
		}
	}()
	for _, scheme := range []string{"http", "clickhouse"} {
		t.Run(scheme, func(t *testing.T) {
			const password = "s3cret-word"
			address := listener.Addr().String()
			began := time.Now()
			server := harness.Start(t, fmt.Sprintf("clickhouse %s://default:%s@%s/analytics", scheme, password, address))
			const driverPatience = 9 * time.Second // a start that waits for ClickHouse takes longer
			if took := time.Since(began); took > driverPatience {
				t.Errorf("the start took %s", took)
			}
			id, key := server.Project(t, "p")
			c := server.Client(id, key)
			if answer := c.Do(t, http.MethodGet, "endpoints/", nil); answer.Status != http.StatusOK {
				t.Errorf("the registry without ClickHouse: %d %s", answer.Status, answer.Raw)
			}
			answers := make(chan harness.Answer)
			const callers = 8
			for range callers {
				go func() {
					answer, _ := c.Send(http.MethodPost, "query/", map[string]any{"query": map[string]any{"kind": "HogQLQuery", "query": "select 1"}})
					answers <- answer
				}()
			}
			for range callers {
				select {
				case answer := <-answers:
					if answer.Status != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" || answer.Body["type"] != "server_error" {
						t.Errorf("a query: %d %s", answer.Status, answer.Raw)
					}
				case <-time.After(time.Minute):
					t.Fatal("a query hangs")
				}
			}
			if got := metric(t, server, "clickhouse_reachable"); got != 0 {
				t.Errorf("clickhouse_reachable is %v", got)
			}
			log := server.Log()
			if n := strings.Count(log, "ClickHouse cannot be used"); n != 1 || !strings.Contains(log, "it does not answer in time") || !strings.Contains(log, address) {
				t.Errorf("the log says %d times that ClickHouse cannot be used:\n%s", n, log)
			}
			if strings.Contains(log, password) {
				t.Error("the log contains the password")
			}
		})
	}
}

// TestLargeAnswers queries results at and above the limits, one after the other. The server's memory hardly grows, and the
// engine keeps running.
func TestLargeAnswers(t *testing.T) {
	const most = 512 << 20
	server, c := start(t, "cache {", "max_size 1MiB", "}") // so that cached results hardly count as memory of a query
	child := server.Engine(t)
	rest, err := server.Rest()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, hogql, format string
		want                int
	}{
		{"one row of 1 GB", "select arrayMap(i -> repeat('x', 1000000), range(1000))", "", http.StatusBadRequest},
		{"one row of 1 GB from a table", "select groupArray(repeat('x', 100000)) from (select arrayJoin(range(10000)))", "", http.StatusBadRequest},
		{"one row below the bound", "select arrayMap(i -> repeat('x', 1000000), range(30))", "", http.StatusOK},
		{"rows below the bound", "select repeat('x', 5000), arrayJoin(range(12500)) limit 12500", "", http.StatusOK},
		{"rows above the bound", "select repeat('x', 5000), arrayJoin(range(50000)) limit 50000", "", http.StatusBadRequest},
		{"a file with a large row", "select arrayMap(i -> repeat('x', 1000000), range(60))", "ndjson", http.StatusBadRequest},
		{"a file with large rows", "select arrayMap(i -> repeat('x', 1000000), range(20)), arrayJoin(range(5))", "csv", http.StatusOK},
	} {
		before := metric(t, server, "engine_restarts_total")
		answer := c.HogQL(t, tt.hogql)
		if tt.format != "" {
			name := strings.ReplaceAll(tt.name, " ", "_")
			published := c.Do(t, http.MethodPost, "endpoints/", map[string]any{"name": name, "query": map[string]any{"kind": "HogQLQuery", "query": tt.hogql}})
			if published.Status != http.StatusCreated {
				t.Fatalf("publishing: %d %s", published.Status, published.Raw)
			}
			answer = c.Do(t, http.MethodPost, "endpoints/"+name+"/run", map[string]any{"format": tt.format})
		}
		if answer.Status != tt.want {
			t.Errorf("%s: %d %.200s, want %d", tt.name, answer.Status, answer.Raw, tt.want)
		}
		if after := metric(t, server, "engine_restarts_total"); after != before {
			t.Errorf("%s restarted the engine", tt.name)
		}
		peak, err := server.Peak()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d MiB above idle at most", tt.name, peak.Sub(rest).Server>>20)
		if grown := peak.Sub(rest).Server; grown > most {
			t.Errorf("%s took the server %d MiB above idle", tt.name, grown>>20)
		}
	}
	if got := server.Engine(t); got != child {
		t.Errorf("the engine had process id %d and now has %d", child, got)
	}
}
