package texttable_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/module/texttable"
)

func TestInsight(t *testing.T) {
	t.Parallel()
	const a = `"series": [{"event": "a"}]`
	tests := []struct{ name, query, results, want string }{
		{
			"series, a column each", `{"kind": "TrendsQuery", ` + a + `}`,
			`[{"label": "a|b", "days": ["2024-03-01", "2024-03-02"], "labels": ["1-Mar-2024", "2-Mar-2024"], "data": [1, 2.5]},
				{"label": "c", "days": ["2024-03-01", "2024-03-02"], "data": [3]}]`,
			"date|a\\|b|c\n2024-03-01|1|3\n2024-03-02|2.5|",
		},
		{
			"a period that is compared", `{"kind": "TrendsQuery", ` + a + `}`,
			`[{"label": "a", "compare_label": "current", "days": ["2024-03-02"], "data": [1]}, {"label": "a", "compare_label": "previous", "days": ["2024-03-01"], "data": [2]}]`,
			"date|a (current)\n2024-03-02|1\n\ndate|a (previous)\n2024-03-01|2",
		},
		{
			"totals", `{"kind": "TrendsQuery", ` + a + `}`, `[{"label": "a", "data": [], "days": [], "aggregated_value": 12345678901234567890}, {"label": "b", "data": [], "aggregated_value": null}]`,
			"series|value\na|12345678901234567890\nb|null",
		},
		{"no series", `{"kind": "TrendsQuery", ` + a + `}`, `[]`, "series|value"},
		{"stickiness, by its labels", `{"kind": "StickinessQuery", ` + a + `}`, `[{"label": "a", "days": [1, 2], "labels": ["1 day", "2 days"], "data": [4, 5]}]`, "date|a\n1 day|4\n2 days|5"},
		{
			"a funnel", `{"kind": "FunnelsQuery", "series": [{"event": "a"}, {"event": "b"}]}`,
			`[{"name": "a", "order": 0, "count": 2, "average_conversion_time": null, "median_conversion_time": null}, {"name": "b", "custom_name": "bought", "order": 1, "count": 1, "average_conversion_time": 3.5, "median_conversion_time": 3}]`,
			"step|name|count|average_conversion_seconds|median_conversion_seconds|breakdown\n0|a|2|null|null|\n1|bought|1|3.5|3|",
		},
		{
			"a funnel with a breakdown", `{"kind": "FunnelsQuery", "series": [{"event": "a"}, {"event": "b"}]}`,
			` [[{"name": "a", "order": 0, "count": 2, "breakdown": ["de"]}], [{"name": "a", "order": 0, "count": 1, "breakdown": "fr"}]]`,
			"step|name|count|average_conversion_seconds|median_conversion_seconds|breakdown\n0|a|2|||[\"de\"]\n0|a|1|||fr",
		},
		{"nobody in a funnel", `{"kind": "FunnelsQuery", "series": [{"event": "a"}, {"event": "b"}]}`, `[]`, "step|name|count|average_conversion_seconds|median_conversion_seconds|breakdown"},
		{
			"trends of a funnel", `{"kind": "FunnelsQuery", "series": [{"event": "a"}, {"event": "b"}], "funnelsFilter": {"funnelVizType": "trends"}}`,
			`[{"count": 1, "data": [50], "days": ["2024-03-01"], "labels": ["1-Mar-2024"], "breakdown_value": ["de"]}]`, "date|[\"de\"]\n2024-03-01|50",
		},
		{
			"times to convert", `{"kind": "FunnelsQuery", "series": [{"event": "a"}, {"event": "b"}], "funnelsFilter": {"funnelVizType": "time_to_convert"}}`,
			`{"bins": [[60, 1], [120, 0]], "average_conversion_time": 60}`, "from_seconds|people\n60|1\n120|0",
		},
		{
			"retention", `{"kind": "RetentionQuery", "retentionFilter": {}}`,
			`[{"date": "2024-03-01T00:00:00Z", "breakdown_value": null, "values": [{"count": 2, "label": "Day 0"}, {"count": 1, "label": "Day 1"}]}]`,
			"date|breakdown|Day 0|Day 1\n2024-03-01T00:00:00Z|null|2|1",
		},
		{
			"paths", `{"kind": "PathsQuery", "pathsFilter": {}}`, `[{"source": "1_/a\n", "target": "2_\\", "value": 3, "average_conversion_time": 1.5}]`,
			"source|target|value|average_conversion_time\n1_/a\\n|2_\\\\|3|1.5",
		},
		{
			"correlation", `{"kind": "FunnelCorrelationQuery", "funnelCorrelationType": "events", "source": {"kind": "FunnelsActorsQuery", "source": {"kind": "FunnelsQuery", "series": []}}}`,
			`{"events": [{"event": {"event": "a|b"}, "success_count": 5, "failure_count": 0, "odds_ratio": 0.0909090909, "correlation_type": "failure"}], "skewed": false}`,
			"event|correlation|odds_ratio|success_count|failure_count\na\\|b|failure|0.09091|5|0",
		},
		{
			"calendar heatmap", `{"kind": "CalendarHeatmapQuery", "series": [{}]}`, `{"data": [{"row": 6, "column": 10, "value": 3}], "rowAggregations": [], "allAggregations": 3}`,
			"weekday|hour|value\n6|10|3",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			node, err := compiler.Parse([]byte(tt.query))
			if err != nil {
				t.Fatal(err)
			}
			got, err := texttable.Results(node, []byte(tt.results))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if got, err := texttable.Results(node, []byte(`"none"`)); err == nil {
				t.Errorf("what is no result gives %q", got)
			}
		})
	}
}

func TestRows(t *testing.T) {
	t.Parallel()
	rows := [][]byte{[]byte(`["a|b", 1, null, {"x": [1]}]`), []byte(`["", 2.50, true, "2024-03-01"]`)}
	got, err := texttable.Rows([]string{"name", "count()", "c", "d"}, slices.Values(rows), 0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("name|count()|c|d\na\\|b|1|null|{\"x\": [1]}\n|2.50|true|2024-03-01", got); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	if got, err := texttable.Rows([]string{"a"}, slices.Values([][]byte{[]byte(`["ééé"]`), []byte(`["éé"]`)}), 2); err != nil || got != "a\néé…\néé" {
		t.Errorf("cut cells: %q, %v", got, err)
	}
	if got, err := texttable.Rows(nil, slices.Values([][]byte{[]byte(`{}`)}), 0); err == nil {
		t.Errorf("a row that is none gives %q", got)
	}
}
