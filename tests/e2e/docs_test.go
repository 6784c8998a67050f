package e2e_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// document reads a file of the repository.
func document(t *testing.T, name string) string {
	t.Helper()
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestDocumentedConfigs runs the server's own check on every Caddyfile and JSON config in README and docs.
func TestDocumentedConfigs(t *testing.T) {
	binary, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	pages := []string{
		"README.md", "docs/caddyfile.md", "docs/nodes.md", "docs/clickhouse-hosts.md", "docs/console.md", "docs/dashboards.md", "docs/operations.md",
	}
	for _, page := range pages {
		for _, text := range harness.Blocks(document(t, page)) {
			if !strings.HasPrefix(text, "{\n") || strings.Contains(text, "<dsn>") {
				continue
			}
			checked++
			adapter, file := "caddyfile", filepath.Join(t.TempDir(), "config")
			if json.Valid([]byte(text)) {
				adapter = ""
			}
			if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			validate := exec.Command(binary, "validate", "--config", file, "--adapter", adapter)
			validate.Env = append(os.Environ(), "CLICKHOUSE_DSN=clickhouse://user:secret@ch1:9440/analytics",
				"REGISTRY_DSN=postgres://user:secret@db/analytics", "XDG_DATA_HOME="+t.TempDir())
			if out, err := validate.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s\n%s", page, err, text, out)
			}
		}
	}
	if checked < 3 {
		t.Errorf("only %d configs are documented", checked)
	}
}

// TestValidateRefuses checks that `caddy validate` names the line of a bad value, and finds common mistakes in JSON configs.
func TestValidateRefuses(t *testing.T) {
	binary, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, adapter, config, want string }{
		{"Caddyfile", "caddyfile", "{\n\tanalytics {\n\t\tcache {\n\t\t\tttl soon\n\t\t}\n\t}\n}\n", ":4"},
		{"JSON", "", `{"apps": {"analytics": {"limits": {"concurrency": -1}}}}`, "limits concurrency must be positive"},
		{"JSON, unknown field", "", `{"apps": {"analytics": {"chache": {}}}}`, "chache"},
		{"JSON, shards of the embedded engine", "", `{"apps": {"analytics": {"clickhouse_shards": {"east": "clickhouse://ch2"}}}}`, "clickhouse shard east: the embedded engine has no shards"},
		{"JSON, name of a shard", "", `{"apps": {"analytics": {"clickhouse": "clickhouse://ch1", "clickhouse_shards": {"": "clickhouse://ch2"}}}}`, "is not a valid name of a shard"},
		{"JSON, DSN after placeholders", "", `{"apps": {"analytics": {"clickhouse": "{env.NO_DSN_HERE}x"}}}`, "clickhouse"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config")
			if err := os.WriteFile(file, []byte(tt.config), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command(binary, "validate", "--config", file, "--adapter", tt.adapter).CombinedOutput()
			if err == nil || !strings.Contains(string(out), tt.want) {
				t.Errorf("validate: %v, without %q:\n%s", err, tt.want, out)
			}
		})
	}
}
