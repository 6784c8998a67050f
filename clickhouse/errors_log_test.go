package clickhouse

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	driver "github.com/ClickHouse/clickhouse-go/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// TestFailuresQuoteNothing checks that the log has no text of ClickHouse about a query, or of the driver about a value, at any level.
func TestFailuresQuoteNothing(t *testing.T) {
	const marker = "MARKER"
	for name, tt := range map[string]struct {
		err  error
		want string // in the log line of a failure; empty means no line
	}{
		"an internal error":   {&driver.Exception{Code: 999, CodeName: "KEEPER_EXCEPTION", Message: "in query: SELECT '" + marker + "'"}, "code 999, KEEPER_EXCEPTION"},
		"a timeout":           {&driver.Exception{Code: 159, CodeName: "TIMEOUT_EXCEEDED", Message: "while executing '" + marker + "'"}, "code 159, TIMEOUT_EXCEEDED"},
		"the query's mistake": {&driver.Exception{Code: 41, CodeName: "CANNOT_PARSE_DATETIME", Message: "Cannot parse '" + marker + "'"}, ""},
		"a driver's error":    {fmt.Errorf("converting %s to Int64", marker), "an error of the type"},
		"a connection":        {fmt.Errorf("dialing ch1:9440: %w", driver.ErrConnectionClosed), "dialing ch1:9440"},
	} {
		t.Run(name, func(t *testing.T) {
			core, lines := observer.New(zap.DebugLevel)
			c, err := Open(Config{DSN: "http://127.0.0.1:1/default"}, zap.New(core))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			failed := c.failure(t.Context(), "asking", tt.err)
			c.logger.Error("it failed", Logged(failed))
			var failure string
			for _, line := range lines.All() {
				text := fmt.Sprint(line.Message, line.ContextMap())
				if strings.Contains(text, marker) {
					t.Errorf("the log has %s", text)
				}
				if line.Level == zap.DebugLevel {
					failure = text
				}
			}
			if (tt.want == "") != (failure == "") || !strings.Contains(failure, tt.want) {
				t.Errorf("the log has %q, want %q", failure, tt.want)
			}
			if _, ok := errors.AsType[*Error](failed); !ok {
				t.Errorf("failure() = %v", failed)
			}
		})
	}
}
