package funnels_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight/funnels"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
)

// TestChoices checks the values of a breakdown that a drill-down can ask for.
func TestChoices(t *testing.T) {
	t.Parallel()
	const base = `{"label": "Baseline", "value": "$$_posthog_breakdown_baseline_$$"}`
	tests := []struct {
		name, fields string
		rows         []string
		want         string
	}{
		{"no breakdown", ``, []string{`[1]`}, `null`},
		{"no value", `, "breakdownFilter": {"breakdown": "k"}`, nil, `null`},
		{
			"one property", `, "breakdownFilter": {"breakdown": "k"}`,
			[]string{`[["x"], 0, [2, 1], [0, 1000000], [0, 1000000]]`, `[[""], 0, [1, 0], [], []]`, `[["y"], 1, [1, 0], [], []]`},
			`[` + base + `, {"label": "x", "value": "x"}, {"label": "None (i.e. no value)", "value": ""}, {"label": "Other", "value": "Other"}]`,
		},
		{
			"two properties", `, "breakdownFilter": {"breakdown": ["k", "l"]}`,
			[]string{`[["x", ""], 0, [2, 1], [0, 1000000], [0, 1000000]]`},
			`[` + base + `, {"label": "x, None (i.e. no value)", "value": "[\"x\",\"\"]"}]`,
		},
		{"all people", `, "breakdownFilter": {"breakdown_type": "cohort", "breakdown": ["all"]}`, []string{`[1]`}, `[` + base + `, {"label": "all users", "value": 0}]`},
		{
			"one cohort and everybody else", `, "breakdownFilter": {"breakdown_type": "cohort", "breakdown": [7]}`,
			[]string{`[1]`},
			`[` + base + `, {"label": "paying", "value": 7}, {"label": "Not in paying", "value": 4503599627370496}]`,
		},
		{
			"times to convert by a cohort", `, "breakdownFilter": {"breakdown_type": "cohort", "breakdown": [7, 8]}, "funnelsFilter": {"funnelVizType": "time_to_convert"}`,
			[]string{`[1]`},
			`[` + base + `, {"label": "paying", "value": 7}, {"label": "trial", "value": 8}]`,
		},
		{"times to convert have no values", `, "breakdownFilter": {"breakdown": "k"}, "funnelsFilter": {"funnelVizType": "time_to_convert"}`, []string{`[1]`}, `null`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			q := insighttest.Node[*funnels.Query](t, `{"kind": "FunnelsQuery", "series": [{"event": "a"}, {"event": "b"}]`+tt.fields+`}`)
			built, err := funnels.Choices(q, insighttest.World())
			if err != nil {
				t.Fatal(err)
			}
			want := `{"breakdown": ` + tt.want + `, "day": null, "status": null, "interval": null, "breakdowns": null, "series": null, "compare": null}`
			if diff := cmp.Diff(insighttest.JSON(t, want), insighttest.JSON(t, string(insighttest.Shape(t, built, tt.rows...).More))); diff != "" {
				t.Errorf("choices (-want +got):\n%s", diff)
			}
		})
	}
}
