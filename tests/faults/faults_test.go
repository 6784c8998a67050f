// Package faults kills parts of the server and checks what clients see.
package faults_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded/embeddedtest"
	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

const count = "select count() as n from events"

// start starts a server with a project of a hundred events, and an endpoint that counts them. The rate of keys is not limited: tests ask until something
// has happened.
func start(t *testing.T, extra ...string) (*harness.Server, *harness.Client) {
	t.Helper()
	server := harness.Start(t, append(extra, "limits {", "rate 100000/s", "}")...)
	id, key := server.Project(t, "faults")
	c := server.Client(id, key)
	var lines strings.Builder
	for i := range 100 {
		fmt.Fprintf(&lines, `{"event":"e","distinct_id":"p%d","timestamp":"2024-01-01T00:00:00Z","properties":{"i":%d}}`+"\n", i%10, i)
	}
	server.MustCommand(t, nil, strings.NewReader(lines.String()), "import", "--project", fmt.Sprint(id), "-")
	answer := c.Do(t, http.MethodPost, "endpoints/", map[string]any{
		"name": "count", "data_freshness_seconds": 1, "query": map[string]any{"kind": "HogQLQuery", "query": count},
	})
	if answer.Status != http.StatusCreated {
		t.Fatalf("publishing: %d %s", answer.Status, answer.Raw)
	}
	return server, c
}

func TestMain(m *testing.M) {
	embeddedtest.Main(func() (int, error) { return m.Run(), nil })
}

// TestEngineKilled kills the engine: queries get 503 at once or run again, a stale result is served, and within seconds
// all data is back.
func TestEngineKilled(t *testing.T) {
	server, c := start(t)
	if answer := c.Do(t, http.MethodPost, "endpoints/count/run", map[string]any{}); answer.Status != http.StatusOK {
		t.Fatalf("before: %d %s", answer.Status, answer.Raw)
	}
	<-time.After(1100 * time.Millisecond) // the result is stale now
	for round := range 3 {
		was := server.Engine(t)
		if err := syscall.Kill(was, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		answer := c.HogQL(t, fmt.Sprintf("select %d, count() from events", round))
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("a query during the outage took %s", took)
		}
		switch answer.Status {
		case http.StatusOK, http.StatusServiceUnavailable:
		default:
			t.Errorf("a query during the outage answered %d: %s", answer.Status, answer.Raw)
		}
		if answer.Status == http.StatusServiceUnavailable && answer.Header.Get("Retry-After") == "" {
			t.Error("the 503 has no Retry-After")
		}
		if stale := c.Do(t, http.MethodPost, "endpoints/count/run", map[string]any{}); stale.Status != http.StatusOK {
			t.Errorf("a stale answer during the outage: %d %s", stale.Status, stale.Raw)
		}
		harness.Eventually(t, time.Minute, func() error {
			if answer := c.HogQL(t, fmt.Sprintf("select %d, count() from events", 100+round)); answer.Status != http.StatusOK {
				return fmt.Errorf("%d %s", answer.Status, answer.Raw)
			} else if got := fmt.Sprint(answer.Body["results"]); got != fmt.Sprintf("[[%d 100]]", 100+round) {
				return fmt.Errorf("rows %s", got)
			}
			return nil
		})
		if server.Engine(t) == was {
			t.Error("the killed engine is still running")
		}
	}
}

// TestServerKilled kills the server: its engine ends with it, and everything acknowledged is there after a restart.
func TestServerKilled(t *testing.T) {
	server, c := start(t)
	child := server.Engine(t)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, time.Minute, func() error {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child))
		if _, rest, _ := strings.Cut(string(raw), ") "); err == nil && !strings.HasPrefix(rest, "Z") { // a zombie may wait for init
			return fmt.Errorf("the engine %d outlives its server", child)
		}
		return nil
	})
	if err := server.Run(); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(c.Query(t, count)); got != "[[100]]" {
		t.Errorf("after the restart: %s", got)
	}
	if answer := c.Do(t, http.MethodPost, "endpoints/count/run", map[string]any{}); fmt.Sprint(answer.Body["results"]) != "[[100]]" {
		t.Errorf("the endpoint after the restart: %d %s", answer.Status, answer.Raw)
	}
}

