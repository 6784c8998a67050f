package funnels_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/funnels"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
)

const three = `"series": [{"event": "a"}, {"event": "b"}, {"event": "c"}]`

// TestMistakes checks what is refused as a funnel (contract: funnels.md, section 1).
func TestMistakes(t *testing.T) {
	t.Parallel()
	many := `"series": [` + strings.Repeat(`{"event": "a"}, `, 32) + `{"event": "b"}]`
	excluded := func(node string) string {
		return three + `, "funnelsFilter": {"exclusions": [{"kind": "EventsNode", ` + node + `}]}`
	}
	tests := []struct{ name, fields, want string }{
		{"no step", `"series": []`, "series: Funnels require at least two steps."},
		{"one step", `"series": [{"event": "a"}]`, "series: Funnels require at least two steps."},
		{"more steps than a mask has", many, "series: Funnels support up to 32 steps."},
		{
			"from the last step", three + `, "funnelsFilter": {"funnelVizType": "trends", "funnelFromStep": 2}`,
			"funnelsFilter.funnelFromStep: funnelFromStep is out of bounds. It must be between 0 and 1.",
		},
		{
			"to the first step", three + `, "funnelsFilter": {"funnelVizType": "time_to_convert", "funnelToStep": 0}`,
			"funnelsFilter.funnelToStep: Filter parameter funnel_to_step can only be one of 1, 2 for time to convert!",
		},
		{
			"to an unknown step", three + `, "funnelsFilter": {"funnelVizType": "trends", "funnelToStep": 3}`,
			"funnelsFilter.funnelToStep: funnelToStep is out of bounds. It must be between 1 and 2.",
		},
		{
			"to the step itself", three + `, "funnelsFilter": {"funnelVizType": "trends", "funnelFromStep": 1, "funnelToStep": 1}`,
			"funnelsFilter.funnelToStep: Funnel step range is invalid. funnelToStep should be greater than funnelFromStep.",
		},
		{
			"an exclusion backwards", excluded(`"event": "x", "funnelFromStep": 1, "funnelToStep": 1`),
			"funnelsFilter.exclusions.0.funnelToStep: Exclusion event range is invalid. End of range should be greater than start.",
		},
		{
			"an exclusion behind the last step", excluded(`"event": "x", "funnelFromStep": 2, "funnelToStep": 3`),
			"funnelsFilter.exclusions.0.funnelFromStep: Exclusion event range is invalid. Start of range is greater than number of steps.",
		},
		{
			"an exclusion before the first step", excluded(`"event": "x", "funnelFromStep": -1, "funnelToStep": 1`),
			"funnelsFilter.exclusions.0.funnelFromStep: Exclusion event range is invalid. Start of range is before the first step.",
		},
		{
			"an exclusion to an unknown step", excluded(`"event": "x", "funnelFromStep": 1, "funnelToStep": 3`),
			"funnelsFilter.exclusions.0.funnelToStep: Exclusion event range is invalid. End of range is greater than number of steps.",
		},
		{
			"an exclusion that is a step", excluded(`"event": "b", "funnelFromStep": 0, "funnelToStep": 1`),
			"funnelsFilter.exclusions.0: Exclusion steps cannot contain an event that's part of funnel steps.",
		},
		{
			"an exclusion that is a step with more filters", excluded(`"event": "b", "properties": [{"type": "event", "key": "k", "value": "v"}], "funnelFromStep": 1, "funnelToStep": 2`),
			"funnelsFilter.exclusions.0: Exclusion steps cannot contain an event that's part of funnel steps.",
		},
		{
			"a partial exclusion without order", three + `, "funnelsFilter": {"funnelOrderType": "unordered", "exclusions": [{"event": "x", "funnelFromStep": 0, "funnelToStep": 1}]}`,
			"funnelsFilter.exclusions.0: Partial Exclusions not allowed in unordered funnels",
		},
		{
			"an action as a step", `"series": [{"event": "a"}, {"kind": "ActionsNode", "id": 3}]`,
			"series.1.id: Action ID 3 does not exist!",
		},
		{
			"an exclusion of the action of a step",
			`"series": [{"event": "a"}, {"kind": "ActionsNode", "id": 3}], "funnelsFilter": {"exclusions": [{"kind": "ActionsNode", "id": 3, "funnelFromStep": 0, "funnelToStep": 1}]}`,
			"funnelsFilter.exclusions.0: Exclusion steps cannot contain an event that's part of funnel steps.",
		},
		{
			"an exclusion of an unknown action",
			`"series": [{"event": "a"}, {"event": "b"}], "funnelsFilter": {"exclusions": [{"kind": "ActionsNode", "id": 3, "funnelFromStep": 0, "funnelToStep": 1}]}`,
			"funnelsFilter.exclusions.0.id: Action ID 3 does not exist!",
		},
		{
			"actors of a name of ours", three + `, "funnelsFilter": {"funnelAggregateByHogQL": "actor"}`,
			"funnelsFilter.funnelAggregateByHogQL: Unable to resolve field: actor",
		},
		{
			"an optional first step", `"series": [{"event": "a", "optionalInFunnel": true}, {"event": "b"}]`,
			"series.0.optionalInFunnel: The first step of a funnel cannot be optional.",
		},
		{
			"an optional step in trends", `"series": [{"event": "a"}, {"event": "b", "optionalInFunnel": true}, {"event": "c"}], "funnelsFilter": {"funnelVizType": "trends"}`,
			`series.1.optionalInFunnel: Optional funnel steps are only supported in funnels with step order Sequential or Strict and the graph type "Conversion Steps".`,
		},
		{
			"an optional step without order", `"series": [{"event": "a"}, {"event": "b", "optionalInFunnel": true}], "funnelsFilter": {"funnelOrderType": "unordered"}`,
			`series.1.optionalInFunnel: Optional funnel steps are only supported in funnels with step order Sequential or Strict and the graph type "Conversion Steps".`,
		},
		{
			"an optional step before the same one", `"series": [{"event": "a"}, {"event": "b", "optionalInFunnel": true, "properties": [{"type": "event", "key": "k", "value": "v"}]}, {"event": "b"}]`,
			"series.1.optionalInFunnel: An optional step cannot be the same as the following required step.",
		},
		{
			"a value of no step", three + `, "breakdownFilter": {"breakdown": "k"}, "funnelsFilter": {"breakdownAttributionType": "step", "breakdownAttributionValue": 3}`,
			"funnelsFilter.breakdownAttributionValue: The step of the attribution is not one of the funnel's steps, 0 to 2.",
		},
		{
			"a value of the second step without order", three + `, "funnelsFilter": {"funnelOrderType": "unordered", "breakdownAttributionType": "step", "breakdownAttributionValue": 1}`,
			"funnelsFilter.breakdownAttributionValue: Only the first step can be used for breakdown attribution in unordered funnels",
		},
		{"a bad date", three + `, "dateRange": {"date_from": "then"}`, "dateRange.date_from: The date 'then' is neither ISO 8601 nor relative, such as -7d"},
		{
			"values of cohorts", three + `, "breakdownFilter": {"breakdown_type": "cohort", "breakdown": [1]}`,
			"breakdownFilter.breakdown.0: Could not find cohort with ID 1",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := funnels.Build(insighttest.Node[*funnels.Query](t, `{"kind": "FunnelsQuery", `+tt.fields+`}`), insighttest.World())
			if got := insighttest.Mistake(t, err); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestCodes checks the codes of mistakes that have one of their own.
func TestCodes(t *testing.T) {
	t.Parallel()
	for want, fields := range map[diag.Code]string{
		"funnels_require_at_least_two_steps": `"series": [{"event": "a"}]`,
		"funnel_max_steps_exceeded":          `"series": [` + strings.Repeat(`{"event": "a"}, `, 32) + `{"event": "b"}]`,
		"funnel_step_range_invalid":          three + `, "funnelsFilter": {"funnelFromStep": 2}`,
		"funnel_exclusions_invalid":          three + `, "funnelsFilter": {"exclusions": [{"event": "b", "funnelFromStep": 0, "funnelToStep": 1}]}`,
		"funnel_optional_steps_invalid":      `"series": [{"event": "a", "optionalInFunnel": true}, {"event": "b"}]`,
	} {
		_, err := funnels.Build(insighttest.Node[*funnels.Query](t, `{"kind": "FunnelsQuery", `+fields+`}`), insighttest.World())
		if mistake, ok := errors.AsType[*diag.Error](err); !ok || mistake.Code != want {
			t.Errorf("got %v, want a mistake with the code %s", err, want)
		}
	}
}

// TestAllowed checks funnels that are close to a mistake.
func TestAllowed(t *testing.T) {
	t.Parallel()
	for name, fields := range map[string]string{
		"an exclusion of a step outside of its range":   `"series": [{"event": "a"}, {"event": "b"}, {"event": "c"}], "funnelsFilter": {"exclusions": [{"event": "c", "funnelFromStep": 0, "funnelToStep": 1}]}`,
		"an exclusion broader than a step":              `"series": [{"event": "a"}, {"event": "b", "properties": [{"type": "event", "key": "k", "value": "v"}]}], "funnelsFilter": {"exclusions": [{"event": "b", "funnelFromStep": 0, "funnelToStep": 1}]}`,
		"an optional step broader than the next":        `"series": [{"event": "a"}, {"event": "b", "optionalInFunnel": true}, {"event": "b", "properties": [{"type": "event", "key": "k", "value": "v"}]}]`,
		"an optional step before another optional one":  `"series": [{"event": "a"}, {"event": "b", "optionalInFunnel": true}, {"event": "b", "optionalInFunnel": true}]`,
		"32 steps with exclusions that all differ":      `"series": [` + strings.Repeat(`{"event": "a"}, `, 31) + `{"event": "b"}], "dateRange": {"date_from": "all"}, "funnelsFilter": {"exclusions": [` + strings.Join(differing(15), ", ") + `]}`,
		"a window that is not positive, which is 14":    `"series": [{"event": "a"}, {"event": "b"}], "funnelsFilter": {"funnelWindowInterval": 0}`,
		"what PostHog sends without being asked":        `"series": [{"event": "a"}, {"event": "b"}], "funnelsFilter": {"funnelWindowBoundary": "clip", "funnelHoldConstantBreakdown": false}`,
		"a value of a step that is not asked by values": `"series": [{"event": "a"}, {"event": "b"}], "funnelsFilter": {"breakdownAttributionType": "step"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := funnels.Build(insighttest.Node[*funnels.Query](t, `{"kind": "FunnelsQuery", `+fields+`}`), insighttest.World()); err != nil {
				t.Error(err)
			}
		})
	}
}

// differing returns n exclusions that all have different ranges.
func differing(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf(`{"event": "x", "funnelFromStep": %d, "funnelToStep": %d}`, i, i+16)
	}
	return out
}
