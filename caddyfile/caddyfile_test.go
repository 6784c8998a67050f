package caddyfile_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile" // the Caddyfile adapter
	_ "github.com/caddyserver/caddy/v2/modules/standard"          // the standard modules
	"github.com/google/go-cmp/cmp"

	_ "github.com/caddy-analytics/caddy-analytics/caddyfile" // the package under test
)

var update = flag.Bool("update", false, "rewrite the expected texts")

// separator separates a Caddyfile from the expected output.
const separator = "\n----------\n"

// TestAdapt reads testdata/*.caddyfiletest: a Caddyfile, and the JSON that it adapts to.
func TestAdapt(t *testing.T) {
	eachFile(t, "testdata/*.caddyfiletest", func(t *testing.T, caddyfile string) string {
		t.Helper()
		config, err := adapt(caddyfile)
		if err != nil {
			t.Fatalf("adapting: %v", err)
		}
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, config, "", "\t"); err != nil {
			t.Fatalf("indenting the config: %v", err)
		}
		return pretty.String()
	})
}

// TestRefused reads testdata/bad/*.caddyfiletest: a Caddyfile, and the error it causes, with its line.
func TestRefused(t *testing.T) {
	eachFile(t, "testdata/bad/*.caddyfiletest", func(t *testing.T, caddyfile string) string {
		t.Helper()
		config, err := adapt(caddyfile)
		if err == nil {
			t.Fatalf("adapting succeeded; got %s", config)
		}
		return err.Error()
	})
}

func adapt(caddyfile string) ([]byte, error) {
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(caddyfile), map[string]any{"filename": "Caddyfile"})
	return config, err
}

func eachFile(t *testing.T, pattern string, got func(t *testing.T, caddyfile string) string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no files match %s: %v", pattern, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".caddyfiletest"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			caddyfile, want, ok := strings.Cut(string(raw), separator)
			if !ok && !*update {
				t.Fatalf("%s has no line of dashes", file)
			}
			text := got(t, caddyfile+"\n")
			if *update {
				if err := os.WriteFile(file, []byte(strings.TrimRight(caddyfile, "\n")+separator+text+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(strings.TrimSpace(want), text); diff != "" {
				t.Errorf("%s (-want +got):\n%s", file, diff)
			}
		})
	}
}
