package command

import (
	"errors"
	"testing"
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

func TestPropertyChoices(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want string
	}{
		{"no such type", []string{"--as", "Nope"}, `--as is String, Numeric, Boolean or DateTime, not "Nope"`},
		{"nobody's property", []string{"--type", "session", "--as", "String"}, `--type is event, person or group, not "session"`},
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
