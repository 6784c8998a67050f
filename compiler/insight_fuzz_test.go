package compiler_test

import (
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// FuzzInsight checks that every insight and every list of events that can be read is compiled or refused as its author's
// mistake, and that what is printed is closed.
func FuzzInsight(f *testing.F) {
	for _, seed := range []string{
		`{"kind": "LifecycleQuery", "series": [{"event": "a"}], "interval": "week", "aggregation_group_type_index": 2, "dateRange": {"date_from": "all"}}`,
		`{"kind": "LifecycleQuery", "series": [{"properties": [{"type": "hogql", "key": "1 in (select 1)"}]}], "samplingFactor": 0.25}`,
		`{"kind": "StickinessQuery", "series": [{"math": "hogql", "math_hogql": "e.event"}, {"event": null}], "intervalCount": 3, "interval": "hour"}`,
		`{"kind": "StickinessQuery", "series": [{"event": "x"}], "compareFilter": {"compare": true}, "stickinessFilter": {"stickinessCriteria": {"operator": "exact", "value": 2}}}`,
		`{"kind": "EventsQuery", "select": ["*", "count()", "person", "max(timestamp) as m"], "where": ["m > 1"], "orderBy": ["m DESC"], "after": "-1d"}`,
		`{"kind": "TrendsQuery", "series": [{"event": "x", "math": "dau"}], "breakdownFilter": {"breakdown": "$browser"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		n, err := query.Parse(raw)
		if err != nil || len(raw) > 4096 {
			return
		}
		w := world{Timezone: "America/New_York"}
		c, err := compiler.Compile(n, w.env(t))
		switch {
		case err == nil:
			checkClosed(t, string(raw), c.SQL)
		case compiler.Mistakes(err) == nil:
			t.Errorf("%s is refused with a bug: %v", raw, err)
		}
	})
}
