package e2e_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"
)

// TestInsightMistakes sends queries that must not reach ClickHouse: each gets a 400 that names the field, even inside other nodes.
func TestInsightMistakes(t *testing.T) {
	c := newProject(t)
	event := func(fields ...any) map[string]any {
		out := map[string]any{"kind": "EventsNode", "event": "a"}
		for i := 0; i < len(fields); i += 2 {
			out[fields[i].(string)] = fields[i+1]
		}
		return out
	}
	object := func(fields ...any) map[string]any {
		out := event(fields...)
		delete(out, "kind")
		delete(out, "event")
		return out
	}
	series := func(all ...any) map[string]any { return map[string]any{"series": all} }
	all := []string{"TrendsQuery", "LifecycleQuery", "StickinessQuery"}
	trends := all[:1]
	property := object("properties", []any{object("key", "k", "operator", "nearly", "value", 1)})
	four := []any{object("property", "a"), object("property", "b"), object("property", "c"), object("property", "d")}
	for _, tt := range []struct {
		name   string
		kinds  []string
		fields map[string]any
		attr   string
	}{
		{"an unknown math", all, series(event("math", "mode")), "series.0.math"},
		{"a formula over a missing series", trends, object("trendsFilter", object("formula", "A/Z")), "trendsFilter.formula"},
		{"half a formula", trends, object("trendsFilter", object("formulaNodes", []any{object("formula", "A"), object("formula", "A +")})), "trendsFilter.formulaNodes.1.formula"},
		{"four breakdowns", trends, object("breakdownFilter", object("breakdowns", four)), "breakdownFilter.breakdowns"},
		{"a bad start", all, object("dateRange", object("date_from", "someday")), "dateRange.date_from"},
		{"a bad end", all, object("dateRange", object("date_to", "2023-02-30")), "dateRange.date_to"},
		{"more than 10,000 buckets", all, object("interval", "minute"), "interval"},
		{"an unknown interval", all, object("interval", "fortnight"), "interval"},
		{"an unknown operator", all, property, "properties.0.operator"},
		{"an unknown operator of a series", all, series(event("properties", property["properties"])), "series.0.properties.0.operator"},
		{"an action", all, series(map[string]any{"kind": "ActionsNode", "id": 7}), "series.0.id"},
		{"a field too many", all, object("colour", "red"), "colour"},
	} {
		for _, kind := range tt.kinds {
			t.Run(tt.name+" of "+kind, func(t *testing.T) {
				node := map[string]any{
					"kind": kind, "dateRange": map[string]any{"date_from": "2023-01-01", "date_to": "2023-12-31"}, "series": []any{event()},
				}
				maps.Copy(node, tt.fields)
				drill := map[string]any{"kind": "InsightActorsQuery", "source": node}
				if kind != "StickinessQuery" {
					drill["day"] = "2023-01-01"
				}
				for below, asked := range map[string]map[string]any{
					"": node, "source.": {"kind": "InsightVizNode", "source": node}, "source.source.": {"kind": "ActorsQuery", "source": drill},
				} {
					if below == "source.source." && strings.Contains(tt.name, "formula") {
						continue // a formula has no actors, but its series have
					}
					a := c.Do(t, http.MethodPost, "query/", map[string]any{"query": asked})
					detail, _ := a.Body["detail"].(string)
					named := a.Body["attr"] == below+tt.attr
					if a.Body["code"] == "parse_error" { // names its fields in its text: contract api.md, section 7
						named = strings.Contains(detail, "."+kind+"."+tt.attr+"\n")
					}
					if a.Status != http.StatusBadRequest || !named {
						t.Errorf("%s: %d %s, want it to name %s", asked["kind"], a.Status, a.Raw, below+tt.attr)
					}
					if timing := a.Header.Get("Server-Timing"); strings.Contains(timing, "clickhouse") {
						t.Errorf("it reached ClickHouse: %s", timing)
					}
				}
			})
		}
	}
	events := map[string]any{"kind": "EventsQuery", "select": []string{"event"}, "actionId": 7}
	if a := c.Do(t, http.MethodPost, "query/", map[string]any{"query": events}); a.Status != http.StatusBadRequest || a.Body["attr"] != "actionId" {
		t.Errorf("events of an action: %d %s", a.Status, a.Raw)
	}
}
