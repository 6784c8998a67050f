package heatmap_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/heatmap"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

func build(t *testing.T, fields string) (*insight.Built, error) {
	t.Helper()
	return heatmap.Build(insighttest.Node[*heatmap.Query](t, `{"kind": "CalendarHeatmapQuery", `+fields+`}`), insighttest.World())
}

func TestRead(t *testing.T) {
	t.Parallel()
	event, action := "paid", int64(5)
	tests := []struct {
		name, in string
		want     *heatmap.Query
	}{
		{
			"an event", `{"kind": "CalendarHeatmapQuery", "series": [{"event": "paid", "math": "dau"}], "interval": "hour", "calendarHeatmapFilter": {"dummy": "x"}, "tags": {}}`,
			&heatmap.Query{Series: []query.Series{{At: "series.0", Kind: query.EventsNode, Event: &event, Math: query.Math{Kind: "dau"}}}},
		},
		{
			"goals", `{"kind": "CalendarHeatmapQuery", "series": [], "conversionGoal": {"customEventName": "paid", "actionId": 5}}`,
			&heatmap.Query{Series: []query.Series{}, Goal: &query.Goal{At: "conversionGoal", Event: &event, Action: &action}},
		},
		{"by session", `{"kind": "CalendarHeatmapQuery", "series": [], "calendarHeatmapFilter": {"bucketBySessionStart": true}}`, &heatmap.Query{Series: []query.Series{}}},
		{"by event", `{"kind": "CalendarHeatmapQuery", "series": [], "calendarHeatmapFilter": {"bucketBySessionStart": false}}`, &heatmap.Query{Series: []query.Series{}, EveryHour: true}},
		{"by default", `{"kind": "CalendarHeatmapQuery", "series": [], "calendarHeatmapFilter": {"bucketBySessionStart": null}}`, &heatmap.Query{Series: []query.Series{}}},
		{"no goal", `{"kind": "CalendarHeatmapQuery", "series": [], "conversionGoal": null}`, &heatmap.Query{Series: []query.Series{}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, insighttest.Node[*heatmap.Query](t, tt.in)); diff != "" {
				t.Errorf("query (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, attr, want string }{
		{"no series", `{"kind": "CalendarHeatmapQuery"}`, "series", "query.CalendarHeatmapQuery.series\n  Field required"},
		{"an empty goal", `{"kind": "CalendarHeatmapQuery", "series": [{}], "conversionGoal": {}}`, "conversionGoal", "query.CalendarHeatmapQuery.conversionGoal\n  Either actionId or customEventName is required"},
		{"a goal of another kind", `{"kind": "CalendarHeatmapQuery", "series": [{}], "conversionGoal": "paid"}`, "conversionGoal", "query.CalendarHeatmapQuery.conversionGoal\n  Input should be a valid dictionary"},
		{"a flag of another type", `{"kind": "CalendarHeatmapQuery", "series": [{}], "calendarHeatmapFilter": {"bucketBySessionStart": 0}}`, "calendarHeatmapFilter.bucketBySessionStart", "query.CalendarHeatmapQuery.calendarHeatmapFilter.bucketBySessionStart\n  Input should be a valid boolean"},
		{"another field", `{"kind": "CalendarHeatmapQuery", "series": [{}], "compareFilter": {}}`, "compareFilter", "query.CalendarHeatmapQuery.compareFilter\n  Extra inputs are not permitted"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			insighttest.CheckMistake(t, tt.in, tt.attr, tt.want)
		})
	}
}

func TestResults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, fields string
		rows         []string
		want         string
	}{
		{
			"events, with the sums", `"series": [{}]`,
			[]string{`[7, 0, 1]`, `[1, 23, 2]`, `[1, 4, 5]`},
			`{"data":[{"row":1,"column":4,"value":5},{"row":1,"column":23,"value":2},{"row":7,"column":0,"value":1}],` +
				`"rowAggregations":[{"row":1,"value":7},{"row":7,"value":1}],` +
				`"columnAggregations":[{"column":0,"value":1},{"column":4,"value":5},{"column":23,"value":2}],"allAggregations":8}`,
		},
		{
			"people, whose sums are rows", `"series": [{"math": "dau"}]`,
			[]string{`[0, 24, 2]`, `[6, 10, 2]`, `[6, 24, 2]`, `[0, 10, 2]`, `[6, 11, 1]`, `[0, 11, 1]`},
			`{"data":[{"row":6,"column":10,"value":2},{"row":6,"column":11,"value":1}],"rowAggregations":[{"row":6,"value":2}],` +
				`"columnAggregations":[{"column":10,"value":2},{"column":11,"value":1}],"allAggregations":2}`,
		},
		{"nothing", `"series": [{}]`, nil, `{"data":[],"rowAggregations":[],"columnAggregations":[],"allAggregations":0}`},
		{
			"a sample", `"series": [{}], "samplingFactor": 0.5`,
			[]string{`[7, 0, 3]`},
			`{"data":[{"row":7,"column":0,"value":6}],"rowAggregations":[{"row":7,"value":6}],"columnAggregations":[{"column":0,"value":6}],"allAggregations":6}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			built, err := build(t, tt.fields)
			if err != nil {
				t.Fatal(err)
			}
			answer := insighttest.Shape(t, built, tt.rows...)
			if diff := cmp.Diff(tt.want, string(answer.Results)); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
			if answer.Range == nil || answer.Range.From.Format("2006-01-02") != "2020-01-02" {
				t.Errorf("the range is %+v", answer.Range)
			}
		})
	}
}

// TestAllTime checks that the answer has no range if only the events know its start.
func TestAllTime(t *testing.T) {
	t.Parallel()
	built, err := build(t, `"series": [{}], "dateRange": {"date_from": "all"}`)
	if err != nil {
		t.Fatal(err)
	}
	if answer := insighttest.Shape(t, built); answer.Range != nil {
		t.Errorf("the range is %+v", answer.Range)
	}
}

// TestLongRange checks that a heatmap covers more days than a chart may have.
func TestLongRange(t *testing.T) {
	t.Parallel()
	if _, err := build(t, `"series": [{}], "dateRange": {"date_from": "1990-01-01"}`); err != nil {
		t.Error(err)
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, fields, want string }{
		{"no series", `"series": []`, "series: Calendar heatmaps require at least one series."},
		{"an action", `"series": [{"kind": "ActionsNode", "id": 5}]`, "series.0.id: Action ID 5 does not exist!"},
		{"an action as goal", `"series": [{}], "conversionGoal": {"actionId": 5}`, "conversionGoal.actionId: Action ID 5 does not exist!"},
		{"a bad date", `"series": [{}], "dateRange": {"date_to": "soon"}`, "dateRange.date_to: The date 'soon' is neither ISO 8601 nor relative, such as -7d"},
		{"a bad filter", `"series": [{"properties": [{"type": "hogql", "key": "nothing"}]}]`, "series.0.properties.0.key: Unable to resolve field: nothing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := build(t, tt.fields)
			if diff := cmp.Diff(tt.want, insighttest.Mistake(t, err)); diff != "" {
				t.Errorf("mistake (-want +got):\n%s", diff)
			}
		})
	}
}

// TestForeignRows checks that rows that cannot be from the query are an error, not an answer.
func TestForeignRows(t *testing.T) {
	t.Parallel()
	built, err := build(t, `"series": [{}]`)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{`[8, 1, 1]`, `[1, 25, 1]`, `[-1, 1, 1]`, `["Monday", 1, 1]`, `{}`} {
		if answer, err := built.Shape(slices.Values([][]byte{[]byte(row)})); err == nil {
			t.Errorf("row %s gives %s", row, answer.Results)
		}
	}
}
