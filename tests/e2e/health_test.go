package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// fetch returns the status and the body at a URL.
func fetch(t *testing.T, address string) string {
	t.Helper()
	answer, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(answer.StatusCode, " ", strings.TrimSpace(string(body)))
}

// TestHealth: the admin address reports whether the server is alive and ready, even while queries occupy all places; a site does so where
// configured.
func TestHealth(t *testing.T) {
	s := harness.Start(t, "limits {\n\t\t\trate 100000/s\n\t\t\tmax_execution_time 1h\n\t\t}")
	const live, ready = `200 {"status":"ok"}`, `200 {"status":"ok","clickhouse":"ok","registry":"ok"}`
	check := func(when, base string) {
		t.Helper()
		for path, want := range map[string]string{"/healthz": live, "/readyz": ready} {
			harness.Eventually(t, time.Minute, func() error { // the registry has half a second to answer
				if got := fetch(t, base+path); got != want {
					return fmt.Errorf("%s, %s: %s", when, path, got)
				}
				return nil
			})
		}
	}
	check("at the start", "http://"+s.Admin)
	if got := fetch(t, s.URL+"/readyz"); strings.Contains(got, "clickhouse") {
		t.Errorf("a site that is not told to answers %s", got)
	}
	var clients []*harness.Client
	for i := range 8 { // more than there are places
		c := s.Client(s.Project(t, fmt.Sprint("busy ", i)))
		clients = append(clients, c)
		begin(t, c, "long", fmt.Sprintf(endless, i))
	}
	harness.Eventually(t, time.Minute, func() error {
		for name, n := range samples(t, s) {
			if strings.HasPrefix(name, "caddy_analytics_queries_waiting") && n != "0" {
				return nil
			}
		}
		return fmt.Errorf("no query waits")
	})
	check("with all places taken", "http://"+s.Admin)
	for _, c := range clients {
		c.Do(t, http.MethodDelete, "query/long/", nil)
	}
	text, err := os.ReadFile(s.Caddyfile())
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.Replace(string(text), "\n\tanalytics\n", "\n\tanalytics {\n\t\thealth\n\t}\n", 1))
	if err := os.WriteFile(s.Caddyfile(), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	check("on a site", s.URL)
}
