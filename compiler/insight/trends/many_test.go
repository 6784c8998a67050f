package trends_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/trends"
)

// buildMany builds a trend by browser as endpoints do.
func buildMany(t *testing.T, fields string) *insight.Built {
	t.Helper()
	w := insighttest.World()
	w.PlainValues, w.ManyValues = true, true
	built, err := trends.Build(insighttest.Node[*trends.Query](t, `{"kind": "TrendsQuery", `+fields+`}`), w)
	if err != nil {
		t.Fatal(err)
	}
	return built
}

// TestManyValues checks how many values of a breakdown endpoints show: as many as they can, and fewer only if the answer would be too large.
func TestManyValues(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, fields, limit string
		rest                int // the place of the rest
	}{
		{"a week", `"dateRange": {"date_from": "-7d"}`, "", 10_001},
		{"a quarter", `"dateRange": {"date_from": "-90d"}`, "", 10_001},
		{"with a limit", `"dateRange": {"date_from": "-7d"}`, `, "breakdown_limit": 3`, 10_001},
		{"with a limit above the maximum", `"dateRange": {"date_from": "-7d"}`, `, "breakdown_limit": 20000`, 10_001},
		{"one number", `"dateRange": {"date_from": "-7d"}, "trendsFilter": {"display": "ActionsBarValue"}`, "", 10_001},
		{"400 days of hours", `"dateRange": {"date_from": "-400d"}, "interval": "hour"`, "", 144},
		{"the same, compared", `"dateRange": {"date_from": "-400d"}, "interval": "hour", "compareFilter": {"compare": true}`, "", 72},
		{"the same with a limit", `"dateRange": {"date_from": "-400d"}, "interval": "hour"`, `, "breakdown_limit": 200`, 201},
		{"all time", `"dateRange": {"date_from": "all"}`, "", 747},
		{"all time in hours", `"dateRange": {"date_from": "all"}, "interval": "hour"`, "", 139},
		{"a long formula", `"dateRange": {"date_from": "-99d"}, "trendsFilter": {"formula": "` + strings.Repeat("A+", 99) + `A"}`, "", 2512},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			built := buildMany(t, `"series": [{"event": "a"}], `+tt.fields+`, "breakdownFilter": {"breakdown": "k"`+tt.limit+`}`)
			if text, want := hogql.Print(built.Query), fmt.Sprintf("least(position, %d) AS place", tt.rest); !strings.Contains(text, want) {
				t.Errorf("there is no %q in\n%s", want, text)
			}
		})
	}
}

// TestRestOfMany checks that the rest is shown even if the query hides it.
func TestRestOfMany(t *testing.T) {
	t.Parallel()
	built := buildMany(t, `"series": [{"event": "a"}], "dateRange": {"date_from": "-1d"},
		"breakdownFilter": {"breakdown": "k", "breakdown_limit": 1, "breakdown_hide_other_aggregation": true}`)
	answer := insighttest.Shape(t, built, `[0, 0, 10000, ["x"], ["2020-01-09"], [2]]`, `[0, 0, 10001, ["y"], ["2020-01-09"], [3]]`)
	var results []struct {
		Value  any `json:"breakdown_value"`
		Label  string
		Data   []float64
		Filter struct {
			Limit int  `json:"breakdown_limit"`
			Hide  bool `json:"breakdown_hide_other_aggregation"`
		}
	}
	if err := json.Unmarshal(answer.Results, &results); err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%v %v", results, *answer.HasMore)
	if diff := cmp.Diff("[{x x [0 2] {10000 false}} {Other Other [0 3] {10000 false}}] true", got); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
}
