package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// funnelItem has the fields of a step that the tests read.
type funnelItem struct {
	Count     float64
	Breakdown []any
	Value     any `json:"breakdown_value"`
}

// funnelNode is a funnel of the demo's authors in 2023, from any commit to a commit to storage; the fields override its own.
func funnelNode(fields map[string]any) map[string]any {
	node := map[string]any{
		"kind": "FunnelsQuery", "dateRange": map[string]any{"date_from": "2023-01-01", "date_to": "2023-12-31"},
		"series": []any{
			map[string]any{"kind": "EventsNode", "event": "commit authored"},
			map[string]any{"kind": "EventsNode", "event": "commit authored", "properties": []any{
				map[string]any{"type": "event", "key": "component", "operator": "exact", "value": "tsdb"},
			}},
		},
	}
	maps.Copy(node, fields)
	return node
}

func askFunnel(t *testing.T, c *harness.Client, fields map[string]any, results any) {
	t.Helper()
	a := c.Do(t, http.MethodPost, "query/", map[string]any{"query": funnelNode(fields)})
	if a.Status != http.StatusOK {
		t.Fatalf("a funnel: %d %s", a.Status, a.Raw)
	}
	body := struct{ Results any }{results}
	if err := json.Unmarshal(a.Raw, &body); err != nil {
		t.Fatalf("%v in %s", err, a.Raw)
	}
}

// TestFunnelsAgreeWithOthers compares funnels of real events with trends, with HogQL, and with the lists of their actors.
func TestFunnelsAgreeWithOthers(t *testing.T) {
	c := demoProject(t)
	people := func(condition string) float64 {
		row, _ := c.Query(t, "select count(distinct person_id) from events where event = 'commit authored' and toYear(timestamp) = 2023 and "+condition)[0].([]any)
		n, _ := row[0].(float64)
		return n
	}
	everybody := people("true")
	_, _, dau, _ := trendNumbers(t, askTrend(t, c, map[string]any{
		"trendsFilter": map[string]any{"display": "BoldNumber"}, "series": []any{map[string]any{"kind": "EventsNode", "event": "commit authored", "math": "dau"}},
	}))
	var steps []funnelItem
	askFunnel(t, c, nil, &steps)
	if len(steps) != 2 || steps[0].Count != everybody || everybody != dau || everybody < 50 {
		t.Fatalf("the first of %v has not the %v people of HogQL, %v of the trend", steps, everybody, dau)
	}
	if steps[1].Count == 0 || steps[1].Count > people("properties.component = 'tsdb'") {
		t.Errorf("the second step has %v people", steps[1].Count)
	}
	var flow, long []funnelItem
	askFunnel(t, c, map[string]any{"funnelsFilter": map[string]any{"funnelVizType": "flow"}}, &flow)
	if diff := cmp.Diff(steps, flow); diff != "" {
		t.Errorf("the flow is not its steps (-want +got):\n%s", diff)
	}
	askFunnel(t, c, map[string]any{"funnelsFilter": map[string]any{"funnelWindowInterval": 400}}, &long)
	if long[0].Count != everybody || long[1].Count < steps[1].Count {
		t.Errorf("in 400 days: %v, want %v and no less than %v", long, everybody, steps[1].Count)
	}
	var values [][]funnelItem
	askFunnel(t, c, map[string]any{"breakdownFilter": map[string]any{"breakdown": "component", "breakdown_limit": 3}}, &values)
	first, second := 0.0, 0.0
	for _, row := range values {
		first, second = first+row[0].Count, second+row[1].Count
	}
	if len(values) != 4 || first != steps[0].Count || second != steps[1].Count {
		t.Errorf("the values %v sum up to %v and %v, want %v", values, first, second, steps)
	}
	var unordered []funnelItem
	askFunnel(t, c, map[string]any{"funnelsFilter": map[string]any{"funnelOrderType": "unordered"}}, &unordered)
	if unordered[0].Count != everybody || unordered[1].Count < steps[1].Count {
		t.Errorf("unordered: %v, want %v and no less than %v", unordered, everybody, steps[1].Count)
	}
	for step, want := range map[int]float64{1: steps[0].Count, 2: steps[1].Count, -2: steps[0].Count - steps[1].Count} {
		a := c.Do(t, http.MethodPost, "query/", map[string]any{"query": map[string]any{
			"kind": "ActorsQuery", "select": []any{"id"}, "limit": 10000,
			"source": map[string]any{"kind": "FunnelsActorsQuery", "funnelStep": step, "source": funnelNode(nil)},
		}})
		list, _ := a.Body["results"].([]any)
		if a.Status != http.StatusOK || float64(len(list)) != want {
			t.Errorf("step %d has %d actors, want %v: %d %.200s", step, len(list), want, a.Status, a.Raw)
		}
	}
}

