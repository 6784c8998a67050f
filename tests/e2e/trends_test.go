package e2e_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// askTrend requests a trend of the demo's commits, which start in 2012.
func askTrend(t *testing.T, c *harness.Client, fields map[string]any) harness.Answer {
	t.Helper()
	node := map[string]any{
		"kind": "TrendsQuery", "dateRange": map[string]any{"date_from": "2023-01-01", "date_to": "2023-12-31"},
		"series": []any{map[string]any{"kind": "EventsNode", "event": "commit authored"}},
	}
	maps.Copy(node, fields)
	answer := c.Do(t, http.MethodPost, "query/", map[string]any{"query": node})
	if answer.Status != http.StatusOK {
		t.Fatalf("a trend: %d %s", answer.Status, answer.Raw)
	}
	return answer
}

// trendNumbers returns the sums of data, count and aggregated_value over the items of an answer.
func trendNumbers(t *testing.T, a harness.Answer) (data, count, aggregated float64, items int) {
	t.Helper()
	list, ok := a.Body["results"].([]any)
	if !ok {
		t.Fatalf("no results: %s", a.Raw)
	}
	for _, one := range list {
		item, _ := one.(map[string]any)
		points, _ := item["data"].([]any)
		for _, p := range points {
			n, _ := p.(float64)
			data += n
		}
		n, _ := item["count"].(float64)
		count += n
		n, _ = item["aggregated_value"].(float64)
		aggregated += n
	}
	return data, count, aggregated, len(list)
}

// TestTrendsAgreeWithHogQL compares trends of real events with counts of the same events in HogQL.
func TestTrendsAgreeWithHogQL(t *testing.T) {
	c := demoProject(t)
	first := func(hogql string) float64 {
		row, _ := c.Query(t, hogql)[0].([]any)
		n, _ := row[0].(float64)
		return n
	}
	const where = " from events where event = 'commit authored' and timestamp >= '2023-01-01' and timestamp < '2024-01-01'"
	total, people := first("select count()"+where), first("select count(distinct person_id)"+where)
	if total < 1000 {
		t.Fatalf("the demo has only %v commits in 2023", total)
	}
	for _, interval := range []string{"day", "week", "month"} {
		if data, count, _, _ := trendNumbers(t, askTrend(t, c, map[string]any{"interval": interval})); data != total || count != total {
			t.Errorf("by %s: data %v, count %v, want %v", interval, data, count, total)
		}
	}
	number := map[string]any{"trendsFilter": map[string]any{"display": "BoldNumber"}}
	if _, _, aggregated, _ := trendNumbers(t, askTrend(t, c, number)); aggregated != total {
		t.Errorf("as one number: %v, want %v", aggregated, total)
	}
	number["series"] = []any{map[string]any{"kind": "EventsNode", "event": "commit authored", "math": "dau"}}
	if _, _, aggregated, _ := trendNumbers(t, askTrend(t, c, number)); aggregated != people {
		t.Errorf("people as one number: %v, want %v", aggregated, people)
	}
	split := askTrend(t, c, map[string]any{"interval": "month", "breakdownFilter": map[string]any{"breakdown": "component", "breakdown_limit": 5}})
	if data, _, _, items := trendNumbers(t, split); data != total || items != 6+1 && items != 6 {
		t.Errorf("by component: data %v in %d items, want %v in 5 values and the rest", data, items, total)
	}
	if split.Body["hasMore"] != true {
		t.Errorf("hasMore is %v", split.Body["hasMore"])
	}
	filtered := askTrend(t, c, map[string]any{
		"interval":   "month",
		"properties": []any{map[string]any{"type": "event", "key": "component", "operator": "exact", "value": []any{"tsdb", "promql"}}},
	})
	want := first("select count()" + where + " and properties.component in ('tsdb', 'promql')")
	if data, _, _, _ := trendNumbers(t, filtered); data != want || want == 0 {
		t.Errorf("filtered: %v, want %v", data, want)
	}
}

