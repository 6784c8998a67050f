package e2e_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// samples reads this module's metrics from the admin API.
func samples(t *testing.T, s *harness.Server) map[string]string {
	t.Helper()
	answer, err := http.Get("http://" + s.Admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("%v: %d %s", err, answer.StatusCode, raw)
	}
	out := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^(caddy_analytics_\S+(?:\{[^}]*\})?) (\S+)$`).FindAllStringSubmatch(string(raw), -1) {
		out[m[1]] = m[2]
	}
	return out
}

// TestMetrics counts runs by project and endpoint, across a reload, and exposes no value from clients.
func TestMetrics(t *testing.T) {
	s := harness.Start(t, "limits {\n\t\t\trate 5/h\n\t\t}") // one of them is publishing
	id, key := s.Project(t, "metrics")
	c := s.Client(id, key)
	if answer := c.Do(t, http.MethodPost, "insight_variables/", map[string]any{"name": "who", "type": "String", "default_value": "nobody"}); answer.Status != http.StatusCreated {
		t.Fatalf("defining a variable: %d %s", answer.Status, answer.Raw)
	}
	if answer := c.Do(t, http.MethodPost, "endpoints/", map[string]any{
		"name": "by_who", "query": map[string]any{"kind": "HogQLQuery", "query": "select number, {variables.who} from numbers(3)"},
	}); answer.Status != http.StatusCreated {
		t.Fatalf("publishing: %d %s", answer.Status, answer.Raw)
	}
	run := func(who string) {
		t.Helper()
		if answer := c.Do(t, http.MethodPost, "endpoints/by_who/run", map[string]any{"variables": map[string]any{"who": who}}); answer.Status != http.StatusOK {
			t.Fatalf("running: %d %s", answer.Status, answer.Raw)
		}
	}
	for range 4 {
		run("secret-customer")
	}
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	run("secret-customer")
	if answer := c.HogQL(t, "select splitByChar('two', event) from events"); answer.Status != http.StatusBadRequest {
		t.Fatalf("a query that fails: %d %s", answer.Status, answer.Raw)
	}
	for i := range 3 { // the third is one too many
		c.HogQL(t, fmt.Sprintf("select %d", i))
	}
	got := samples(t, s)
	endpoint := fmt.Sprintf(`{endpoint="by_who",project="%d"`, id)
	route := fmt.Sprintf(`{endpoint="",project="%d"`, id)
	for name, want := range map[string]string{
		"answers_total" + strings.Replace(endpoint, "{", `{cache="miss",`, 1) + "}": "1",
		"answers_total" + strings.Replace(endpoint, "{", `{cache="hit",`, 1) + "}":  "4",
		"answers_total" + strings.Replace(route, "{", `{cache="miss",`, 1) + "}":    "2",
		"query_duration_seconds_count" + endpoint + "}":                             "1",
		"query_rows_total" + endpoint + "}":                                         "3",
		"query_duration_seconds_count" + route + "}":                                "3",
		"query_failures_total" + route + `,reason="user error"}`:                    "1",
		fmt.Sprintf(`refused_total{endpoint="",limit="key",project="%d"}`, id):      "1",
		fmt.Sprintf(`queries_running{project="%d"}`, id):                            "0",
		"cache_max_bytes": "5.36870912e+08",
	} {
		if got["caddy_analytics_"+name] != want {
			t.Errorf("%s is %q, want %q", name, got["caddy_analytics_"+name], want)
		}
	}
	for name := range got {
		if strings.Contains(name, "secret-customer") || strings.Contains(name, key[:12]) {
			t.Errorf("a metric shows a value of a client: %s", name)
		}
	}
	if answer := c.Do(t, http.MethodDelete, "endpoints/by_who/", nil); answer.Status != http.StatusNoContent {
		t.Fatalf("deleting: %d %s", answer.Status, answer.Raw)
	}
	for name := range samples(t, s) {
		if strings.Contains(name, "by_who") {
			t.Errorf("the deleted endpoint is still counted: %s", name)
		}
	}
}

// TestTraces runs a query inside Caddy's tracing handler: compiling and ClickHouse are spans of the request's trace.
func TestTraces(t *testing.T) {
	var mu sync.Mutex
	var sent []byte
	came := make(chan struct{}, 64)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			unzipped, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Error(err)
				return
			}
			body = unzipped
		}
		raw, err := io.ReadAll(body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		sent = append(sent, raw...)
		mu.Unlock()
		came <- struct{}{}
	}))
	t.Cleanup(collector.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
	s := harness.Start(t)
	id, key := s.Project(t, "traces")
	config := strings.Replace(s.Config(""), "\tanalytics\n\t\n}", "\ttracing {\n\t\tspan api\n\t}\n\tanalytics\n}", 1)
	if !strings.Contains(config, "tracing") {
		t.Fatalf("the config has no place for tracing:\n%s", config)
	}
	if err := os.WriteFile(s.Caddyfile(), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	if answer := s.Client(id, key).HogQL(t, "select 'what a client asks'"); answer.Status != http.StatusOK {
		t.Fatalf("%d %s", answer.Status, answer.Raw)
	}
	limit := time.After(2 * time.Minute)
	for {
		mu.Lock()
		all := bytes.Clone(sent)
		mu.Unlock()
		if bytes.Contains(all, []byte("analytics.compile")) && bytes.Contains(all, []byte("analytics.clickhouse")) {
			if bytes.Contains(all, []byte("what a client asks")) {
				t.Error("a span shows a value of a client")
			}
			return
		}
		select {
		case <-came:
		case <-limit:
			t.Fatalf("no spans of a query within two minutes: %q", all)
		}
	}
}
