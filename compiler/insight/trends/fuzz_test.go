package trends_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

// FuzzBuild checks that every query that can be built prints as HogQL that parses, and that it turns no rows into an answer of valid JSON.
func FuzzBuild(f *testing.F) {
	for _, seed := range []string{
		`"series": [{"event": "a", "math": "dau"}], "compareFilter": {"compare": true}`,
		`"series": [{"event": null, "math": "weekly_active"}], "interval": "hour", "dateRange": {"date_from": "-1d"}`,
		`"series": [{"kind": "GroupNode", "nodes": [{"event": "a"}, {"event": "b"}], "math": "first_time_for_user"}], "trendsFilter": {"display": "BoldNumber"}`,
		`"series": [{"event": "a", "math": "avg", "math_property": "p"}, {"event": "b", "math": "hogql", "math_hogql": "max(timestamp)"}], "dateRange": {"date_from": "all"}`,
		`"series": [{"event": "a"}, {"event": "b"}], "breakdownFilter": {"breakdowns": [{"property": "p", "histogram_bin_count": 2}, {"property": "q", "normalize_url": true}]}, "trendsFilter": {"formula": "A/B"}`,
		`"series": [{"event": "a", "math": "p90_count_per_actor"}], "trendsFilter": {"display": "ActionsLineGraphCumulative", "smoothingIntervals": 3}, "samplingFactor": 0.5`,
		`"series": [], "properties": {"type": "OR", "values": [{"key": "k", "operator": "is_date_after", "value": "-3d"}, {"type": "hogql", "key": "1"}]}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, fields string) {
		built, err := build(fields)
		if err != nil {
			var mistake *diag.Error
			if !errors.As(err, &mistake) && err.Error() != "no trend" {
				t.Fatalf("%q gives %v, which is no mistake of its author", fields, err)
			}
			return
		}
		text := hogql.Print(built.Query)
		if _, err := hogql.Parse(text); err != nil {
			t.Errorf("%q becomes %s, which does not parse: %v", fields, text, err)
		}
		answer, err := built.Shape(func(func([]byte) bool) {})
		if err != nil {
			if _, ok := errors.AsType[*diag.Error](err); !ok {
				t.Fatalf("%q without rows: %v", fields, err)
			}
			return
		}
		if !json.Valid(answer.Results) {
			t.Errorf("%q answers %s", fields, answer.Results)
		}
	})
}
