package faults_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// TestServersShareTheLog: each server on a ClickHouse shows the runs and queries of all servers, each once, including those of a server that was killed
// after a second.
func TestServersShareTheLog(t *testing.T) {
	servers, _ := startShared(t)
	project, key := sharedProject(t, servers[0], "log")
	clients := make([]*harness.Client, len(servers))
	for n, server := range servers {
		clients[n] = server.Client(project, key)
	}
	if made := clients[0].Do(t, http.MethodPost, "endpoints/", map[string]any{
		"name": "mine", "query": map[string]any{"kind": "HogQLQuery", "query": "select 'shared'"},
	}); made.Status != http.StatusCreated {
		t.Fatalf("making an endpoint: %d %s", made.Status, made.Raw)
	}
	for n, c := range clients {
		harness.Eventually(t, time.Minute, func() error { // until the server knows the endpoint
			if answer := c.Do(t, http.MethodPost, "endpoints/mine/run/", nil); answer.Status != http.StatusOK {
				return fmt.Errorf("server %d answers %d", n, answer.Status)
			}
			return nil
		})
	}
	check := func(c *harness.Client) error {
		usage := c.Do(t, http.MethodGet, "endpoints/mine/usage/", nil)
		day, _ := usage.Body["day"].(map[string]any)
		if got, want := fmt.Sprint(day["answered"]), fmt.Sprint(len(servers)); got != want {
			return fmt.Errorf("%s runs were answered, want %s", got, want)
		}
		log := c.Do(t, http.MethodGet, "endpoints/mine/logs/?level=INFO", nil)
		if got, want := fmt.Sprint(log.Body["count"]), fmt.Sprint(len(servers)); got != want {
			return fmt.Errorf("%s runs are listed, want %s", got, want)
		}
		return nil
	}
	for _, c := range clients {
		harness.Eventually(t, time.Minute, func() error { return check(c) }) // counts are written every ten seconds
		c.Shows(t, "select count(), uniq(query_id) from query_log where endpoint = 'mine'", []any{float64(len(servers)), float64(len(servers))})
	}
	if err := servers[0].Kill(); err != nil {
		t.Fatal(err)
	}
	if err := servers[0].Run(); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, time.Minute, func() error { return check(clients[0]) })
}
