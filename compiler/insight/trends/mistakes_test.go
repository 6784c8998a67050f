package trends_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/trends"
)

// build reads the fields of a TrendsQuery and builds it.
func build(fields string) (*insight.Built, error) {
	n, err := compiler.Parse([]byte(`{"kind": "TrendsQuery", ` + fields + `}`))
	if err != nil {
		return nil, err
	}
	q, ok := n.(*trends.Query)
	if !ok {
		return nil, errors.New("no trend")
	}
	return trends.Build(q, insighttest.World())
}

// TestLongFormulas: what takes too long to compute is refused before it is computed, even without rows.
func TestLongFormulas(t *testing.T) {
	t.Parallel()
	formula := strings.Repeat("A+", 999) + "A"
	tests := []struct {
		name, fields string
		formulas     int
		want         string
	}{
		{"many", `"interval": "hour", "compareFilter": {"compare": true}, "dateRange": {"date_from": "-400d"}`, 100, "computed for 19240 points; the product may be 50000000"},
		{"few", `"interval": "day", "dateRange": {"date_from": "-7d"}`, 3, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			list, err := json.Marshal(slices.Repeat([]string{formula}, tt.formulas))
			if err != nil {
				t.Fatal(err)
			}
			built, err := build(`"series": [{"event": "a"}], ` + tt.fields + `, "trendsFilter": {"formulas": ` + string(list) + `}`)
			if err != nil {
				t.Fatal(err)
			}
			_, err = built.Shape(func(func([]byte) bool) {})
			mistake, ok := errors.AsType[*diag.Error](err)
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (!ok || mistake.Attr != "trendsFilter.formulas.0" || !strings.Contains(mistake.Detail, tt.want)):
				t.Errorf("%v, want a mistake that contains %q", err, tt.want)
			}
		})
	}
}

// TestManyPoints: an answer that would be too large is refused before its points are made, however few rows there are.
func TestManyPoints(t *testing.T) {
	t.Parallel()
	built, err := build(`"series": [{"event": "a"}], "interval": "hour", "dateRange": {"date_from": "-400d"}, "breakdownFilter": {"breakdown": "k", "breakdown_limit": 1000}`)
	if err != nil {
		t.Fatal(err)
	}
	rows := func(n int) func(func([]byte) bool) {
		return func(yield func([]byte) bool) {
			for i := range n {
				if !yield(fmt.Appendf(nil, `[0, 0, 1, ["v%d"], ["2020-01-01 00:00:00"], [1]]`, i)) {
					return
				}
			}
		}
	}
	if _, err := built.Shape(rows(2)); err != nil {
		t.Error(err)
	}
	_, err = built.Shape(rows(1000))
	if mistake, ok := errors.AsType[*diag.Error](err); !ok || mistake.Attr != "breakdownFilter" || !strings.Contains(mistake.Detail, "it may have 2000000") {
		t.Errorf("got %v", err)
	}
}

