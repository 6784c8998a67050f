package compiler_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler"
)

// TestHostileInsights compiles insights with as much of everything as their nodes allow.
func TestHostileInsights(t *testing.T) { // not parallel: it measures
	type object = map[string]any
	repeated := func(n int, one func(i int) any) []any {
		out := make([]any, n)
		for i := range out {
			out[i] = one(i)
		}
		return out
	}
	filters := func(n, values int) []any {
		return repeated(n, func(i int) any {
			return object{"type": "event", "key": fmt.Sprintf("p%d", i), "operator": "exact", "value": repeated(values, func(j int) any { return fmt.Sprint(i, "-", j) })}
		})
	}
	series := func(n, conditions, values int, math string) []any {
		return repeated(n, func(i int) any {
			node := object{"kind": "EventsNode", "event": fmt.Sprintf("e%d", i), "properties": filters(conditions, values)}
			if math != "" {
				node["math"] = math
			}
			return node
		})
	}
	stars := "event"
	for range 30 {
		stars = "(" + stars + " in event)"
	}
	entity := object{"id": "e", "type": "events", "properties": filters(400, 100)}
	split := object{"breakdowns": []any{
		object{"type": "event", "property": "a"}, object{"type": "person", "property": "b"}, object{"type": "hogql", "property": stars},
	}}
	for name, node := range map[string]object{
		"trends of many series":     {"kind": "TrendsQuery", "series": series(100, 4, 10, "dau"), "compareFilter": object{"compare": true}},
		"trends of many values":     {"kind": "TrendsQuery", "series": series(10, 1, 40_000, "total")},
		"trends of many filters":    {"kind": "TrendsQuery", "series": series(60, 400, 3, "weekly_active"), "breakdownFilter": split},
		"trends of many formulas":   {"kind": "TrendsQuery", "series": series(20, 2, 2, "unique_session"), "trendsFilter": object{"formulas": repeated(100, func(int) any { return strings.Repeat("A*B+", 400) + "C" })}},
		"trends split and compared": {"kind": "TrendsQuery", "series": series(50, 20, 5, "monthly_active"), "breakdownFilter": split, "compareFilter": object{"compare": true}, "interval": "hour"},
		"funnel of many steps":      {"kind": "FunnelsQuery", "series": series(30, 100, 20, ""), "breakdownFilter": object{"breakdown": "a", "breakdown_type": "event"}},
		"funnel with exclusions":    {"kind": "FunnelsQuery", "series": series(20, 10, 5, ""), "funnelsFilter": object{"funnelOrderType": "unordered"}},
		"retention of many periods": {"kind": "RetentionQuery", "retentionFilter": object{"totalIntervals": 100, "targetEntity": entity, "returningEntity": entity}},
		"paths of many rules":       {"kind": "PathsQuery", "properties": filters(400, 50), "pathsFilter": object{"includeEventTypes": []any{"custom_event", "hogql"}, "pathsHogQLExpression": stars, "pathGroupings": repeated(100, func(i int) any { return fmt.Sprintf("a%d*", i) })}},
		"stickiness of many series": {"kind": "StickinessQuery", "series": series(100, 50, 10, "")},
		"lifecycle of many values":  {"kind": "LifecycleQuery", "series": series(1, 400, 100, "")},
		"correlation of many names": {
			"kind": "FunnelCorrelationQuery", "funnelCorrelationType": "properties",
			"funnelCorrelationNames":        repeated(100, func(i int) any { return fmt.Sprint("name", i) }),
			"funnelCorrelationExcludeNames": repeated(100, func(i int) any { return fmt.Sprint("other", i) }),
			"source":                        object{"kind": "FunnelsActorsQuery", "source": object{"kind": "FunnelsQuery", "series": series(30, 50, 20, "")}},
		},
		"heatmap of many values":     {"kind": "CalendarHeatmapQuery", "series": series(1, 400, 100, "dau")},
		"overview of many filters":   {"kind": "WebOverviewQuery", "properties": filters(400, 50), "compareFilter": object{"compare": true}},
		"pages of many filters":      {"kind": "WebStatsTableQuery", "breakdownBy": "Page", "includeBounceRate": true, "includeScrollDepth": true, "properties": filters(400, 50)},
		"events of many expressions": {"kind": "EventsQuery", "select": repeated(100, func(int) any { return stars }), "properties": filters(400, 20)},
		"actors of many expressions": {"kind": "ActorsQuery", "select": repeated(100, func(int) any { return "id" }), "properties": repeated(400, func(i int) any {
			return object{"type": "person", "key": fmt.Sprintf("p%d", i), "operator": "exact", "value": "x"}
		})},
		"expressions in every filter":  {"kind": "TrendsQuery", "series": series(1, 1, 1, "total"), "properties": repeated(400, func(int) any { return object{"type": "hogql", "key": stars} })},
		"a long expression in filters": {"kind": "TrendsQuery", "series": series(1, 1, 1, "total"), "properties": repeated(100, func(int) any { return object{"type": "hogql", "key": "1 in (" + strings.Repeat("1, ", 20_000) + "2)"} })},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(node)
			if err != nil {
				t.Fatal(err)
			}
			q, err := compiler.Parse(raw)
			if err != nil {
				t.Fatalf("%.300s", err)
			}
			if _, err := measured(t, q, hostileEnv(t)); err != nil {
				t.Logf("%.160s", err)
			}
		})
	}
}
