package warehouse

import (
	"testing"
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/physical"
)

// TestLogsHaveNoVersion: a query that reads a log is never considered unchanged, since rows come in all the time; a project's other data are not affected.
func TestLogsHaveNoVersion(t *testing.T) {
	t.Parallel()
	c := newChanges()
	for _, tt := range []struct {
		tables []string
		known  bool
	}{
		{[]string{physical.QueryLog}, false},
		{[]string{physical.Events, physical.QueryLog}, false},
		{[]string{physical.RunLog}, false},
		{[]string{physical.Events, "person"}, true},
	} {
		if _, known := c.now(1).Version(schema.Reads{Tables: tt.tables}, time.Time{}, time.Time{}); known != tt.known {
			t.Errorf("the version of %v is known: %t", tt.tables, known)
		}
	}
}
