package lifecycle_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/lifecycle"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

func TestRead(t *testing.T) {
	t.Parallel()
	got := insighttest.Node[*lifecycle.Query](t, `{"kind": "InsightVizNode", "full": true, "source": {
		"kind": "LifecycleQuery", "version": 1, "interval": "week", "samplingFactor": 0.5, "aggregation_group_type_index": 0,
		"filterTestAccounts": true, "dateRange": {"date_from": "-30d", "date_to": null, "explicitDate": true, "daysOfWeek": [5, 1, 5]},
		"properties": {"type": "AND", "values": [
			{"type": "OR", "values": [{"key": "a", "value": ["x"], "type": "person"}, {"key": "b", "value": "y"}]}, {}, {"type": "OR", "values": []}]},
		"series": [{"kind": "EventsNode", "event": null, "name": "n", "properties": [{"key": "b", "operator": "is_set"}]},
			{"kind": "ActionsNode", "id": 5, "custom_name": "c"}],
		"lifecycleFilter": {"toggledLifecycles": ["new", "dormant"], "showLegend": true, "onlyUseInsightDates": false}}}`)
	half, first := 0.5, 0
	want := &lifecycle.Query{
		Common: query.Common{
			At:        "source",
			DateRange: query.DateRange{From: "-30d", Explicit: true, DaysOfWeek: []int{1, 5}}, FilterTestAccounts: true,
			Properties: &query.Condition{At: "source.properties", All: []query.Condition{
				{At: "source.properties.values.0", Or: true, All: []query.Condition{
					{At: "source.properties.values.0.values.0", Filter: &query.Property{Type: "person", Key: "a", Value: []any{"x"}}},
					{At: "source.properties.values.0.values.1", Filter: &query.Property{Type: "event", Key: "b", Value: "y"}},
				}},
			}},
			Group: &first, Sampling: &half,
		},
		Series: []query.Series{
			{
				At: "source.series.0", Kind: query.EventsNode, Name: "n",
				Properties: &query.Condition{At: "source.series.0.properties", All: []query.Condition{{
					At: "source.series.0.properties.0", Filter: &query.Property{Type: "event", Key: "b", Operator: "is_set"},
				}}},
			},
			{At: "source.series.1", Kind: query.ActionsNode, Action: 5, CustomName: "c"},
		},
		Interval: query.Week,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lifecycle (-want +got):\n%s", diff)
	}
}

func TestReadInRange(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{"null": false, "false": false, "true": true} {
		q := insighttest.Node[*lifecycle.Query](t, `{"kind": "LifecycleQuery", "series": [{}], "lifecycleFilter": {"onlyUseInsightDates": `+value+`}}`)
		if q.InRange != want {
			t.Errorf("onlyUseInsightDates: %s is read as %t", value, q.InRange)
		}
	}
}
