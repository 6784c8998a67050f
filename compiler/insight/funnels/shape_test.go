package funnels_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/funnels"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// TestResults checks the answers built from rows (contract: funnels.md, sections 10 to 12).
func TestResults(t *testing.T) {
	t.Parallel()
	const (
		two     = `"series": [{"event": "a"}, {"event": "b", "custom_name": "B!"}], "dateRange": {"date_from": "2020-01-01", "date_to": "2020-01-03"}`
		days    = `"count": 3, "days": ["2020-01-01", "2020-01-02", "2020-01-03"], "labels": ["1-Jan-2020", "2-Jan-2020", "3-Jan-2020"]`
		plan    = `, "breakdownFilter": {"breakdown": "plan"}`
		paying  = `, "breakdownFilter": {"breakdown_type": "cohort", "breakdown": [7]}`
		inside  = `, "breakdown": "paying", "breakdown_value": 7`
		outside = `, "breakdown": "Not in paying", "breakdown_value": 4503599627370496`
		rates   = `, "funnelsFilter": {"funnelVizType": "trends"}`
		times   = `, "funnelsFilter": {"funnelVizType": "time_to_convert", "binCount": 2}`
	)
	first := func(count, value string) string {
		return `{"action_id": "a", "name": "a", "custom_name": null, "order": 0, "people": [], "count": ` + count + `, "type": "events",
			"average_conversion_time": null, "median_conversion_time": null` + value + `}`
	}
	second := func(count, seconds, value string) string {
		return `{"action_id": "b", "name": "b", "custom_name": "B!", "order": 1, "people": [], "count": ` + count + `, "type": "events",
			"average_conversion_time": ` + seconds + `, "median_conversion_time": ` + seconds + value + `}`
	}
	of := func(value string) string { return `, "breakdown": ` + value + `, "breakdown_value": ` + value }
	tests := []struct {
		name, fields string
		rows         []string
		want         string
	}{
		{"steps", two, []string{`[[5, 2], [null, 60500000], [null, 60500000]]`}, "[" + first("5", "") + "," + second("2", "60.5", "") + "]"},
		{"nobody took any time", two, []string{`[[5, 2], [null, null], [null, null]]`}, "[" + first("5", "") + "," + second("2", "null", "") + "]"},
		{
			"a group of events", `"series": [{"event": "a"}, {"kind": "GroupNode", "nodes": [{"event": "b"}, {"event": null}]}]`,
			[]string{`[[5, 2], [null, null], [null, null]]`},
			"[" + first("5", "") + `, {"action_id": "b, All events", "name": "b, All events", "custom_name": null, "order": 1, "people": [], "count": 2,
				"type": "group", "average_conversion_time": null, "median_conversion_time": null}]`,
		},
		{"nobody entered", two, []string{`[[], [], []]`}, "[]"},
		{
			"a sample, scaled up", two + `, "samplingFactor": 0.1`,
			[]string{`[[5, 2], [null, 60500000], [null, 60500000]]`},
			"[" + first("50", "") + "," + second("20", "60.5", "") + "]",
		},
		{
			"values, most in the last step first", two + plan,
			[]string{
				`["", 0, [7, 1], [null, 2e6], [null, 2e6]]`, `["pro", 0, [6, 2], [null, 3e6], [null, 3e6]]`,
				`["", 1, [9, 0], [null, null], [null, null]]`,
			},
			"[[" + first("6", of(`["pro"]`)) + "," + second("2", "3", of(`["pro"]`)) + "], [" + first("7", of(`[""]`)) + "," + second("1", "2", of(`[""]`)) + "], [" +
				first("9", of(`["Other"]`)) + "," + second("0", "null", of(`["Other"]`)) + "]]",
		},
		{
			"the value of a group is plain", two + `, "breakdownFilter": {"breakdown": "industry", "breakdown_type": "group", "breakdown_group_type_index": 0}`,
			[]string{`["tech", 0, [1, 0], [null, null], [null, null]]`},
			"[[" + first("1", of(`"tech"`)) + "," + second("0", "null", of(`"tech"`)) + "]]",
		},
		{
			"the value of a group in a list", two + `, "breakdownFilter": {"breakdown": ["industry"], "breakdown_type": "group", "breakdown_group_type_index": 0}`,
			[]string{`["tech", 0, [1, 0], [null, null], [null, null]]`},
			"[[" + first("1", of(`["tech"]`)) + "," + second("0", "null", of(`["tech"]`)) + "]]",
		},
		{
			"renamed steps", `"series": [{"event": "a", "name": "a"}, {"event": "b", "name": "B", "custom_name": "B!"}, {"event": null, "name": "Any"}]`,
			[]string{`[[5, 2, 1], [null, null, null], [null, null, null]]`},
			"[" + first("5", "") + "," + second("2", "null", "") + `, {"action_id": null, "name": null, "custom_name": "Any", "order": 2, "people": [], "count": 1,
				"type": "events", "average_conversion_time": null, "median_conversion_time": null}]`,
		},
		{"no values", two + plan, nil, "[]"},
		{
			"one cohort and everybody else", two + paying,
			[]string{`["4503599627370496", 0, [9, 3], [null, 2e6], [null, 2e6]]`, `["7", 0, [7, 1], [null, 2e6], [null, 2e6]]`},
			"[[" + first("9", outside) + "," + second("3", "2", outside) + "], [" + first("7", inside) + "," + second("1", "2", inside) + "]]",
		},
		{
			"one cohort with everybody in it", two + paying,
			[]string{`["7", 0, [7, 1], [null, 2e6], [null, 2e6]]`},
			"[[" + first("7", inside) + "," + second("1", "2", inside) + "], [" + first("0", outside) + "," + second("0", "null", outside) + "]]",
		},
		{"one cohort and no events", two + paying, nil, "[[" + first("0", outside) + "," + second("0", "null", outside) + "]]"},
		{
			"two cohorts have no others", two + `, "breakdownFilter": {"breakdown_type": "cohort", "breakdown": [7, 8]}`,
			[]string{`["7", 0, [7, 1], [null, 2e6], [null, 2e6]]`},
			"[[" + first("7", inside) + "," + second("1", "2", inside) + "]]",
		},
		{
			"rates of one cohort", two + rates + paying,
			[]string{`[[["2020-01-01", 1, 1]], "7"]`},
			`[{` + days + `, "data": [100, 0, 0], "breakdown_value": "paying"}, {` + days + `, "data": [0, 0, 0], "breakdown_value": "Not in paying"}]`,
		},
		{
			"rates of one cohort and of everybody else, who come last", two + rates + paying,
			[]string{`[[["2020-01-02", 2, 1]], "4503599627370496"]`, `[[["2020-01-01", 1, 1]], "7"]`},
			`[{` + days + `, "data": [100, 0, 0], "breakdown_value": "paying"}, {` + days + `, "data": [0, 50, 0], "breakdown_value": "Not in paying"}]`,
		},
		{
			"rates with nobody in the cohort", two + rates + paying,
			[]string{`[[["2020-01-02", 2, 1]], "4503599627370496"]`},
			`[{` + days + `, "data": [0, 50, 0], "breakdown_value": "Not in paying"}]`,
		},
		{"rates of one cohort and no events", two + rates + paying, nil, `[{` + days + `, "data": [0, 0, 0], "breakdown_value": "Not in paying"}]`},
		{
			"rates of Thursdays", `"series": [{"event": "a"}, {"event": "b"}], "dateRange": {"date_from": "2020-01-01", "date_to": "2020-01-03", "daysOfWeek": [4]}` + rates,
			[]string{`[[["2020-01-02", 2, 1]]]`},
			`[{` + days + `, "data": [0, 50, 0]}]`,
		},
		{
			"rates", two + rates,
			[]string{`[[["2020-01-01", 3, 1], ["2020-01-03", 2, 2]]]`},
			`[{` + days + `, "data": [33.33, 0, 100]}]`,
		},
		{
			"rates halfway between two", two + rates,
			[]string{`[[["2020-01-01", 32, 1], ["2020-01-02", 32, 3], ["2020-01-03", 160, 1]]]`}, // 3.125, 9.375 and 0.625
			`[{` + days + `, "data": [3.12, 9.38, 0.62]}]`,
		},
		{"no rates", two + rates, []string{`[[]]`}, `[{` + days + `, "data": [0, 0, 0]}]`},
		{
			"rates by value, sorted by it", two + rates + plan,
			[]string{`[[["2020-01-01", 1, 1]], "pro"]`, `[[["2020-01-02", 2, 1]], ""]`},
			`[{` + days + `, "data": [0, 50, 0], "breakdown_value": [""]}, {` + days + `, "data": [100, 0, 0], "breakdown_value": ["pro"]}]`,
		},
		{
			"periods whose window is open", two + `, "funnelsFilter": {"funnelVizType": "trends", "funnelWindowInterval": 7, "hideIncompleteConversionWindowPeriods": true}`,
			[]string{`[[["2020-01-01", 1, 1]]]`},
			`[{"count": 1, "days": ["2020-01-01"], "labels": ["1-Jan-2020"], "data": [100]}]`,
		},
		{
			"times", two + times,
			[]string{`[2, 10, 15, 20, 18, 0, 3]`, `[2, 10, 15, 20, 18, 2, 1]`},
			`{"bins": [[10, 3], [25, 0], [40, 1]], "average_conversion_time": 20, "median_conversion_time": 18}`,
		},
		{
			"times of a sample", two + times + `, "samplingFactor": 0.3`,
			[]string{`[2, 10, 15, 20, 18, 0, 4]`, `[2, 10, 15, 20, 18, 2, 1]`},
			`{"bins": [[10, 13], [25, 0], [40, 3]], "average_conversion_time": 20, "median_conversion_time": 18}`,
		},
		{"no times", two + times, nil, `{"bins": [], "average_conversion_time": null, "median_conversion_time": null}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			built, err := funnels.Build(insighttest.Node[*funnels.Query](t, `{"kind": "FunnelsQuery", `+tt.fields+`}`), insighttest.World())
			if err != nil {
				t.Fatal(err)
			}
			answer := insighttest.Shape(t, built, tt.rows...)
			if diff := cmp.Diff(insighttest.JSON(t, tt.want), insighttest.JSON(t, string(answer.Results))); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRatesByCohort: the series of cohorts are sorted by name.
func TestRatesByCohort(t *testing.T) {
	t.Parallel()
	w := insighttest.World()
	w.Database.Cohorts = schema.NewCohorts([]schema.Cohort{{ID: 9, Name: "b", Version: 1}, {ID: 10, Name: "c", Version: 1}, {ID: 11, Name: "a", Version: 1}}, false)
	built, err := funnels.Build(insighttest.Node[*funnels.Query](t, `{"kind": "FunnelsQuery", "series": [{"event": "a"}, {"event": "b"}],
		"funnelsFilter": {"funnelVizType": "trends"}, "breakdownFilter": {"breakdown_type": "cohort", "breakdown": [9, 10, 11]}}`), w)
	if err != nil {
		t.Fatal(err)
	}
	var series []struct {
		Value string `json:"breakdown_value"`
	}
	answer := insighttest.Shape(t, built, `[[], "9"]`, `[[], "10"]`, `[[], "11"]`)
	if err := json.Unmarshal(answer.Results, &series); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(series); got != "[{a} {b} {c}]" {
		t.Errorf("series of %s, want a, b and c", got)
	}
}

// TestAllTime checks that a range of all time begins with the earliest event of the rows.
func TestAllTime(t *testing.T) {
	t.Parallel()
	q := insighttest.Node[*funnels.Query](t, `{"kind": "FunnelsQuery", "series": [{"event": "a"}, {"event": "b"}], "dateRange": {"date_from": "all"},
		"interval": "month", "funnelsFilter": {"funnelVizType": "trends"}}`)
	built, err := funnels.Build(q, insighttest.World())
	if err != nil {
		t.Fatal(err)
	}
	answer := insighttest.Shape(t, built, `[[["2019-12-01", 1, 0]], 1573000000]`)
	if want := time.Date(2019, time.November, 6, 0, 0, 0, 0, time.UTC); !answer.Range.From.Equal(want) {
		t.Errorf("the range begins on %v, want %v", answer.Range.From, want)
	}
	want := insighttest.JSON(t, `[{"count": 3, "days": ["2019-11-01", "2019-12-01", "2020-01-01"], "labels": ["Nov 2019", "Dec 2019", "Jan 2020"], "data": [0, 0, 0]}]`)
	if diff := cmp.Diff(want, insighttest.JSON(t, string(answer.Results))); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

// TestMostSeries checks how many values of a breakdown have a series, by the number of periods: a breakdown has 1,000 points, but one series at
// least. One cohort and everybody else are always two. In a range of all time, the rows show how many periods there are.
func TestMostSeries(t *testing.T) {
	t.Parallel()
	const (
		plan   = `"breakdownFilter": {"breakdown": "plan", "breakdown_limit": 30}`
		paying = `"breakdownFilter": {"breakdown_type": "cohort", "breakdown": [7]}`
		both   = `"breakdownFilter": {"breakdown_type": "cohort", "breakdown": [7, 8]}`
	)
	tests := []struct {
		name, fields string
		limit        int // of the query
		series       int // of the answer to as many rows, but three at most
	}{
		{"few periods", `"dateRange": {"date_from": "-9d"}, ` + plan, 30, 3},
		{"many periods", `"dateRange": {"date_from": "-499d"}, ` + plan, 2, 2},
		{"too many for two", `"dateRange": {"date_from": "-500d"}, ` + plan, 1, 1},
		{"more than there may be points", `"dateRange": {"date_from": "-1000d"}, ` + plan, 1, 1},
		{"one cohort", `"dateRange": {"date_from": "-1000d"}, ` + paying, 2, 2},
		{"two cohorts", `"dateRange": {"date_from": "-9d"}, ` + both, 2, 2},
		{"two cohorts, many periods", `"dateRange": {"date_from": "-1000d"}, ` + both, 1, 1},
		{"all time", `"dateRange": {"date_from": "all"}, ` + plan, 30, 2},
		{"one cohort of all time", `"dateRange": {"date_from": "all"}, ` + paying, 2, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			q := insighttest.Node[*funnels.Query](t, `{"kind": "FunnelsQuery", "series": [{"event": "a"}, {"event": "b"}], "funnelsFilter": {"funnelVizType": "trends"}, `+tt.fields+`}`)
			built, err := funnels.Build(q, insighttest.World())
			if err != nil {
				t.Fatal(err)
			}
			if text := hogql.Print(built.Query); !strings.HasSuffix(text, " LIMIT "+strconv.Itoa(tt.limit)) {
				t.Errorf("the query does not end with LIMIT %d:\n%s", tt.limit, text)
			}
			earliest := ""
			if q.DateRange.From == "all" {
				earliest = ", " + strconv.FormatInt(insighttest.Now.AddDate(0, 0, -499).Unix(), 10)
			}
			var rows []string
			for _, value := range []string{"4503599627370496", "7", "8"}[:min(3, tt.limit)] {
				rows = append(rows, `[[], "`+value+`"`+earliest+`]`)
			}
			var results []any
			if err := json.Unmarshal(insighttest.Shape(t, built, rows...).Results, &results); err != nil {
				t.Fatal(err)
			}
			if len(results) != tt.series {
				t.Errorf("the answer has %d series, want %d", len(results), tt.series)
			}
		})
	}
}

// TestUntil checks when trends that hide periods with an open window stop changing: some time after their range. Until then the clock decides.
func TestUntil(t *testing.T) {
	t.Parallel()
	for filter, want := range map[string]time.Time{
		`{"funnelVizType": "trends"}`: {},
		`{"funnelVizType": "steps", "hideIncompleteConversionWindowPeriods": true}`:  {},
		`{"funnelVizType": "trends", "hideIncompleteConversionWindowPeriods": true}`: time.Date(2020, time.January, 19, 0, 0, 0, 0, time.UTC),
	} {
		q := insighttest.Node[*funnels.Query](t, `{"kind": "FunnelsQuery", "series": [{"event": "a"}, {"event": "b"}], "interval": "week",
			"dateRange": {"date_from": "2019-12-01", "date_to": "2020-01-01"}, "funnelsFilter": `+filter+`}`)
		built, err := funnels.Build(q, insighttest.World())
		if err != nil {
			t.Fatal(err)
		}
		row := `[[]]`
		if q.Viz == funnels.VizSteps {
			row = `[[], [], []]`
		}
		if got := insighttest.Shape(t, built, row).Until; !got.Equal(want) {
			t.Errorf("%s: until %v, want %v", filter, got, want)
		}
		if built.ByClock == want.IsZero() {
			t.Errorf("%s: the clock decides about rows: %v", filter, built.ByClock)
		}
	}
}

// TestForeignRows checks that rows that cannot be from the query are an error, not an answer.
func TestForeignRows(t *testing.T) {
	t.Parallel()
	for viz, rows := range map[string][]string{
		"steps": {`[[1, 1]]`, `[[1, "x"], [0, 1], [0, 1]]`, `[[1, 1, 1], [0, 1], [0, 1]]`, `7`}, "trends": {`[[["2020-01-01", "x", 1]]]`, `[7]`},
		"time_to_convert": {`[2, 10, 15, 20, 18, 3, 1]`, `[0, 10, 15, 20, 18, 0, 1]`, `[2]`},
	} {
		q := insighttest.Node[*funnels.Query](t, `{"kind": "FunnelsQuery", "series": [{"event": "a"}, {"event": "b"}], "funnelsFilter": {"funnelVizType": "`+viz+`"}}`)
		built, err := funnels.Build(q, insighttest.World())
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			if answer, err := built.Shape(slices.Values([][]byte{[]byte(row)})); err == nil {
				t.Errorf("%s: row %s gives %s", viz, row, answer.Results)
			}
		}
	}
}
