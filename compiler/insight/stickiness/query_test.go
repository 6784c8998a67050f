package stickiness_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/stickiness"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

func TestRead(t *testing.T) {
	t.Parallel()
	got := insighttest.Node[*stickiness.Query](t, `{"kind": "StickinessQuery", "intervalCount": 3, "compareFilter": {"compare": true, "compare_to": "-1w"},
		"stickinessFilter": {"computedAs": "cumulative", "stickinessCriteria": {"operator": "lte", "value": 2}, "display": "ActionsBar"},
		"series": [{"event": "$pageview", "math": "unique_group", "math_group_type_index": 1}, {"kind": "GroupNode", "operator": "OR", "nodes": [
			{"kind": "EventsNode", "event": "a"}, {"kind": "EventsNode", "event": "b"}]}]}`)
	one, three, a, b, view := 1, 3, "a", "b", "$pageview"
	want := &stickiness.Query{
		Series: []query.Series{
			{At: "series.0", Kind: query.EventsNode, Event: &view, Math: query.Math{Kind: "unique_group", Group: &one}},
			{At: "series.1", Kind: query.GroupNode, Members: []query.Series{
				{At: "series.1.nodes.0", Kind: query.EventsNode, Event: &a}, {At: "series.1.nodes.1", Kind: query.EventsNode, Event: &b},
			}},
		},
		Interval: query.Day, IntervalCount: &three, Cumulative: true,
		Criteria: &stickiness.Criteria{Operator: stickiness.AtMost, Value: 2}, Compare: &query.Compare{At: "compareFilter.compare_to", To: "-1w"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stickiness (-want +got):\n%s", diff)
	}
}
