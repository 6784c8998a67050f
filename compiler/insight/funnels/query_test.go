package funnels_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/funnels"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

func TestRead(t *testing.T) {
	t.Parallel()
	got := insighttest.Node[*funnels.Query](t, `{"kind": "FunnelsQuery", "series": [{"event": "a"}, {"event": "b", "optionalInFunnel": true}], "interval": "hour",
		"breakdownFilter": {"breakdown": "plan"}, "compareFilter": {"compare": false}, "funnelsFilter": {
			"funnelVizType": "trends", "funnelOrderType": "strict", "funnelWindowInterval": 3, "funnelWindowIntervalUnit": "month",
			"breakdownAttributionType": "step", "breakdownAttributionValue": 1, "funnelFromStep": 0, "funnelToStep": 1, "binCount": 7,
			"funnelAggregateByHogQL": "properties.company", "hideIncompleteConversionWindowPeriods": true, "layout": "vertical",
			"exclusions": [{"kind": "EventsNode", "event": "x", "funnelFromStep": 0, "funnelToStep": 1}]}}`)
	zero, one, seven := 0, 1, 7
	a, b, x := "a", "b", "x"
	want := &funnels.Query{
		Series: []query.Series{
			{At: "series.0", Kind: query.EventsNode, Event: &a}, {At: "series.1", Kind: query.EventsNode, Event: &b, Optional: true},
		},
		Interval: query.Hour, Viz: funnels.VizTrends, Order: funnels.Strict, Window: funnels.Window{Count: 3, Unit: "month"},
		Breakdowns: &query.Breakdowns{At: "breakdownFilter", Fields: []query.Breakdown{{At: "breakdownFilter.breakdown", Type: "event", Property: "plan"}}},
		Exclusions: []funnels.Exclusion{{Series: query.Series{At: "funnelsFilter.exclusions.0", Kind: query.EventsNode, Event: &x}, To: 1}},
		From:       &zero, To: &one, Bins: &seven, AggregateBy: "properties.company", Attribution: funnels.ByStep, AttributionStep: &one, HideIncomplete: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("node (-want +got):\n%s", diff)
	}
	if length := got.Window.Duration(); length != 3*31*24*time.Hour {
		t.Errorf("3 months are %v", length)
	}
	if q := insighttest.Node[*funnels.Query](t, `{"kind": "FunnelsQuery", "series": [], "funnelsFilter": {"funnelWindowInterval": "2"}}`); q.Window.Count != 2 {
		t.Errorf("a window of the text 2 is %d", q.Window.Count)
	}
	for _, interval := range []string{"", `"funnelWindowInterval": 0`, `"funnelWindowInterval": -3`} {
		q := insighttest.Node[*funnels.Query](t, `{"kind": "FunnelsQuery", "series": [], "funnelsFilter": {`+interval+`}}`)
		if length := q.Window.Duration(); length != 14*24*time.Hour {
			t.Errorf("a window of {%s} is %v, want 14 days", interval, length)
		}
	}
}

func TestReadMistakes(t *testing.T) {
	t.Parallel()
	const head = "JSON parse error - 1 validation error for QueryRequest\nquery.FunnelsQuery."
	tests := []struct{ name, fields, attr, want string }{
		{
			"a comparison", `"compareFilter": {"compare": true}`, "compareFilter",
			"compareFilter\n  Funnels cannot be compared with another period [type=value_error]",
		},
		{
			"another boundary", `"funnelsFilter": {"funnelWindowBoundary": "cut"}`, "funnelsFilter.funnelWindowBoundary",
			"funnelsFilter.funnelWindowBoundary\n  Input should be 'clip' or 'extend' [type=enum]",
		},
		{
			"a window of half a day", `"funnelsFilter": {"funnelWindowInterval": "0.5"}`, "funnelsFilter.funnelWindowInterval",
			"funnelsFilter.funnelWindowInterval\n  Input should be a valid integer [type=int_type]",
		},
		{
			"an exclusion between no steps", `"funnelsFilter": {"exclusions": [{"event": "x", "funnelFromStep": 0}]}`, "funnelsFilter.exclusions.0.funnelToStep",
			"funnelsFilter.exclusions.0.funnelToStep\n  Field required [type=missing]",
		},
		{
			"a field that is not of exclusions", `"funnelsFilter": {"exclusions": [{"event": "x", "funnelFromStep": 0, "funnelToStep": 1, "step": 2}]}`,
			"funnelsFilter.exclusions.0.step", "funnelsFilter.exclusions.0.step\n  Extra inputs are not permitted [type=extra_forbidden]",
		},
		{
			"a field that is not of funnels", `"funnelsFilter": {"display": "BoldNumber"}`, "funnelsFilter.display",
			"funnelsFilter.display\n  Extra inputs are not permitted [type=extra_forbidden]",
		},
		{
			"another unit", `"funnelsFilter": {"funnelWindowIntervalUnit": "year"}`, "funnelsFilter.funnelWindowIntervalUnit",
			"funnelsFilter.funnelWindowIntervalUnit\n  Input should be 'second', 'minute', 'hour', 'day', 'week' or 'month' [type=enum]",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := compiler.Parse([]byte(`{"kind": "FunnelsQuery", "series": [{"event": "a"}, {"event": "b"}], ` + tt.fields + `}`))
			want := &diag.Error{Code: diag.ParseError, Detail: head + tt.want, Attr: tt.attr}
			if diff := cmp.Diff(error(want), err); diff != "" {
				t.Errorf("mistake (-want +got):\n%s", diff)
			}
		})
	}
}

// TestReadRefused checks what PostHog's funnels have, and these do not.
func TestReadRefused(t *testing.T) {
	t.Parallel()
	for field, value := range map[string]string{"funnelWindowBoundary": `"extend"`, "funnelHoldConstantBreakdown": "true"} {
		_, err := compiler.Parse([]byte(`{"kind": "FunnelsQuery", "series": [{"event": "a"}, {"event": "b"}], "funnelsFilter": {"` + field + `": ` + value + `}}`))
		if mistake, ok := errors.AsType[*diag.Error](err); !ok || mistake.Attr != "funnelsFilter."+field || mistake.Code != diag.InvalidInput {
			t.Errorf("%s: %v", field, err)
		}
	}
}
