package trends_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/trends"
)

// TestLargeEcho: each line repeats the query's filters. An answer of a thousand lines and a filter of a MiB is refused.
func TestLargeEcho(t *testing.T) {
	t.Parallel()
	built, err := trends.Build(insighttest.Node[*trends.Query](t, `{"kind": "TrendsQuery", "series": [{"event": "a"}], "dateRange": {"date_from": "-1d"},
		"breakdownFilter": {"breakdown": "k", "breakdown_limit": 1000},
		"trendsFilter": {"resultCustomizations": {"a": {"hidden": "`+strings.Repeat("x", 1<<20)+`"}}}}`), insighttest.World())
	if err != nil {
		t.Fatal(err)
	}
	_, err = built.Shape(func(yield func([]byte) bool) {
		for i := range 1000 {
			if !yield(fmt.Appendf(nil, `[0, 0, %d, ["v%d"], ["2020-01-09"], [2]]`, i, i)) {
				return
			}
		}
	})
	if !errors.Is(err, insight.ErrTooLarge) {
		t.Errorf("Shape() = %v", err)
	}
}
