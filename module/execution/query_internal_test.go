package execution

import (
	"fmt"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/compiler"
)

// TestQuerySize: what a query counts as in memory grows with the values in it, not only with its texts.
func TestQuerySize(t *testing.T) {
	const trend = `{"kind": "TrendsQuery", "series": [{"kind": "EventsNode", "event": "a"}], "properties": [{"key": "n", "type": "event", "value": [%s]}]}`
	for values, least := range map[int]int{1: 1 << 10, 10_000: 10_000 * 32, 100_000: 100_000 * 32} {
		node, err := compiler.Parse(fmt.Appendf(nil, trend, strings.Repeat("1,", values-1)+"1"))
		if err != nil {
			t.Fatal(err)
		}
		q := &Query{Node: node, Text: node.Text(), Key: cache.KeyParts{Query: string(node.Canonical())}.Key()}
		if size := q.Size(); size < least || size > 4*least {
			t.Errorf("with %d values it counts as %d bytes, want %d or a little more", values, size, least)
		}
		run := &Run{Query: q}
		if size := run.size(); size < int64(10*2*values) {
			t.Errorf("with %d values its run counts as %d bytes", values, size)
		}
	}
}
