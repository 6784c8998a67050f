package query

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestDisplay: fields that only affect drawing are recognized by name, and the others are left to be refused.
func TestDisplay(t *testing.T) {
	t.Parallel()
	given := map[string]any{
		"metricShowChange": true, "metricSummary": "total", "metricLineIncreaseColor": "#fff", "xAxisLabel": "x", "yAxisStartAtZero": true, "legendPosition": "top",
		"chartStyle": map[string]any{"curve": "smooth"}, "showAnnotations": false, "stackBreakdownValues": true, "aggregationAxisFormat": "duration_ns",
		"decimalPlaces": 2, "goalLines": nil,
		"display": "Metric", "smoothingInterval": 3, "shower": 1, "formula2": "A", "metrics": 1, "axes": 1, "colorful": 1, "breakdownLimit": 3,
	}
	r := &Reader{}
	o := r.Object(given, Place{})
	o.Text("display")
	drawn := slices.Sorted(maps.Keys(o.Display("decimalPlaces", "confidenceLevel")))
	want := []string{
		"aggregationAxisFormat", "chartStyle", "decimalPlaces", "legendPosition", "metricLineIncreaseColor", "metricShowChange", "metricSummary",
		"showAnnotations", "stackBreakdownValues", "xAxisLabel", "yAxisStartAtZero",
	}
	if diff := cmp.Diff(want, drawn); diff != "" {
		t.Errorf("drawn fields (-want +got):\n%s", diff)
	}
	o.Close()
	var refused []string
	for _, p := range r.problems {
		refused = append(refused, p.at.Attr)
	}
	if diff := cmp.Diff([]string{"axes", "breakdownLimit", "colorful", "formula2", "metrics", "shower", "smoothingInterval"}, refused); diff != "" {
		t.Errorf("refused fields (-want +got):\n%s", diff)
	}
}
