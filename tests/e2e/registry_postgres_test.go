package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/internal/postgrestest"
	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// TestRegistryInPostgres: two servers share a registry, whose DSN is in a file. While the database is away both answer with what they know, and
// refuse writes with 503; when it is back they take them again.
func TestRegistryInPostgres(t *testing.T) {
	database := postgrestest.New(t)
	secret := filepath.Join(t.TempDir(), "registry")
	if err := os.WriteFile(secret, []byte(database.Database(t)), 0o600); err != nil {
		t.Fatal(err)
	}
	place := "registry {file." + secret + "}"
	first, second := harness.Start(t, "clickhouse http://127.0.0.1:1/default", place), harness.Start(t, "clickhouse http://127.0.0.1:1/default", place)
	id, _ := first.Project(t, "shop")
	key := first.Key(t, id, "annotation:read,annotation:write", "personal")
	one, other := first.Client(id, key), second.Client(id, key)
	annotation := map[string]any{"content": "deployed", "scope": "project"}
	counts := func(c *harness.Client, want int) error {
		answer, err := c.Send(http.MethodGet, "annotations/", nil)
		if err != nil {
			return err
		}
		if list, _ := answer.Body["results"].([]any); answer.Status != http.StatusOK || len(list) != want {
			return fmt.Errorf("%d: %s, want %d annotations", answer.Status, answer.Raw, want)
		}
		return nil
	}
	writes := func() error {
		answer, err := other.Send(http.MethodPost, "annotations/", annotation)
		if err != nil {
			return err
		}
		if answer.Status != http.StatusCreated {
			return fmt.Errorf("%d: %s", answer.Status, answer.Raw)
		}
		return nil
	}
	harness.Eventually(t, 10*time.Second, func() error { return counts(other, 0) })
	if err := writes(); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, 10*time.Second, func() error { return counts(one, 1) })

	if err := database.Stop(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		for _, c := range []*harness.Client{one, other} {
			if err := counts(c, 1); err != nil {
				t.Errorf("while the database is away: %v", err)
			}
			answer := c.Do(t, http.MethodPost, "annotations/", annotation)
			if answer.Status != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" || answer.Body["type"] != "server_error" {
				t.Errorf("a write while the database is away: %d: %s", answer.Status, answer.Raw)
			}
		}
	}
	if err := database.Run(); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, 30*time.Second, writes)
	harness.Eventually(t, 10*time.Second, func() error { return counts(one, 2) })
	for n, log := range []string{first.Log(), second.Log()} {
		if strings.Contains(log, "analytics:secret") {
			t.Errorf("the log of server %d has the password of the database", n)
		}
	}
}
