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

// TestRegistryInPostgres: two servers share a registry, whose DSN is in a file. While the database is down, both answer with what they know, and refuse
// writes with 503; when it is back, they accept writes again.
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
	harness.Eventually(t, time.Minute, func() error { return counts(other, 0) })
	if err := writes(); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, time.Minute, func() error { return counts(one, 1) })

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
	harness.Eventually(t, time.Minute, writes)
	harness.Eventually(t, time.Minute, func() error { return counts(one, 2) })
	for n, log := range []string{first.Log(), second.Log()} {
		if strings.Contains(log, "analytics:secret") {
			t.Errorf("the log of server %d has the password of the database", n)
		}
	}
}

// TestMovePlaceholders: placeholders can say where to read the DSNs of a move from, and no message shows their values.
func TestMovePlaceholders(t *testing.T) {
	server, err := harness.Open(t.TempDir(), "clickhouse http://127.0.0.1:1/default")
	if err != nil {
		t.Fatal(err)
	}
	id, _ := server.Project(t, "moved")
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "registry")
	dsn := postgrestest.New(t).Database(t)
	if err := os.WriteFile(secret, []byte(dsn), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("MOVED_FROM", "sqlite:"+filepath.Join(server.Folder, "data", "registry.db"))
	t.Setenv("MOVED_AWAY", strings.Replace(dsn, "/test", "/none", 1))
	var moved struct{ Records int }
	server.MustCommand(t, &moved, nil, "registry", "move", "--from", "{env.MOVED_FROM}", "--to", "{file."+secret+"}")
	if moved.Records == 0 {
		t.Error("nothing was moved")
	}
	for _, tt := range []struct{ name, from, to, want string }{
		{"a variable that is not set", "{env.MOVED_NOWHERE}", "{file." + secret + "}", "--from: "},
		{"a missing file", "{env.MOVED_FROM}", "{file." + secret + ".none}", "--to"},
		{"a missing database", "{env.MOVED_FROM}", "{env.MOVED_AWAY}", "does not exist"},
	} {
		if out, messages, err := server.Command(nil, "registry", "move", "--from", tt.from, "--to", tt.to); err == nil || !strings.Contains(messages, tt.want) || strings.Contains(out+messages, "analytics:secret") {
			t.Errorf("%s: %v, %s%s, want %q", tt.name, err, out, messages, tt.want)
		}
	}
	after := harness.Start(t, "clickhouse http://127.0.0.1:1/default", "registry {file."+secret+"}")
	if key := after.Key(t, id, "annotation:read", "personal"); after.Client(id, key).Do(t, http.MethodGet, "annotations/", nil).Status != http.StatusOK {
		t.Error("the project is not there after the move")
	}
}