// TestClickHouseServer uses an external ClickHouse: nothing else changes. While it is down,
// queries get 503, stale results are served, and the server starts anyway.
func TestClickHouseServer(t *testing.T) {
	other, err := embeddedtest.Start(t.Context(), filepath.Join(t.TempDir(), "engine"))
	if err != nil {
		t.Fatal(err)
	}
	server, c := start(t, "clickhouse "+other.DSN())
	if children, err := server.Children(); err != nil || len(children) != 0 {
		t.Errorf("the server started an embedded engine: %v, %v", children, err)
	}
	if got := fmt.Sprint(c.Query(t, count)); got != "[[100]]" {
		t.Errorf("rows %s", got)
	}
	if answer := c.Do(t, http.MethodPost, "endpoints/count/run", map[string]any{}); answer.Status != http.StatusOK {
		t.Fatalf("a run: %d %s", answer.Status, answer.Raw)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	<-time.After(1100 * time.Millisecond) // the run's result is stale now
	down := c.HogQL(t, "select 2")
	if down.Status != http.StatusServiceUnavailable || down.Header.Get("Retry-After") == "" {
		t.Errorf("a query while ClickHouse is down: %d %s", down.Status, down.Raw)
	}
	if strings.Contains(string(down.Raw), "127.0.0.1") {
		t.Errorf("the answer names the database's host: %s", down.Raw)
	}
	stale := c.Do(t, http.MethodPost, "endpoints/count/run", map[string]any{})
	if stale.Status != http.StatusOK || fmt.Sprint(stale.Body["results"]) != "[[100]]" {
		t.Errorf("a stale run: %d %s", stale.Status, stale.Raw)
	}
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := server.Run(); err != nil {
		t.Fatalf("starting while ClickHouse is down: %v", err)
	}
	if answer := c.HogQL(t, "select 3"); answer.Status != http.StatusServiceUnavailable {
		t.Errorf("a query after a start without ClickHouse: %d %s", answer.Status, answer.Raw)
	}
	if answer := c.Do(t, http.MethodGet, "endpoints/", nil); answer.Status != http.StatusOK {
		t.Errorf("the registry without ClickHouse: %d %s", answer.Status, answer.Raw)
	}
}

// TestReload reloads the config: what the config does not change is kept, including cached results, and an invalid
// config changes nothing.
func TestReload(t *testing.T) {
	server, c := start(t)
	child := server.Engine(t)
	query := "select count() from events where event = 'e'"
	if status := c.HogQL(t, query).Header.Get("Cache-Status"); !strings.Contains(status, "fwd=miss") {
		t.Fatalf("first: Cache-Status: %s", status)
	}
	write := func(text string) {
		if err := os.WriteFile(server.Caddyfile(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stillCached := func(when string) {
		t.Helper()
		if status := c.HogQL(t, query).Header.Get("Cache-Status"); !strings.Contains(status, "; hit") {
			t.Errorf("%s: Cache-Status: %s", when, status)
		}
		if got := server.Engine(t); got != child {
			t.Errorf("%s: the engine was restarted", when)
		}
	}
	write(server.Config("header X-Site new"))
	if err := server.Reload(); err != nil {
		t.Fatal(err)
	}
	stillCached("after a reload")
	write(server.Config("no_such_directive"))
	if err := server.Reload(); err == nil {
		t.Error("a config with an unknown directive is loaded")
	}
	stillCached("after a config that does not adapt")
	// Provisions, but cannot start: the address is not available.
	write(strings.Replace(server.Config(""), server.URL+" {", server.URL+" {\n\tbind 203.0.113.1", 1))
	if err := server.Reload(); err == nil {
		t.Error("a config with an address of another machine is loaded")
	}
	stillCached("after a config that does not start")
}

// TestLogAfterReload: what keeps running over a reload logs to where the new config says.
func TestLogAfterReload(t *testing.T) {
	server, _ := start(t)
	file := filepath.Join(t.TempDir(), "new.log")
	config := strings.Replace(server.Config(""), "{\n", "{\n\tlog {\n\t\toutput file "+file+"\n\t}\n", 1)
	if err := os.WriteFile(server.Caddyfile(), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := server.Reload(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(server.Engine(t), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, time.Minute, func() error {
		raw, err := os.ReadFile(file)
		if err == nil && !strings.Contains(string(raw), "the embedded engine is running again") {
			err = fmt.Errorf("the new log holds:\n%s", raw)
		}
		return err
	})
}

// TestReloadUnderLoad reloads repeatedly under load: no request fails, whether the reload changes only the site, or closes the connections and the
// cache that requests in progress use. Caddy opens a separate socket for each config, and the kernel resets connections that are queued on the old one
// when it closes (docs/operations.md). The server never saw such a request, so it is sent again, once.
func TestReloadUnderLoad(t *testing.T) {
	cached := func(int64) (path string, body any) { return "endpoints/count/run", map[string]any{} }
	slow := func(n int64) (path string, body any) {
		query := fmt.Sprintf("select sum(cityHash64(number + %d)) from numbers(20000000)", n)
		return "query/", map[string]any{"query": map[string]any{"kind": "HogQLQuery", "query": query}}
	}
	for _, tt := range []struct {
		name    string
		request func(n int64) (path string, body any)
		config  func(s *harness.Server, n int) string
	}{
		{"the site", cached, func(s *harness.Server, n int) string { return s.Config(fmt.Sprintf("header X-Reload %d", n)) }},
		{"the limits and the cache", slow, func(s *harness.Server, n int) string {
			return strings.Replace(s.Config(""), "limits {", fmt.Sprintf("cache {\n\t\t\tmax_size %dMiB\n\t\t}\n\t\tlimits {\n\t\t\tmax_execution_time %ds", 100+n, 30+n), 1)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) { reloadUnderLoad(t, tt.request, tt.config) })
	}
}

func reloadUnderLoad(t *testing.T, request func(n int64) (path string, body any), config func(s *harness.Server, n int) string) {
	t.Helper()
	server, c := start(t)
	c.Header = http.Header{"Idempotency-Key": {"a run"}} // lets the client retry on a closing idle connection
	stop := make(chan struct{})
	failures := make(chan string, 1)
	finished := make(chan int)
	var sent atomic.Int64
	for range 4 {
		go func() {
			n := 0
			defer func() { finished <- n }()
			for {
				select {
				case <-stop:
					return
				default:
				}
				path, body := request(sent.Add(1))
				answer, err := c.Send(http.MethodPost, path, body)
				if answer.Status == 0 && (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)) { // depends on whether the client reads or writes first
					answer, err = c.Send(http.MethodPost, path, body)
				}
				if err != nil || answer.Status != http.StatusOK {
					select {
					case failures <- fmt.Sprintf("%v: %d %s", err, answer.Status, answer.Raw):
					default:
					}
					return
				}
				n++
			}
		}()
	}
	for i := range 10 {
		if err := os.WriteFile(server.Caddyfile(), []byte(config(server, i)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := server.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	for range 4 {
		if n := <-finished; n == 0 {
			t.Error("a client got no answer at all")
		}
	}
	select {
	case failure := <-failures:
		t.Errorf("a request failed: %s", failure)
	default:
	}
}
