package lifecycle_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/lifecycle"
)

// TestChoices checks the days and statuses that a drill-down can ask for.
func TestChoices(t *testing.T) {
	t.Parallel()
	const second, third = `{"label": "2-Jan-2020", "value": "2020-01-02T00:00:00Z"}`, `{"label": "3-Jan-2020", "value": "2020-01-03T00:00:00Z"}`
	tests := []struct{ name, dates, row, days string }{
		{"a range", `"date_from": "2020-01-02", "date_to": "2020-01-03"`, `[1]`, second + `, ` + third},
		{"only days that begin in the range", `"date_from": "2020-01-02T12:00:00", "date_to": "2020-01-03T12:00:00", "explicitDate": true`, `[1]`, third},
		{"since the earliest event", `"date_from": "all", "date_to": "2020-01-03"`, `[1577966400]`, second + `, ` + third},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			q := insighttest.Node[*lifecycle.Query](t, `{"kind": "LifecycleQuery", "series": [{}], "dateRange": {`+tt.dates+`}}`)
			built, err := lifecycle.Choices(q, insighttest.World())
			if err != nil {
				t.Fatal(err)
			}
			want := `{"day": [` + tt.days + `], "status": [{"label": "Dormant", "value": "dormant"}, {"label": "New", "value": "new"},
				{"label": "Resurrecting", "value": "resurrecting"}, {"label": "Returning", "value": "returning"}],
				"interval": null, "breakdown": null, "breakdowns": null, "series": null, "compare": null}`
			if diff := cmp.Diff(insighttest.JSON(t, want), insighttest.JSON(t, string(insighttest.Shape(t, built, tt.row).More))); diff != "" {
				t.Errorf("choices (-want +got):\n%s", diff)
			}
		})
	}
}
