package e2e_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

// curl is a command of the README: its path below the project and its body.
var curl = regexp.MustCompile(`(?s)curl -\w+ \$API/(\S+) -H "Authorization: Bearer \$KEY" -H "\$J" -d '([^']*)'`)

// TestReadmeTour sends the README's requests in their order, to a project with the demo's events.
func TestReadmeTour(t *testing.T) {
	c := demoProject(t)
	commands := curl.FindAllStringSubmatch(document(t, "README.md"), -1)
	if all := strings.Count(document(t, "README.md"), "    curl "); len(commands) != all || all < 4 {
		t.Fatalf("%d of %d commands of the README are understood", len(commands), all)
	}
	for _, command := range commands {
		path, body := command[1], command[2]
		if !json.Valid([]byte(body)) {
			t.Errorf("%s: the body is no JSON: %s", path, body)
		}
		answer := c.Do(t, http.MethodPost, path, body)
		if answer.Status != http.StatusOK && answer.Status != http.StatusCreated {
			t.Errorf("%s: %d %s", path, answer.Status, answer.Raw)
		}
		if strings.HasSuffix(path, "/run") && len(rows(t, answer)) != 20 {
			t.Errorf("%s: the page has %d rows", path, len(rows(t, answer)))
		}
	}
}

// indented finds the indented blocks of a page.
var indented = regexp.MustCompile(`(?m)(?:^    .*\n|^\n)+`)

// TestDocumentedConfigs gives every Caddyfile and JSON config of README and docs to the server's own check.
func TestDocumentedConfigs(t *testing.T) {
	binary, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, page := range []string{"README.md", "docs/caddyfile.md"} {
		for _, block := range indented.FindAllString(document(t, page), -1) {
			text := strings.TrimSpace(regexp.MustCompile(`(?m)^    `).ReplaceAllString(block, ""))
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
			validate.Env = append(os.Environ(), "CLICKHOUSE_DSN=clickhouse://user:secret@ch1:9440/analytics", "XDG_DATA_HOME="+t.TempDir())
			if out, err := validate.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s\n%s", page, err, text, out)
			}
		}
	}
	if checked < 3 {
		t.Errorf("only %d configs are documented", checked)
	}
}

// TestValidateRefuses checks that `caddy validate` names the line of a bad value, and finds what JSON users write wrongly.
func TestValidateRefuses(t *testing.T) {
	binary, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, adapter, config, want string }{
		{"Caddyfile", "caddyfile", "{\n\tanalytics {\n\t\tcache {\n\t\t\tttl soon\n\t\t}\n\t}\n}\n", ":4"},
		{"JSON", "", `{"apps": {"analytics": {"limits": {"concurrency": -1}}}}`, "limits concurrency must be positive"},
		{"JSON, unknown field", "", `{"apps": {"analytics": {"chache": {}}}}`, "chache"},
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
