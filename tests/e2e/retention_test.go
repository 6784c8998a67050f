package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// retentionAnswer has the fields of a retention's rows that the tests read.
type retentionAnswer struct {
	Results []struct {
		Values []struct{ Count float64 }
		Label  string
		Date   string
		Value  any `json:"breakdown_value"`
	}
}

// retentionNode is a retention of the demo's authors in 2023; the fields override its own.
func retentionNode(filter, fields map[string]any) map[string]any {
	entity := map[string]any{"id": "commit authored", "type": "events"}
	whole := map[string]any{"targetEntity": entity, "returningEntity": entity, "period": "Month", "totalIntervals": 12}
	maps.Copy(whole, filter)
	node := map[string]any{
		"kind": "RetentionQuery", "dateRange": map[string]any{"date_from": "2023-01-01", "date_to": "2023-12-31"}, "retentionFilter": whole,
	}
	maps.Copy(node, fields)
	return node
}

func askRetention(t *testing.T, c *harness.Client, path string, body map[string]any) retentionAnswer {
	t.Helper()
	a := c.Do(t, http.MethodPost, path, body)
	if a.Status != http.StatusOK {
		t.Fatalf("a retention: %d %s", a.Status, a.Raw)
	}
	var out retentionAnswer
	if err := json.Unmarshal(a.Raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestRetentionBeginsWithActiveUsers compares the first column of a recurring retention with a trend of the same people.
func TestRetentionBeginsWithActiveUsers(t *testing.T) {
	c := demoProject(t)
	for _, period := range []string{"Day", "Week", "Month"} {
		var want, got []float64
		trend := askTrend(t, c, map[string]any{
			"interval": strings.ToLower(period), "series": []any{map[string]any{"kind": "EventsNode", "event": "commit authored", "math": "dau"}},
			"dateRange": map[string]any{"date_from": "2023-01-01", "date_to": "2023-12-30"}, // from a Sunday to a Saturday
		})
		items, _ := trend.Body["results"].([]any)
		item, _ := items[0].(map[string]any)
		points, _ := item["data"].([]any)
		for _, p := range points {
			n, _ := p.(float64)
			want = append(want, n)
		}
		if period == "Month" { // a retention includes its entire last period
			points := c.Query(t, "select count(distinct person_id) from events where event = 'commit authored' and toStartOfMonth(timestamp) = '2023-12-01'")
			row, _ := points[0].([]any)
			want[11], _ = row[0].(float64)
		}
		people := 0.0
		answer := askRetention(t, c, "query/", map[string]any{"query": retentionNode(
			map[string]any{"period": period, "totalIntervals": 3}, map[string]any{"dateRange": map[string]any{"date_from": "2023-01-01", "date_to": "2023-12-30"}},
		)})
		for _, row := range answer.Results {
			got = append(got, row.Values[0].Count)
			people += row.Values[0].Count
		}
		if diff := cmp.Diff(want, got); diff != "" || people == 0 {
			t.Errorf("by %s: active users, of the trend and of the retention (-trend +retention):\n%s", period, diff)
		}
	}
}

// TestRetentionActors checks that the number of people behind a row equals its count in each column.
func TestRetentionActors(t *testing.T) {
	c := demoProject(t)
	node := retentionNode(nil, nil)
	row := askRetention(t, c, "query/", map[string]any{"query": node}).Results[1]
	columns := []any{"actor_id", "appearances"}
	for i := range row.Values {
		columns = append(columns, fmt.Sprintf("month_%d", i))
	}
	a := c.Do(t, http.MethodPost, "query/", map[string]any{"query": map[string]any{
		"kind": "ActorsQuery", "select": columns, "orderBy": []any{"length(appearances) DESC", "actor_id"}, "limit": 1000,
		"source": map[string]any{"kind": "InsightActorsQuery", "interval": 1, "source": node},
	}})
	if a.Status != http.StatusOK {
		t.Fatalf("actors: %d %s", a.Status, a.Raw)
	}
	people, _ := a.Body["results"].([]any)
	got := make([]float64, len(row.Values))
	before := len(got) + 1
	for _, one := range people {
		cells, _ := one.([]any)
		appearances, _ := cells[1].([]any)
		if len(appearances) == 0 || len(appearances) > before {
			t.Fatalf("%v comes after %d appearances", one, before)
		}
		before = len(appearances)
		for i, flag := range cells[2:] {
			n, _ := flag.(float64)
			got[i] += n
		}
	}
	var want []float64
	for _, v := range row.Values {
		want = append(want, v.Count)
	}
	if diff := cmp.Diff(want, got); diff != "" || len(people) == 0 {
		t.Errorf("people in each column (-counted +listed):\n%s", diff)
	}
}

// TestRetentionMistakes sends queries that must not reach ClickHouse. Each answer names the field: as its attr, or in the list of everything wrong
// with the JSON.
func TestRetentionMistakes(t *testing.T) {
	c := demoProject(t)
	for attr, filter := range map[string]map[string]any{
		"retentionFilter.totalIntervals":            {"totalIntervals": -1},
		"retentionFilter.period":                    {"period": "Decade"},
		"retentionFilter.cumulative":                {"cumulative": true, "timeWindowMode": "24_hour_windows"},
		"retentionFilter.retentionCustomBrackets.0": {"retentionCustomBrackets": []any{-1}},
		"retentionFilter.returningEntity.id":        {"returningEntity": map[string]any{"id": 5, "type": "actions"}},
		"dateRange.date_from":                       {"period": "Day", "totalIntervals": 400},
	} {
		a := c.Do(t, http.MethodPost, "query/", map[string]any{"query": retentionNode(filter, nil)})
		detail, _ := a.Body["detail"].(string)
		if named := a.Body["attr"] == attr || strings.Contains(detail, "query.RetentionQuery."+attr+"\n"); a.Status != http.StatusBadRequest || !named {
			t.Errorf("%v: %d %s", filter, a.Status, a.Raw)
		}
	}
}

// TestRetentionEndpoint runs a published retention: its variables, and what it returns for missing values and for all others.
func TestRetentionEndpoint(t *testing.T) {
	c := demoProject(t)
	query := retentionNode(map[string]any{"totalIntervals": 2}, map[string]any{"breakdownFilter": map[string]any{"breakdown": "component", "breakdown_limit": 2}})
	if a := c.Do(t, http.MethodPost, "endpoints/", map[string]any{"name": "retained_by_component", "query": query}); a.Status != http.StatusCreated {
		t.Fatalf("publishing: %d %s", a.Status, a.Raw)
	}
	run := func(variables map[string]any) (values []any, rows int) {
		t.Helper()
		answer := askRetention(t, c, "endpoints/retained_by_component/run", map[string]any{"variables": variables})
		for i, row := range answer.Results {
			if i == 0 || row.Value != answer.Results[i-1].Value {
				values = append(values, row.Value)
			}
		}
		return values, len(answer.Results)
	}
	values, rows := run(nil)
	if len(values) != 3 || values[2] != "Other" || rows != 36 {
		t.Errorf("all values: %v in %d rows", values, rows)
	}
	values, rows = run(map[string]any{"component": "promql", "date_from": "2023-06-01"})
	if diff := cmp.Diff([]any{"promql"}, values); diff != "" || rows != 7 {
		t.Errorf("one value in %d rows (-want +got):\n%s", rows, diff)
	}
	if values, _ = run(map[string]any{"component": ""}); len(values) != 1 || values[0] != nil {
		t.Errorf("no value: %v", values)
	}
}
