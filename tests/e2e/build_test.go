package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

const guest = `package guest

import "github.com/caddyserver/caddy/v2"

func init() { caddy.RegisterModule(Guest{}) }

// Guest is a module that does nothing.
type Guest struct{}

// CaddyModule returns the Caddy module information.
func (Guest) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "analytics_test_guest", New: func() caddy.Module { return new(Guest) }}
}
`

// TestBuildWithPlugin builds a Caddy with an additional plugin, and lists its modules.
func TestBuildWithPlugin(t *testing.T) {
	t.Parallel() // it builds the server
	root, err := harness.Root()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	plugin, output := filepath.Join(folder, "guest"), filepath.Join(folder, "caddy")
	if err := os.Mkdir(plugin, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"guest.go": guest, "go.mod": "module example.com/guest\n\ngo 1.26\n\nrequire github.com/caddyserver/caddy/v2 v2.11.9\n"} {
		if err := os.WriteFile(filepath.Join(plugin, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	binary, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	build := exec.Command(binary, "--with", "example.com/guest="+plugin, "--output", output)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	out, err := exec.Command(output, "list-modules").CombinedOutput()
	if err != nil {
		t.Fatalf("list-modules: %v\n%s", err, out)
	}
	for _, id := range []string{"analytics", "analytics_test_guest", "http.handlers.analytics", "admin.api.analytics", "http.handlers.reverse_proxy"} {
		if !strings.Contains("\n"+string(out), "\n"+id+"\n") {
			t.Errorf("the binary lacks the module %s", id)
		}
	}
	for _, args := range [][]string{{"--with", "not a module"}, {"--with", "example.com/guest=" + folder}, {"--output", output, "stray"}} {
		bad := exec.Command(binary, args...)
		bad.Dir = root
		if out, err := bad.CombinedOutput(); err == nil {
			t.Errorf("%v builds: %s", args, out)
		}
	}
}
