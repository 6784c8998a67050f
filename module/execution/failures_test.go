package execution_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
)

// TestFailures: callers get an older result instead of a query that took too long, but a cohort or a table whose query did has failed.
func TestFailures(t *testing.T) {
	of := func(kind clickhouse.ErrorKind) error { return fmt.Errorf("asking: %w", &clickhouse.Error{Kind: kind}) }
	for _, tt := range []struct {
		name                         string
		err                          error
		staleIsBetter, passes, limit bool
	}{
		{"none", nil, false, false, false},
		{"no server", of(clickhouse.Unavailable), true, true, false},
		{"too many queries", of(clickhouse.Busy), true, true, false},
		{"too long", of(clickhouse.Timeout), true, false, false},
		{"too much memory", of(clickhouse.Memory), true, false, false},
		{"a broken server", of(clickhouse.Internal), true, false, false},
		{"too long by an estimate", of(clickhouse.TooSlow), false, false, false},
		{"a mistake", of(clickhouse.UserError), false, false, false},
		{"a limit", fmt.Errorf("asking: %w", &execution.LimitError{}), false, true, true},
		{"the end of the server", context.Canceled, false, true, false},
		{"the registry", &execution.OutageError{Err: errors.New("broken")}, false, true, false},
	} {
		if got := execution.StaleIsBetter(tt.err); got != tt.staleIsBetter {
			t.Errorf("%s: a stale answer is better: %t", tt.name, got)
		}
		if got := execution.MayPass(tt.err); got != tt.passes {
			t.Errorf("%s: it may pass: %t", tt.name, got)
		}
		if got := execution.IsRefusal(tt.err); got != tt.limit {
			t.Errorf("%s: it is a refusal: %t", tt.name, got)
		}
	}
}

func TestReason(t *testing.T) {
	mistakes := diag.Errors{{Detail: "first"}, {Detail: "second"}}
	for _, tt := range []struct {
		name, want string
		err        error
	}{
		{"ClickHouse", "Division by zero", fmt.Errorf("asking: %w", &clickhouse.Error{Message: "Division by zero"})},
		{"the compiler", "first", fmt.Errorf("compiling: %w", mistakes)},
		{"something else", "", errors.New("broken")},
		{"none", "", nil},
	} {
		if got, ok := execution.Reason(tt.err); got != tt.want || ok != (tt.want != "") {
			t.Errorf("%s: the reason is %q, %t, want %q", tt.name, got, ok, tt.want)
		}
	}
}
