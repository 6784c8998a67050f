package trends_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
)

// itemOf is the part of an item that these tests compare.
type itemOf struct {
	Filter map[string]any  `json:"filter"`
	Labels json.RawMessage `json:"labels"`
	Days   []string        `json:"days"`
	Action struct {
		ID   any    `json:"id"`
		Name string `json:"name"`
	} `json:"action"`
}

// oneItem shapes the only item of a trend.
func oneItem(t *testing.T, fields string, rows ...string) itemOf {
	t.Helper()
	built, err := build(fields)
	if err != nil {
		t.Fatal(err)
	}
	var items []itemOf
	if err := json.Unmarshal(insighttest.Shape(t, built, rows...).Results, &items); err != nil {
		t.Fatal(err)
	}
	if len(items) != 1 {
		t.Fatalf("%d items, want 1", len(items))
	}
	return items[0]
}

// TestFilterOfItems checks the echo of the query in the form of PostHog's filters: all fields have the names that the query has for them.
func TestFilterOfItems(t *testing.T) {
	t.Parallel()
	const split = `[0, 0, 1, ["x"], ["2020-01-09"], [1]]`
	tests := []struct {
		name, fields, row string
		want              string // besides the fields that all items have
	}{
		{"nothing", `"dateRange": {"date_from": "-7d"}`, `["2020-01-09", 1]`, `{"date_from": "-7d"}`},
		{
			"fields of the query", `"filterTestAccounts": true, "samplingFactor": 0.5, "aggregation_group_type_index": 1`, `["2020-01-09", 1]`,
			`{"filter_test_accounts": true, "sampling_factor": 0.5, "aggregation_group_type_index": 1}`,
		},
		{
			"fields of trendsFilter", `"trendsFilter": {"smoothingIntervals": 3, "showLegend": true, "formula": "A * 2"}`, `["2020-01-09", 1]`,
			`{"smoothingIntervals": 3, "showLegend": true, "formula": "A * 2"}`,
		},
		{"formulas", `"trendsFilter": {"formulas": ["A"]}`, `["2020-01-09", 1]`, `{"formulas": ["A"]}`},
		{
			"nodes of formulas", `"trendsFilter": {"formulaNodes": [{"formula": "A", "custom_name": "twice"}]}`, `["2020-01-09", 1]`,
			`{"formulaNodes": [{"formula": "A", "custom_name": "twice"}]}`,
		},
		{
			"one breakdown", `"breakdownFilter": {"breakdown": "b", "breakdown_type": "group", "breakdown_group_type_index": 0, "breakdown_limit": 3,
				"breakdown_hide_other_aggregation": true, "breakdown_normalize_url": true, "breakdown_path_cleaning": true}`, split,
			`{"breakdown": "b", "breakdown_type": "group", "breakdown_group_type_index": 0, "breakdown_limit": 3,
				"breakdown_hide_other_aggregation": true, "breakdown_normalize_url": true, "breakdown_path_cleaning": true}`,
		},
		{
			"a histogram", `"breakdownFilter": {"breakdown": "b", "breakdown_histogram_bin_count": 4}`, split,
			`{"breakdown": "b", "breakdown_type": "event", "breakdown_histogram_bin_count": 4}`,
		},
		{"a list of one", `"breakdownFilter": {"breakdown": ["b"]}`, split, `{"breakdown": ["b"], "breakdown_type": "event"}`},
		{"cohorts", `"breakdownFilter": {"breakdown": [7, "all"], "breakdown_type": "cohort"}`, `[0, 0, 1, ["7"], ["2020-01-09"], [1]]`, `{"breakdown": [7, "all"], "breakdown_type": "cohort"}`},
		{
			"several breakdowns", `"breakdownFilter": {"breakdowns": [{"property": "b"}, {"property": "c", "type": "person", "histogram_bin_count": 3},
				{"property": "d", "type": "group", "group_type_index": 2, "normalize_url": true}]}`, `[0, 0, 1, ["x", "y", "z"], ["2020-01-09"], [1]]`,
			`{"breakdowns": [{"property": "b", "type": "event"}, {"property": "c", "type": "person", "histogram_bin_count": 3},
				{"property": "d", "type": "group", "group_type_index": 2, "normalize_url": true}]}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := map[string]any{
				"insight": "TRENDS", "entity_type": "events", "interval": "day", "display": "ActionsLineGraph", "filter_test_accounts": false,
			}
			if err := json.Unmarshal([]byte(tt.want), &want); err != nil {
				t.Fatal(err)
			}
			got := oneItem(t, `"series": [{"event": "a"}], `+tt.fields, tt.row)
			if diff := cmp.Diff(want, got.Filter); diff != "" {
				t.Errorf("filter (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLabelsOfItems checks that items over time have labels even if they have no points, and totals have none.
func TestLabelsOfItems(t *testing.T) {
	t.Parallel()
	const empty = `"series": [{"event": "a"}], "dateRange": {"date_from": "2020-01-08", "date_to": "2020-01-06"}`
	if got := oneItem(t, empty); string(got.Labels) != "[]" || len(got.Days) > 0 {
		t.Errorf("a range that ends before it begins has the labels %s and the days %v, want none", got.Labels, got.Days)
	}
	if got := oneItem(t, empty+`, "trendsFilter": {"display": "BoldNumber"}`); got.Labels != nil {
		t.Errorf("a total has the labels %s", got.Labels)
	}
}

// TestIDOfGroups checks that the id of a group of events is its name.
func TestIDOfGroups(t *testing.T) {
	t.Parallel()
	got := oneItem(t, `"series": [{"kind": "GroupNode", "operator": "OR", "nodes": [{"kind": "EventsNode", "event": "a"}, {"kind": "EventsNode", "event": null}]}]`)
	if got.Action.ID != "a, All events" || got.Action.Name != "a, All events" {
		t.Errorf("id %v and name %q, want the names of the events", got.Action.ID, got.Action.Name)
	}
}
