package command

import (
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestRefusal(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"the server's reason", `caddy responded with error: HTTP 400: {"error":"there are 2 projects: say which with --project"}` + "\n", "there are 2 projects: say which with --project"},
		{"a reason that is quoted", `caddy responded with error: HTTP 404: {"error":"no person \"a\": not found"}` + "\n", `no person "a": not found`},
		{
			"an answer of another server", "caddy responded with error: HTTP 404: 404 page not found",
			"asking the server at localhost:2019 (--address names another one): caddy responded with error: HTTP 404: 404 page not found",
		},
		{
			"no answer", "performing request: connection refused",
			"asking the server at localhost:2019 (--address names another one): performing request: connection refused",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := refusal("localhost:2019", errors.New(tt.in)).Error(); got != tt.want {
				t.Errorf("refusal(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

// TestEmptyFlags: a flag whose value is empty, such as that of a variable of the shell that is not set, is refused.
func TestEmptyFlags(t *testing.T) {
	tests := []struct {
		name string
		cmd  *cobra.Command
		args []string
		want string
	}{
		{"a retention", projectCommand(), []string{"set", "1", "--retention", ""}, "--retention is empty"},
		{"the retention of a new project", projectCommand(), []string{"create", "--name", "n", "--retention="}, "--retention is empty"},
		{"the end of a key", keyCommand(), []string{"create", "--project", "1", "--scopes", "*", "--expires", ""}, "--expires is empty"},
		{"the scopes of a session", consoleCommand(), []string{"--scopes", ""}, "--scopes is empty"},
		{"a backup to restore", backupCommand(), []string{"restore", "--backup", "", t.TempDir()}, "--backup is empty"},
		{"the main shard", projectCommand(), []string{"create", "--name", "n", "--shard", "", "--retention", "x"}, "--retention x is not a number of days (want, for example, 365d, or off)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.cmd.SilenceErrors, tt.cmd.SilenceUsage = true, true
			tt.cmd.SetArgs(tt.args)
			if err := tt.cmd.Execute(); err == nil || err.Error() != tt.want {
				t.Errorf("%v: %v, want %s", tt.args, err, tt.want)
			}
		})
	}
}

// TestHelp: "help" before the names of commands is --help after them.
func TestHelp(t *testing.T) {
	tests := []struct {
		name, args, want string
	}{
		{"of a group", "help", "caddy project [command]"},
		{"of a command", "help create", "caddy project create"},
		{"of an unknown command", "help creat", `unknown command "creat" for "caddy project": did you mean create?; its commands are `},
		{"of help", "help help", "caddy project [command]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := &cobra.Command{Use: "caddy", SilenceErrors: true, SilenceUsage: true}
			root.AddCommand(projectCommand())
			var out strings.Builder
			root.SetOut(&out)
			root.SetArgs(append([]string{"project"}, strings.Fields(tt.args)...))
			if err := root.Execute(); err != nil {
				out.WriteString(err.Error())
			}
			if !strings.Contains(out.String(), tt.want) {
				t.Errorf("project %s prints\n%s\nwithout %q", tt.args, out.String(), tt.want)
			}
		})
	}
}

func TestPropertyChoices(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"no such type", []string{"--as", "Nope"}, `--as must be String, Numeric, Boolean or DateTime, not "Nope"`},
		{"nobody's property", []string{"--type", "session", "--as", "String"}, `--type must be event, person or group, not "session"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cmd := propertyCommand()
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			cmd.SetArgs(append([]string{"set", "--project", "1", "--name", "n"}, tt.args...))
			if err := cmd.Execute(); err == nil || err.Error() != tt.want {
				t.Errorf("%v: %v, want %s", tt.args, err, tt.want)
			}
		})
	}
}