// TestFunnelsMistakes sends queries that must not reach ClickHouse.
func TestFunnelsMistakes(t *testing.T) {
	c := demoProject(t)
	one := []any{map[string]any{"kind": "EventsNode", "event": "commit authored"}}
	exclusion := map[string]any{"kind": "EventsNode", "event": "x", "funnelFromStep": 1, "funnelToStep": 1}
	for attr, fields := range map[string]map[string]any{
		"series":                                  {"series": one},
		"funnelsFilter.funnelToStep":              {"funnelsFilter": map[string]any{"funnelVizType": "time_to_convert", "funnelToStep": 2}},
		"funnelsFilter.funnelAggregateByHogQL":    {"funnelsFilter": map[string]any{"funnelAggregateByHogQL": "count("}},
		"funnelsFilter.exclusions.0.funnelToStep": {"funnelsFilter": map[string]any{"exclusions": []any{exclusion}}},
	} {
		a := c.Do(t, http.MethodPost, "query/", map[string]any{"query": funnelNode(fields)})
		if a.Status != http.StatusBadRequest || a.Body["attr"] != attr {
			t.Errorf("%v: %d %s, want attr %s", fields, a.Status, a.Raw, attr)
		}
	}
}

// TestFunnelsEndpoint runs a published funnel: its variables, and what it returns for missing values.
func TestFunnelsEndpoint(t *testing.T) {
	c := demoProject(t)
	funnel := funnelNode(map[string]any{
		"breakdownFilter": map[string]any{"breakdown": "component", "breakdown_limit": 2},
		"series":          []any{map[string]any{"event": "commit authored"}, map[string]any{"event": "commit authored"}},
	})
	if a := c.Do(t, http.MethodPost, "endpoints/", map[string]any{"name": "authors_by_component", "query": funnel}); a.Status != http.StatusCreated {
		t.Fatalf("publishing: %d %s", a.Status, a.Raw)
	}
	values := func(variables map[string]any) string {
		a := c.Do(t, http.MethodPost, "endpoints/authors_by_component/run", map[string]any{"variables": variables})
		body := struct{ Results [][]funnelItem }{}
		if err := json.Unmarshal(a.Raw, &body); err != nil || a.Status != http.StatusOK {
			t.Fatalf("%v: %d %s %v", variables, a.Status, a.Raw, err)
		}
		var out []any
		for _, row := range body.Results {
			out = append(out, row[0].Breakdown, row[0].Value)
		}
		return fmt.Sprint(out)
	}
	if diff := cmp.Diff("[[tsdb] [tsdb]]", values(map[string]any{"component": "tsdb", "date_from": "2023-06-01"})); diff != "" {
		t.Errorf("one value (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("[[<nil>] [<nil>]]", values(map[string]any{"component": ""})); diff != "" {
		t.Errorf("no value (-want +got):\n%s", diff)
	}
	a := c.Do(t, http.MethodPost, "endpoints/authors_by_component/run", map[string]any{"variables": map[string]any{"branch": "main"}})
	if a.Status != http.StatusBadRequest || a.Body["attr"] != "variables" {
		t.Errorf("an unknown variable: %d %s", a.Status, a.Raw)
	}
}
