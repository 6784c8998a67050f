package clickhouse_test

import (
	"errors"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
)

// TestPatternsAreBounded checks that a long list of patterns is a user error, because the engine caches compiled lists.
func TestPatternsAreBounded(t *testing.T) {
	c := client(t)
	for _, tt := range []struct {
		name, patterns string
		taken          bool
	}{
		{"as many as may be", "arrayMap(n -> repeat('b', 100), range(20))", true},
		{"one more", "arrayMap(n -> repeat('b', 100), range(21))", false},
		{"a long one", "[repeat('b', 201)]", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := c.Query(t.Context(), clickhouse.Query{SQL: "SELECT multiMatchAny('a', " + tt.patterns + ")", Project: project()}, &rows{})
			if mistake, ok := errors.AsType[*clickhouse.Error](err); tt.taken != (err == nil) || err != nil && (!ok || mistake.Kind != clickhouse.UserError) {
				t.Errorf("the answer is %v", err)
			}
		})
	}
}
