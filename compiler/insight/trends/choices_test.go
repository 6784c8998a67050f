package trends_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/trends"
)

// TestChoices checks what a drill-down can ask for without asking the engine for values.
func TestChoices(t *testing.T) {
	t.Parallel()
	const (
		days   = `"day": [{"label": "1-Jan-2020", "value": "2020-01-01T00:00:00Z"}, {"label": "2-Jan-2020", "value": "2020-01-02T00:00:00Z"}]`
		series = `"series": [{"label": "a", "value": 0}, {"label": "All events", "value": 1}]`
	)
	tests := []struct{ name, fields, want string }{
		{"days and series", ``, days + `, "compare": null, "breakdown": null`},
		{"periods", `, "compareFilter": {"compare": true}`, days + `, "compare": [{"label": "Current", "value": "current"}, {"label": "Previous", "value": "previous"}], "breakdown": null`},
		{"one number has no days", `, "trendsFilter": {"display": "BoldNumber"}`, `"day": null, "compare": null, "breakdown": null`},
		{"a box plot", `, "trendsFilter": {"display": "BoxPlot"}`, days + `, "compare": null, "breakdown": null`},
		{"all people", `, "breakdownFilter": {"breakdown_type": "cohort", "breakdown": ["all"]}`, days + `, "compare": null, "breakdown": [{"label": "all users", "value": "all"}]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			q := insighttest.Node[*trends.Query](t, `{"kind": "TrendsQuery", "series": [{"event": "a"}, {}], "dateRange": {"date_from": "2020-01-01", "date_to": "2020-01-02"}`+tt.fields+`}`)
			built, err := trends.Choices(q, insighttest.World())
			if err != nil {
				t.Fatal(err)
			}
			want := `{` + tt.want + `, ` + series + `, "status": null, "interval": null, "breakdowns": null}`
			if diff := cmp.Diff(insighttest.JSON(t, want), insighttest.JSON(t, string(insighttest.Shape(t, built, `[1]`).More))); diff != "" {
				t.Errorf("choices (-want +got):\n%s", diff)
			}
		})
	}
}