// TestMistakes checks what is refused before anything runs: each mistake names its field.
func TestMistakes(t *testing.T) {
	t.Parallel()
	const a = `"series": [{"kind": "EventsNode", "event": "a"}]`
	tests := []struct{ name, fields, attr, want string }{
		{"no series", `"interval": "day"`, "series", "Field required [type=missing]"},
		{"an unknown math", `"series": [{"event": "a", "math": "mode"}]`, "series.0.math", "Input should be 'total', 'dau', "},
		{"half an expression", `"series": [{"event": "a", "math": "hogql", "math_hogql": "sum("}]`, "series.0.math_hogql", "The aggregate expression is invalid: "},
		{"an expression with a name of ours", `"series": [{"event": "a", "math": "hogql", "math_hogql": "max(bucket)"}]`, "series.0.math_hogql", "Unable to resolve field: bucket"},
		{"an expression with placeholders", `"series": [{"event": "a", "math": "hogql", "math_hogql": "sum({x})"}]`, "series.0.math_hogql", "The aggregate expression cannot hold placeholders"},
		{"a property of another type", `"series": [{"event": "a", "math": "sum", "math_property": "p", "math_property_type": "moon"}]`, "series.0.math_property_type", "Properties of type 'moon' are not supported"},
		{"a warehouse", `"series": [{"kind": "DataWarehouseNode"}]`, "series.0.kind", "Input should be 'EventsNode', 'ActionsNode' or 'GroupNode'"},
		{"a formula over a missing series", a + `, "trendsFilter": {"formulas": ["A", "A / B"]}`, "trendsFilter.formulas.1", "The formula 'A / B' is invalid: there is no series 'B'"},
		{"half a formula", a + `, "trendsFilter": {"formula": "A +"}`, "trendsFilter.formula", "The formula 'A +' is invalid: it ends too early"},
		{"another language", a + `, "trendsFilter": {"formulaNodes": [{"formula": "A; B"}]}`, "trendsFilter.formulaNodes.0.formula", "The formula 'A; B' is invalid: unexpected ';' at position 2"},
		{"four breakdowns", a + `, "breakdownFilter": {"breakdowns": [{"property": "a"}, {"property": "b"}, {"property": "c"}, {"property": "d"}]}`, "breakdownFilter.breakdowns", "List should have at most 3 items after validation, not 4"},
		{"a breakdown by cohort", a + `, "breakdownFilter": {"breakdown_type": "cohort", "breakdown": 3}`, "breakdownFilter.breakdown", "Could not find cohort with ID 3"},
		{"a breakdown by the name of a cohort", a + `, "breakdownFilter": {"breakdown_type": "cohort", "breakdown": [7, "paying"]}`, "breakdownFilter.breakdown.1", "Input should be the id of a cohort or 'all'"},
		{"a breakdown by two cohorts at once", a + `, "breakdownFilter": {"breakdowns": [{"type": "cohort", "property": 7}, {"type": "cohort", "property": 9}]}`, "breakdownFilter.breakdowns.1.property", "Could not find cohort with ID 9"},
		{"more cohorts than anybody looks at", a + `, "breakdownFilter": {"breakdown_type": "cohort", "breakdown": [` + strings.Repeat("7,", 50) + `7]}`, "breakdownFilter.breakdown", "List should have at most 50 items after validation, not 51"},
		{"half a breakdown", a + `, "breakdownFilter": {"breakdown_type": "hogql", "breakdown": "1 +"}`, "breakdownFilter.breakdown", "The HogQL expression of a breakdown is invalid: "},
		{"quantiles of ranges", `"series": [{"event": "a", "math": "p90", "math_property": "p"}], "breakdownFilter": {"breakdown": "b", "breakdown_histogram_bin_count": 3}`, "series.0.math", "The math 'p90' is not supported together with a histogram breakdown"},
		{"a bad date", a + `, "dateRange": {"date_from": "soon"}`, "dateRange.date_from", "The date 'soon' is neither ISO 8601 nor relative, such as -7d"},
		{"a bad end", a + `, "dateRange": {"date_to": "2020-13-01"}`, "dateRange.date_to", "The date '2020-13-01' is neither ISO 8601 nor relative"},
		{"a date out of all bounds", a + `, "dateRange": {"date_from": "-99999y"}`, "dateRange.date_from", "The date '-99999y' is neither"},
		{"too many buckets", a + `, "interval": "minute", "dateRange": {"date_from": "-30d"}`, "interval", "An interval of one minute cuts this date range into 43201 parts; there may be 10000."},
		{"an unknown interval", a + `, "interval": "eon"`, "interval", "Input should be 'second', 'minute', 'hour', 'day', 'week', 'month', 'quarter' or 'year'"},
		{"a bad compare_to", a + `, "compareFilter": {"compare": true, "compare_to": "2019-01-01"}`, "compareFilter.compare_to", "compare_to '2019-01-01' is not a relative date (want, for example, -1w)"},
		{"an unknown operator", a + `, "properties": [{"key": "k", "value": 1, "operator": "like"}]`, "properties.0.operator", "Input should be 'exact', "},
		{"an operator that does not go with its value", `"series": [{"event": "a", "properties": {"type": "OR", "values": [{"key": "k", "value": [3, 1], "operator": "between"}]}}]`, "series.0.properties.values.0", "The property filter on 'k' has operator 'between', which is not supported with its value"},
		{"a cohort", a + `, "properties": [{"type": "cohort", "key": "id", "value": 1}]`, "properties.0", "Could not find cohort with ID 1"},
		{"a field too many", a + `, "trendsFilter": {"colour": "red"}`, "trendsFilter.colour", "Extra inputs are not permitted"},
		{"an unknown display", a + `, "trendsFilter": {"display": "Radar"}`, "trendsFilter.display", "Input should be 'Auto', "},
		{"too many boxes", `"series": [` + strings.Repeat(`{"math_property": "n"}, `, 99) + `{"math_property": "n"}], "interval": "hour", "dateRange": {"date_from": "-30d"}, "trendsFilter": {"display": "BoxPlot"}`, "interval", "This box plot has 73600 boxes; there may be 50000."},
		{"a box plot of what has no numbers", `"series": [{"math_property": "n", "math_property_type": "group_properties"}], "trendsFilter": {"display": "BoxPlot"}`, "series.0.math_property_type", "Properties of type 'group_properties' are not supported"},
		{"smoothing some days", a + `, "dateRange": {"daysOfWeek": [1]}, "trendsFilter": {"smoothingIntervals": 2}`, "trendsFilter.smoothingIntervals", "Smoothing is not supported together with daysOfWeek"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := build(tt.fields)
			var mistake *diag.Error
			if !errors.As(err, &mistake) {
				t.Fatalf("got %v, want a mistake", err)
			}
			if mistake.Attr != tt.attr || !strings.Contains(mistake.Detail, tt.want) {
				t.Errorf("mistake %q at %q, want %q at %q", mistake.Detail, mistake.Attr, tt.want, tt.attr)
			}
		})
	}
}

