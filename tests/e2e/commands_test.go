package e2e_test

import (
	"encoding/json"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// analytics runs `caddy analytics …` without a server.
func analytics(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	binary, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	var out, messages strings.Builder
	cmd := exec.Command(binary, append([]string{"analytics"}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &messages
	_ = cmd.Run() // the status tells
	return out.String(), messages.String(), cmd.ProcessState.ExitCode()
}

// TestVersion checks what the binary says it is built from.
func TestVersion(t *testing.T) {
	stdout, stderr, status := analytics(t, "version")
	var got struct{ Version, Commit, Caddy, Engine, Go, Platform string }
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || status != 0 {
		t.Fatalf("status %d, %v\n%s%s", status, err, stdout, stderr)
	}
	if got.Version == "" || !strings.HasPrefix(got.Caddy, "v2.") || got.Engine != embedded.Version || got.Go != runtime.Version() || got.Platform != runtime.GOOS+"/"+runtime.GOARCH {
		t.Errorf("version prints %s", stdout)
	}
}

// TestMistypedCommands checks that a mistyped word fails, with a message on standard error that names the nearest word.
func TestMistypedCommands(t *testing.T) {
	for _, tt := range []struct {
		args string
		want string // on standard error
	}{
		{"projct list", `unknown command "projct" for "caddy analytics": did you mean project?; its commands are alert, backup, capture, cohort, console, endpoints,`},
		{"key crate", `unknown command "crate" for "caddy analytics key": did you mean create?; its commands are create, list, revoke, roll`},
		{"nonsense", `unknown command "nonsense" for "caddy analytics"; its commands are`},
		{"token nonsense", `unknown command "nonsense" for "caddy analytics token"; its commands are`},
		{"project", "project needs one of its subcommands"},
		{"key create --projct 1", "unknown flag: --projct: did you mean --project?; see caddy analytics key create --help"},
		{"project list --addrss x", "unknown flag: --addrss: did you mean --address?"},
		{"project list --zzzzzzzz", "unknown flag: --zzzzzzzz; see caddy analytics project list --help"},
		{"project create", `required flag(s) "name" not set`},
		{"project create --name", "flag needs an argument: --name; see"},
		{"project list extra", `"extra"`},
		{"consol", `unknown command "consol" for "caddy analytics": did you mean console?`},
		{"console now", `"now"`},
		{"version now", `"now"`},
	} {
		t.Run(tt.args, func(t *testing.T) {
			stdout, stderr, status := analytics(t, strings.Fields(tt.args)...)
			if status == 0 || !strings.Contains(stderr, tt.want) || strings.Contains(stdout, "{") {
				t.Errorf("status %d\n%s%s", status, stdout, stderr)
			}
		})
	}
}
