package trends_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
)

// TestSlope checks that a slope has two points, of the first and the last bucket. Now is 15:30 on 9 January.
func TestSlope(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, fields string
		rows         []string
		want         string
	}{
		{
			"days", `"dateRange": {"date_from": "-3d"}, "compareFilter": {"compare": true}, "trendsFilter": {"display": "SlopeGraph", "smoothingIntervals": 3}`,
			[]string{`["2020-01-06", 2]`, `["2020-01-09", 5]`},
			`[{"data": [2, 5], "labels": ["6-Jan-2020", "9-Jan-2020"], "days": ["2020-01-06", "2020-01-09"], "count": 7, "incomplete_end": true}]`,
		},
		{
			"days that are over", `"dateRange": {"date_from": "-3d", "date_to": "-1d"}, "trendsFilter": {"display": "SlopeGraph"}`, nil,
			`[{"data": [0, 0], "labels": ["6-Jan-2020", "8-Jan-2020"], "days": ["2020-01-06", "2020-01-08"], "count": 0, "incomplete_end": false}]`,
		},
		{
			"days of the week", `"dateRange": {"date_from": "-3d", "daysOfWeek": [1, 2, 3]}, "trendsFilter": {"display": "SlopeGraph"}`, nil,
			`[{"data": [0, 0], "labels": ["6-Jan-2020", "8-Jan-2020"], "days": ["2020-01-06", "2020-01-08"], "count": 0, "incomplete_end": false}]`,
		},
		{
			"one day", `"dateRange": {"date_from": "dStart"}, "trendsFilter": {"display": "SlopeGraph"}`,
			[]string{`["2020-01-09", 5]`},
			`[{"data": [5], "labels": ["9-Jan-2020"], "days": ["2020-01-09"], "count": 5, "incomplete_end": true}]`,
		},
		{
			"a formula", `"dateRange": {"date_from": "-3d"}, "trendsFilter": {"display": "SlopeGraph", "formula": "A * 2"}`,
			[]string{`["2020-01-06", 2]`, `["2020-01-09", 5]`},
			`[{"data": [4, 10], "labels": ["6-Jan-2020", "9-Jan-2020"], "days": ["2020-01-06", "2020-01-09"], "count": 14, "incomplete_end": true}]`,
		},
		{
			"all time", `"dateRange": {"date_from": "all"}, "trendsFilter": {"display": "SlopeGraph"}`,
			[]string{`[0, "2020-01-05", [3]]`, `[0, "2020-01-07", [4]]`, `[0, "2020-01-09", [5]]`, `[-1, "2020-01-05", [1578222000]]`},
			`[{"data": [3, 5], "labels": ["5-Jan-2020", "9-Jan-2020"], "days": ["2020-01-05", "2020-01-09"], "count": 8, "incomplete_end": true}]`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			built, err := build(`"series": [{"event": "a"}], ` + tt.fields)
			if err != nil {
				t.Fatal(err)
			}
			answer := insighttest.Shape(t, built, tt.rows...)
			type item struct {
				Data           []float64 `json:"data"`
				Labels         []string  `json:"labels"`
				Days           []string  `json:"days"`
				Count          float64   `json:"count"`
				Incomplete     *bool     `json:"incomplete_end"`
				PreviousPeriod string    `json:"compare_label"`
			}
			var got, want []item
			for _, of := range []struct {
				text string
				into *[]item
			}{{string(answer.Results), &got}, {tt.want, &want}} {
				if err := json.Unmarshal([]byte(of.text), of.into); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("items (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSlopeReads checks which events a slope reads: those of its two buckets, and for active users those of the days before them too.
func TestSlopeReads(t *testing.T) {
	t.Parallel()
	const ends = "(timestamp < toDateTime64('2020-01-07 00:00:00.000000', 6, 'UTC') OR timestamp >= toDateTime64('2020-01-09 00:00:00.000000', 6, 'UTC'))"
	for fields, want := range map[string]bool{
		`"series": [{"event": "a"}], "dateRange": {"date_from": "-3d"}`:                                true,
		`"series": [{"event": "a", "math": "first_time_for_user"}], "dateRange": {"date_from": "-3d"}`: false,
		`"series": [{"event": "a", "math": "weekly_active"}], "dateRange": {"date_from": "-3d"}`:       false,
		`"series": [{"event": "a"}], "dateRange": {"date_from": "-1d"}`:                                false,
		`"series": [{"event": "a"}], "dateRange": {"date_from": "all"}`:                                false,
	} {
		built, err := build(fields + `, "trendsFilter": {"display": "SlopeGraph"}`)
		if err != nil {
			t.Fatal(err)
		}
		if text := hogql.Print(built.Query); strings.Contains(text, ends) != want {
			t.Errorf("with %s, it reads only two buckets: %t\n%s", fields, !want, text)
		}
	}
}