// TestCodes checks the codes of mistakes that have one of their own (contract: trends.md, section 1).
func TestCodes(t *testing.T) {
	t.Parallel()
	for want, fields := range map[diag.Code]string{
		"days_of_week_unsupported_with_smoothing":            `"series": [], "dateRange": {"daysOfWeek": [1]}, "trendsFilter": {"smoothingIntervals": 2}`,
		"property_math_unsupported_with_histogram_breakdown": `"series": [{"math": "p75", "math_property": "p"}], "breakdownFilter": {"breakdowns": [{"property": "b", "histogram_bin_count": 2}]}`,
	} {
		_, err := build(fields)
		var mistake *diag.Error
		if !errors.As(err, &mistake) || mistake.Code != want {
			t.Errorf("got %v, want a mistake with the code %s", err, want)
		}
	}
}

// TestShape builds answers from rows that no engine returned.
func TestShape(t *testing.T) {
	t.Parallel()
	const days = `"dateRange": {"date_from": "2020-01-01", "date_to": "2020-01-03"}`
	type item struct {
		Label     string          `json:"label"`
		Data      json.RawMessage `json:"data"`
		Count     json.RawMessage `json:"count"`
		Number    json.RawMessage `json:"aggregated_value"`
		Breakdown any             `json:"breakdown_value"`
		Order     int             `json:"order"`
	}
	tests := []struct {
		name, fields string
		rows         []string
		want         string // data, count, label and value of each item
	}{
		{"zeros where there is no row", `"series": [{"event": "a"}], ` + days, []string{`["2020-01-02", 3]`}, "[0,3,0] 3 a"},
		{"rows outside of the range", `"series": [{"event": "a"}], ` + days, []string{`["2019-12-31", 3]`}, "[0,0,0] 0 a"},
		{"nothing is not a number", `"series": [{"event": "a", "math": "sum", "math_property": "p"}], ` + days, []string{`["2020-01-01", null]`, `["2020-01-02", "nan"]`}, "[0,0,0] 0 a"},
		{
			"formulas", `"series": [{"event": "a"}, {"event": "b"}], "trendsFilter": {"formulaNodes": [{"formula": "a / b", "custom_name": "rate"}, {"formula": "-A ** 2 + B % 3"}, {"formula": "1"}]}, ` + days,
			[]string{`["2020-01-01", 3, 2]`, `["2020-01-03", 1, 0]`},
			"[1.5,0,0] 2 rate; [-7,0,-1] -14 Formula (-A ** 2 + B % 3); [1,1,1] 1 Formula (1)",
		},
		{
			"smoothing rounds down", `"series": [{"event": "a"}], "trendsFilter": {"smoothingIntervals": 2}, ` + days,
			[]string{`["2020-01-01", 4]`, `["2020-01-02", 1]`},
			"[4,2,0] 6 a",
		},
		{
			"running sums", `"series": [{"event": "a"}], "trendsFilter": {"display": "ActionsLineGraphCumulative"}, ` + days,
			[]string{`["2020-01-01", 4]`, `["2020-01-03", 1]`},
			"[4,4,5] 5 a",
		},
		{
			"a formula over running sums", `"series": [{"event": "a"}, {"event": "b"}], "trendsFilter": {"display": "ActionsLineGraphCumulative", "formula": "A / B"}, ` + days,
			[]string{`["2020-01-01", 2, 1]`, `["2020-01-03", 0, 1]`},
			"[2,2,1] 1.5 Formula (A / B)", // 2 + 2 + 2 by 1 + 1 + 2
		},
		{
			"values by rank", `"series": [{"event": "a"}, {"event": "b"}], "breakdownFilter": {"breakdown": "p", "breakdown_limit": 3}, ` + days,
			[]string{
				`[0, 0, 4, ["x"], ["2020-01-01"], [9]]`, `[0, 0, 3, [""], ["2020-01-01"], [8]]`, `[0, 0, 2, ["128"], ["2020-01-02"], [1]]`,
				`[0, 0, 1, ["16"], ["2020-01-01"], [1]]`, `[0, 1, 1, ["z"], ["2020-01-01"], [1]]`,
			},
			"[0,1,0] 1 a - 128=128; [1,0,0] 1 a - 16=16; [8,0,0] 8 a - $$_posthog_breakdown_null_$$=$$_posthog_breakdown_null_$$; " +
				"[9,0,0] 9 a - $$_posthog_breakdown_other_$$=$$_posthog_breakdown_other_$$; [1,0,0] 1 b - z=z",
		},
		{
			"the rest is hidden", `"series": [{"event": "a"}], "breakdownFilter": {"breakdowns": [{"property": "p"}, {"property": "q"}], "breakdown_limit": 1, "breakdown_hide_other_aggregation": true}, ` + days,
			[]string{`[0, 0, 1, ["x", ""], ["2020-01-01"], [9]]`, `[0, 0, 2, ["", ""], ["2020-01-01"], [8]]`},
			"[9,0,0] 9 x::$$_posthog_breakdown_null_$$=[x $$_posthog_breakdown_null_$$]",
		},
		{
			"all time begins with the earliest event", `"series": [{"event": "a"}], "interval": "month", "dateRange": {"date_from": "all", "date_to": "2020-01-03"}`,
			[]string{`[0, "2020-01-01", [2]]`, `[-1, "2019-11-01", [1573000000]]`},
			"[0,0,2] 2 a",
		},
		{
			"a sample, scaled up and rounded: each point, and the sum of the points", `"series": [{"event": "a"}], "samplingFactor": 0.3, ` + days,
			[]string{`["2020-01-01", 7]`, `["2020-01-03", 7]`},
			"[23,0,23] 47 a",
		},
		{
			"running sums of a sample", `"series": [{"event": "a"}], "samplingFactor": 0.3, "trendsFilter": {"display": "ActionsLineGraphCumulative"}, ` + days,
			[]string{`["2020-01-01", 7]`, `["2020-01-03", 7]`},
			"[23,23,47] 47 a",
		},
		{
			"an expression over a sample", `"series": [{"event": "a", "math": "hogql", "math_hogql": "count()"}], "samplingFactor": 0.3, ` + days,
			[]string{`["2020-01-01", 7]`},
			"[23,0,0] 23 a",
		},
		{
			"statistics of a sample stay", `"series": [{"event": "a", "math": "avg", "math_property": "p"}], "samplingFactor": 0.3, ` + days,
			[]string{`["2020-01-01", 7.5]`},
			"[7.5,0,0] 7.5 a",
		},
		{
			"a number of a sample", `"series": [{"event": "a"}], "samplingFactor": 0.3, "trendsFilter": {"display": "BoldNumber"}, ` + days,
			[]string{`[7]`},
			"[] 0 23 a",
		},
		{
			"totals and their formula", `"series": [{"event": "a"}, {"event": "b"}], "trendsFilter": {"display": "BoldNumber", "formula": "B/A"}, ` + days,
			[]string{`[4, 1]`},
			"null 0 0.25 Formula (B/A)",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			built, err := build(tt.fields)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := built.Shape(func(yield func([]byte) bool) {
				for _, row := range tt.rows {
					if !yield([]byte(row)) {
						return
					}
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			var items []item
			if err := json.Unmarshal(answer.Results, &items); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, i := range items {
				text := string(i.Data) + " " + string(i.Count) + " "
				if i.Number != nil {
					text += string(i.Number) + " "
				}
				text += i.Label
				if i.Breakdown != nil {
					text += "=" + shown(i.Breakdown)
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, "; ")); diff != "" {
				t.Errorf("items (-want +got):\n%s", diff)
			}
		})
	}
}