// TestTrendsEnvelope checks the fields around the results.
func TestTrendsEnvelope(t *testing.T) {
	c := demoProject(t)
	body := map[string]any{
		"query": map[string]any{
			"kind": "InsightVizNode", "full": true,
			"source": map[string]any{
				"kind": "TrendsQuery", "interval": "hour", "dateRange": map[string]any{"date_from": "2023-01-01"},
				"series": []any{map[string]any{"kind": "EventsNode", "event": "commit authored"}},
			},
		},
		"filters_override": map[string]any{"date_from": "2023-03-01", "date_to": "2023-03-02"},
	}
	a := c.Do(t, http.MethodPost, "query/", body)
	if a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Raw)
	}
	dates, _ := a.Body["resolved_date_range"].(map[string]any)
	if dates["date_from"] != "2023-03-01T00:00:00Z" || dates["date_to"] != "2023-03-02T00:00:00Z" {
		t.Errorf("resolved_date_range %v", dates)
	}
	for _, name := range []string{"hogql", "clickhouse", "timezone", "cache_key"} {
		if text, _ := a.Body[name].(string); text == "" {
			t.Errorf("%s is %v", name, a.Body[name])
		}
	}
	if sql, _ := a.Body["clickhouse"].(string); !strings.Contains(sql, "team_id = ") {
		t.Errorf("the SQL has no project: %s", sql)
	}
	if a.Body["hasMore"] != false || a.Body["is_cached"] != false || a.Body["error"] != "" {
		t.Errorf("hasMore %v, is_cached %v, error %v", a.Body["hasMore"], a.Body["is_cached"], a.Body["error"])
	}
	if _, there := a.Body["columns"]; there {
		t.Error("an insight has columns")
	}
	again := c.Do(t, http.MethodPost, "query/", body)
	if again.Body["is_cached"] != true {
		t.Errorf("asked again: is_cached %v", again.Body["is_cached"])
	}
	if data, _, _, _ := trendNumbers(t, again); data == 0 {
		t.Error("the stored answer has no points")
	}
}

// TestTrendsEndpoint runs a published trend: its variables, and what it returns for missing values and for all others.
func TestTrendsEndpoint(t *testing.T) {
	c := demoProject(t)
	query := map[string]any{
		"kind": "TrendsQuery", "interval": "month", "dateRange": map[string]any{"date_from": "2023-01-01", "date_to": "2023-12-31"},
		"series":          []any{map[string]any{"kind": "EventsNode", "event": "commit authored"}},
		"breakdownFilter": map[string]any{"breakdown": "component", "breakdown_limit": 2},
	}
	if a := c.Do(t, http.MethodPost, "endpoints/", map[string]any{"name": "commits_by_component", "query": query}); a.Status != http.StatusCreated {
		t.Fatalf("publishing: %d %s", a.Status, a.Raw)
	}
	values := func(variables map[string]any) []any {
		a := c.Do(t, http.MethodPost, "endpoints/commits_by_component/run", map[string]any{"variables": variables})
		if a.Status != http.StatusOK {
			t.Fatalf("%v: %d %s", variables, a.Status, a.Raw)
		}
		var out []any
		list, _ := a.Body["results"].([]any)
		for _, one := range list {
			item, _ := one.(map[string]any)
			out = append(out, item["breakdown_value"], item["label"])
		}
		return out
	}
	want := []any{}
	for _, one := range c.Query(t, "select properties.component as c, count() as n from events where event = 'commit authored' and toYear(timestamp) = 2023 "+
		"and c is not null group by c order by n desc, c limit 2") {
		row, _ := one.([]any)
		want = append(want, row[0], row[0])
	}
	if diff := cmp.Diff(append(want, "Other", "Other"), values(nil)); diff != "" {
		t.Errorf("all values (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{"promql", "promql"}, values(map[string]any{"component": "promql", "date_from": "2023-06-01"})); diff != "" {
		t.Errorf("one value (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{nil, "null"}, values(map[string]any{"component": ""})); diff != "" {
		t.Errorf("no value (-want +got):\n%s", diff)
	}
	for name, body := range map[string]map[string]any{
		"attr variables": {"variables": map[string]any{"branch": "main"}}, "attr limit": {"limit": 3}, "attr offset": {"offset": 3},
		"attr variables.date_from": {"variables": map[string]any{"date_from": 3}},
	} {
		a := c.Do(t, http.MethodPost, "endpoints/commits_by_component/run", body)
		if attr, _ := a.Body["attr"].(string); a.Status != http.StatusBadRequest || "attr "+attr != name {
			t.Errorf("%v: %d %s, want %s", body, a.Status, a.Raw, name)
		}
	}
}
