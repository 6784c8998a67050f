package retention_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/retention"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// world is a project in a zone whose weeks begin on a day.
func world(t *testing.T, zone string, weekStart int) *insight.World {
	t.Helper()
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	w := insighttest.World()
	w.Database.Location, w.Database.WeekStart = location, weekStart
	return w
}

func build(t *testing.T, w *insight.World, fields string) (*insight.Built, error) {
	t.Helper()
	return retention.Build(insighttest.Node[*retention.Query](t, `{"kind": "RetentionQuery", `+fields+`}`), w)
}

func shape(t *testing.T, w *insight.World, fields string, rows ...string) *insight.Answer {
	t.Helper()
	built, err := build(t, w, fields)
	if err != nil {
		t.Fatal(err)
	}
	return insighttest.Shape(t, built, rows...)
}

// brief formats an answer with one line for each row: its value, label, date, and its cells.
func brief(t *testing.T, answer *insight.Answer) string {
	t.Helper()
	var results []struct {
		Values []struct {
			Count  float64
			Label  string
			Amount *float64 `json:"aggregation_value"`
		}
		Label, Date string
		Value       *string `json:"breakdown_value"`
	}
	if err := json.Unmarshal(answer.Results, &results); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, r := range results {
		line := r.Label + " " + r.Date + ":"
		if r.Value != nil {
			line = fmt.Sprintf("%q ", *r.Value) + line
		}
		for _, v := range r.Values {
			line += fmt.Sprintf(" %s=%v", v.Label, v.Count)
			if v.Amount != nil {
				line += fmt.Sprintf("/%v", *v.Amount)
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// TestRows checks which rows a range has, and their dates.
func TestRows(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, zone string
		weekStart  int
		fields     string
		want       string // first and last date, and the number of rows
	}{
		{"the days before now", "UTC", 0, `"retentionFilter": {}`, "2020-01-02T00:00:00Z 2020-01-09T00:00:00Z 8"},
		{"an explicit null", "UTC", 0, `"retentionFilter": {"totalIntervals": null}`, "2020-01-03T00:00:00Z 2020-01-09T00:00:00Z 7"},
		{"in another zone", "US/Pacific", 0, `"dateRange": {"date_to": "2020-01-09T03:00:00Z"}, "retentionFilter": {}`, "2020-01-01T00:00:00-08:00 2020-01-08T00:00:00-08:00 8"},
		{"over a change of the clock", "America/New_York", 0, `"dateRange": {"date_to": "2020-03-09"}, "retentionFilter": {"totalIntervals": 3}`, "2020-03-07T00:00:00-05:00 2020-03-09T00:00:00-04:00 3"},
		{"hours of now", "UTC", 0, `"retentionFilter": {"period": "Hour", "totalIntervals": 2}`, "2020-01-09T14:00:00Z 2020-01-09T15:00:00Z 2"},
		{"hours of a day", "UTC", 0, `"dateRange": {"date_to": "2020-01-09"}, "retentionFilter": {"period": "Hour", "totalIntervals": 2}`, "2020-01-08T23:00:00Z 2020-01-09T00:00:00Z 2"},
		{"hours that a clock shows twice", "America/New_York", 0, `"dateRange": {"date_from": "2020-11-01T00:00", "date_to": "2020-11-01T03:00"}, "retentionFilter": {"period": "Hour"}`, "2020-11-01T00:00:00-04:00 2020-11-01T03:00:00-05:00 5"},
		{"weeks from Sunday", "UTC", 0, `"retentionFilter": {"period": "Week", "totalIntervals": 2}`, "2019-12-29T00:00:00Z 2020-01-05T00:00:00Z 2"},
		{"weeks from Monday", "UTC", 1, `"retentionFilter": {"period": "Week", "totalIntervals": 2}`, "2019-12-30T00:00:00Z 2020-01-06T00:00:00Z 2"},
		{"months, the last day of one", "UTC", 0, `"dateRange": {"date_to": "2020-01-31"}, "retentionFilter": {"period": "Month", "totalIntervals": 3}`, "2019-11-01T00:00:00Z 2020-01-01T00:00:00Z 3"},
		{"rows by the range", "UTC", 0, `"dateRange": {"date_from": "2020-01-01", "date_to": "2020-01-03"}, "retentionFilter": {"period": "Month"}`, "2020-01-01T00:00:00Z 2020-01-01T00:00:00Z 1"},
		{"without the day that is not over", "UTC", 0, `"dateRange": {"excludeIncompletePeriods": true}, "retentionFilter": {"totalIntervals": 2}`, "2020-01-07T00:00:00Z 2020-01-08T00:00:00Z 2"},
		{"only the day that is not over", "UTC", 0, `"dateRange": {"date_from": "dStart", "excludeIncompletePeriods": true}, "retentionFilter": {}`, "2020-01-09T00:00:00Z 2020-01-09T00:00:00Z 1"},
		{"a range that ends before it begins", "UTC", 0, `"dateRange": {"date_from": "2020-01-05", "date_to": "2020-01-03"}, "retentionFilter": {}`, "none"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var results []struct{ Date string }
			if err := json.Unmarshal(shape(t, world(t, tt.zone, tt.weekStart), tt.fields).Results, &results); err != nil {
				t.Fatal(err)
			}
			got := "none"
			if n := len(results); n > 0 {
				got = fmt.Sprint(results[0].Date, " ", results[n-1].Date, " ", n)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

func TestShape(t *testing.T) {
	t.Parallel()
	const dates = `"dateRange": {"date_from": "2020-01-01", "date_to": "2020-01-02"}, `
	tests := []struct {
		name, fields string
		rows         []string
		want         string
	}{
		{
			"cells by row and column, zeros elsewhere", dates + `"retentionFilter": {"totalIntervals": 2}`,
			[]string{"[1, 0, 3]", "[0, 1, 2]"},
			"Day 0 2020-01-01T00:00:00Z: Day 0=0 Day 1=2\nDay 1 2020-01-02T00:00:00Z: Day 0=3 Day 1=0",
		},
		{
			"brackets", dates + `"retentionFilter": {"retentionCustomBrackets": [1, 3, 2]}`,
			[]string{"[0, 3, 4]"},
			"Day 0 2020-01-01T00:00:00Z: Day 0=0 Day 1=0 Day 2-4=0 Day 5-6=4\nDay 1 2020-01-02T00:00:00Z: Day 0=0 Day 1=0 Day 2-4=0 Day 5-6=0",
		},
		{
			"amounts, of a sample", `"samplingFactor": 0.4, "dateRange": {"date_from": "2020-01-02", "date_to": "2020-01-02"},
				"retentionFilter": {"totalIntervals": 1, "aggregationType": "sum", "aggregationProperty": "n"}`,
			[]string{"[0, 0, 3, 1.1]"},
			"Day 0 2020-01-02T00:00:00Z: Day 0=8/3",
		},
		{
			"values in the order of their places, the rest last", `"dateRange": {"date_from": "2020-01-02", "date_to": "2020-01-02"},
				"retentionFilter": {"totalIntervals": 1}, "breakdownFilter": {"breakdown": "b", "breakdown_limit": 2}`,
			[]string{`[3, "z", 0, 0, 1]`, `[1, "x", 0, 0, 5]`, `[2, "", 0, 0, 4]`},
			"\"x\" Day 0 2020-01-02T00:00:00Z: Day 0=5\n\"\" Day 0 2020-01-02T00:00:00Z: Day 0=4\n\"$$_posthog_breakdown_other_$$\" Day 0 2020-01-02T00:00:00Z: Day 0=1",
		},
		{"no values", `"retentionFilter": {}, "breakdownFilter": {"breakdown": "b"}`, nil, ""},
		{
			"the cohort of all", `"dateRange": {"date_from": "2020-01-02", "date_to": "2020-01-02"}, "retentionFilter": {"totalIntervals": 1},
				"breakdownFilter": {"breakdown": ["all"], "breakdown_type": "cohort"}`,
			[]string{"[0, 0, 7]"},
			"\"0\" Day 0 2020-01-02T00:00:00Z: Day 0=7",
		},
		{
			"the cohort of all without data", `"retentionFilter": {"totalIntervals": 1}, "breakdownFilter": {"breakdown": ["all"], "breakdown_type": "cohort"}`,
			nil, "",
		},
		{
			"cohorts, none of them left over", `"dateRange": {"date_from": "2020-01-02", "date_to": "2020-01-02"}, "retentionFilter": {"totalIntervals": 1},
				"breakdownFilter": {"breakdown": [7, "all"], "breakdown_type": "cohort", "breakdown_limit": 1}`,
			[]string{`[1, "0", 0, 0, 7]`, `[2, "7", 0, 0, 3]`},
			"\"0\" Day 0 2020-01-02T00:00:00Z: Day 0=7\n\"7\" Day 0 2020-01-02T00:00:00Z: Day 0=3",
		},
		{
			"cohorts in a list", `"dateRange": {"date_from": "2020-01-02", "date_to": "2020-01-02"}, "retentionFilter": {"totalIntervals": 1},
				"breakdownFilter": {"breakdowns": [{"type": "cohort", "property": 7}, {"type": "cohort", "property": 8}, {"type": "cohort", "property": 7}], "breakdown_limit": 1}`,
			[]string{`[1, "8", 0, 0, 7]`, `[2, "7", 0, 0, 3]`},
			"\"8\" Day 0 2020-01-02T00:00:00Z: Day 0=7\n\"7\" Day 0 2020-01-02T00:00:00Z: Day 0=3",
		},
		{
			"all time", `"dateRange": {"date_from": "all", "date_to": "2020-01-02"}, "retentionFilter": {"totalIntervals": 1}`,
			[]string{"[0, 0, 2]", "[-1, 1577923200, 0]", "[2, 0, 9]"},
			"Day 0 2020-01-02T00:00:00Z: Day 0=2",
		},
		{
			"all time, whole periods", `"dateRange": {"date_from": "all", "excludeIncompletePeriods": true}, "retentionFilter": {"period": "Week", "totalIntervals": 1}`,
			[]string{"[0, 0, 2]", "[-1, 1577923200, 0]"},
			"Week 0 2019-12-29T00:00:00Z: Week 0=2",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, brief(t, shape(t, insighttest.World(), tt.fields, tt.rows...))); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRange checks the span that an answer reports: that of all its rows.
func TestRange(t *testing.T) {
	t.Parallel()
	answer := shape(t, insighttest.World(), `"dateRange": {"date_to": "2020-01-05"}, "retentionFilter": {"totalIntervals": 2}`)
	want := &insight.Span{From: time.Date(2020, time.January, 4, 0, 0, 0, 0, time.UTC), To: time.Date(2020, time.January, 5, 23, 59, 59, 999_999_000, time.UTC)}
	if diff := cmp.Diff(want, answer.Range); diff != "" {
		t.Errorf("range (-want +got):\n%s", diff)
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, fields, want string }{
		{"windows, cumulative", `"retentionFilter": {"timeWindowMode": "24_hour_windows", "cumulative": true}`, "retentionFilter.cumulative: Cumulative retention is not supported for 24 hour windows."},
		{"windows with sums", `"retentionFilter": {"timeWindowMode": "24_hour_windows", "aggregationType": "sum", "aggregationProperty": "n"}`, "retentionFilter.aggregationType: Sum and average aggregation are not supported for 24 hour windows."},
		{"cumulative sums", `"retentionFilter": {"cumulative": true, "aggregationType": "avg", "aggregationProperty": "n"}`, "retentionFilter.aggregationType: Sum and average aggregation are not supported for cumulative retention."},
		{"a bad date", `"dateRange": {"date_to": "2020-13-01"}, "retentionFilter": {}`, "dateRange.date_to: The date '2020-13-01' is neither ISO 8601 nor relative, such as -7d"},
		{
			"too many columns", `"retentionFilter": {"totalIntervals": 317}`, "retentionFilter.totalIntervals: The cells of this retention, its rows times its columns, are more than 100000. " +
				"Ask for fewer intervals, a longer period or a shorter range.",
		},
		{
			"too many rows", `"dateRange": {"date_from": "2010-01-01"}, "retentionFilter": {"totalIntervals": 30}`, "dateRange.date_from: The cells of this retention, " +
				"its rows times its columns, are more than 100000. Ask for fewer intervals, a longer period or a shorter range.",
		},
		{
			"too many hours", `"dateRange": {"date_from": "2010-01-01"}, "retentionFilter": {"period": "Hour"}`, "retentionFilter.period: " +
				"An interval of one hour cuts this date range into 87856 parts; there may be 10000. Use a longer interval or a shorter range.",
		},
		{
			"too many values", `"retentionFilter": {"totalIntervals": 100}, "breakdownFilter": {"breakdown": "b", "breakdown_limit": 100}`, "breakdownFilter.breakdown_limit: " +
				"100 values and the rest, with 10000 cells each, are more than 1000000. Ask for fewer values, fewer intervals or a shorter range.",
		},
		{
			"too many cohorts", `"retentionFilter": {"totalIntervals": 300}, "breakdownFilter": {"breakdown_type": "cohort", "breakdown": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], "breakdown_limit": 1}`,
			"breakdownFilter.breakdown: 12 cohorts, with 90000 cells each, are more than 1000000. Ask for fewer cohorts, fewer intervals or a shorter range.",
		},
		{"an action", `"retentionFilter": {"returningEntity": {"id": "5", "type": "actions"}}`, "retentionFilter.returningEntity.id: Action ID 5 does not exist!"},
		{"a cohort", `"retentionFilter": {}, "breakdownFilter": {"breakdown": [0, 5], "breakdown_type": "cohort"}`, "breakdownFilter.breakdown.1: Could not find cohort with ID 5"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := build(t, insighttest.World(), tt.fields)
			if diff := cmp.Diff(tt.want, insighttest.Mistake(t, err)); diff != "" {
				t.Errorf("mistake (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCodes checks the codes of mistakes that have one of their own.
func TestCodes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		fields string
		want   diag.Code
	}{
		{`"retentionFilter": {"timeWindowMode": "24_hour_windows", "cumulative": true}`, "retention_cumulative_24_hour_windows_unsupported"},
		{
			`"retentionFilter": {"timeWindowMode": "24_hour_windows", "aggregationType": "sum", "aggregationProperty": "n"}`,
			"retention_24_hour_windows_property_aggregation_unsupported",
		},
		{`"retentionFilter": {"totalIntervals": 317}`, "retention_too_many_intervals"},
		{`"dateRange": {"date_from": "2010-01-01"}, "retentionFilter": {"period": "Hour"}`, "retention_too_many_intervals"},
		{`"retentionFilter": {"totalIntervals": 200}, "breakdownFilter": {"breakdown": "b"}`, "retention_too_many_intervals"},
		{`"retentionFilter": {"totalIntervals": 300}, "breakdownFilter": {"breakdown_type": "cohort", "breakdown": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]}`, "retention_too_many_intervals"},
		{`"retentionFilter": {"cumulative": true, "aggregationType": "avg", "aggregationProperty": "n"}`, diag.InvalidInput},
	} {
		_, err := build(t, insighttest.World(), tt.fields)
		if mistake, ok := errors.AsType[*diag.Error](err); !ok || mistake.Code != tt.want {
			t.Errorf("%s: got %v, want a mistake with the code %s", tt.fields, err, tt.want)
		}
	}
}

// TestAmountsOfTheStart checks which entities are the same: for these the first column adds up all events of its period, for others return
// events count from the start on.
func TestAmountsOfTheStart(t *testing.T) {
	t.Parallel()
	const every, named, five, six = `{"id": null}`, `{"id": "5"}`, `{"id": 5, "type": "actions"}`, `{"id": 6, "type": "actions"}`
	tests := []struct {
		name, start, back string
		same              bool
	}{
		{"one event", named, named, true},
		{"all events", every, every, true},
		{"one event, filtered twice", `{"id": "5", "properties": [{"key": "a", "value": "x"}]}`, named, true},
		{"one action, its number a text", five, `{"id": "5", "type": "actions"}`, true},
		{"two events", named, `{"id": "6"}`, false},
		{"all events and one", every, named, false},
		{"two actions", five, six, false},
		{"all events and an action", every, five, false},
		{"an action and all events", five, every, false},
		{"an event that is called like the number of an action", named, five, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := insighttest.World()
			w.Actions = query.NewActions([]query.Action{
				{ID: 5, Name: "joined", Steps: []query.ActionStep{{Event: "join"}}}, {ID: 6, Name: "paid", Steps: []query.ActionStep{{Event: "pay"}}},
			})
			built, err := build(t, w, `"retentionFilter": {"aggregationType": "sum", "aggregationProperty": "n", "targetEntity": `+tt.start+`, "returningEntity": `+tt.back+`}`)
			if err != nil {
				t.Fatal(err)
			}
			if same := !strings.Contains(hogql.Print(built.Query), "comebacks"); same != tt.same {
				t.Errorf("the same: %t, want %t", same, tt.same)
			}
		})
	}
}

// TestAllTimeOfTooMuch checks that a range that only the rows show to be too long is a mistake of the author, too.
func TestAllTimeOfTooMuch(t *testing.T) {
	t.Parallel()
	for field, filter := range map[string]string{"totalIntervals": `{"totalIntervals": 100}`, "period": `{"period": "Hour"}`} {
		built, err := build(t, insighttest.World(), `"dateRange": {"date_from": "all"}, "retentionFilter": `+filter)
		if err != nil {
			t.Fatal(err)
		}
		_, err = built.Shape(slices.Values([][]byte{[]byte("[-1, 1000000000, 0]")}))
		if got := insighttest.Mistake(t, err); !strings.HasPrefix(got, "retentionFilter."+field+": ") {
			t.Errorf("got %s, want a mistake in %s", got, field)
		}
	}
}

// TestForeignRows checks that rows that cannot be from the query are an error, not an answer.
func TestForeignRows(t *testing.T) {
	t.Parallel()
	for fields, rows := range map[string][]string{
		`"retentionFilter": {}`: {"7", "[1, 1]", "[1, 1, 1, 1]", "[8, 0, 1]", "[0, 8, 1]", "[-1, 0, 1]", "[0, -1, 1]", `[0, "x", 1]`},
		`"retentionFilter": {}, "breakdownFilter": {"breakdown": "b"}`: {`[0, "b", 0, 0, 1]`, `[27, "b", 0, 0, 1]`, "[1, 2, 0, 0, 1]"},
	} {
		built, err := build(t, insighttest.World(), fields)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			if answer, err := built.Shape(slices.Values([][]byte{[]byte(row)})); err == nil {
				t.Errorf("row %s gives %s", row, answer.Results)
			}
		}
	}
}

// TestActorsOfCohorts checks that the actors of a row can be asked for by each cohort of the breakdown.
func TestActorsOfCohorts(t *testing.T) {
	t.Parallel()
	for _, breakdown := range []string{`{"breakdown": [7, 8], "breakdown_type": "cohort"}`, `{"breakdowns": [{"type": "cohort", "property": 7}, {"type": "cohort", "property": 8}]}`} {
		at := insighttest.Node[*query.InsightActors](t, `{"kind": "InsightActorsQuery", "interval": 0, "breakdown": ["8"],
			"source": {"kind": "RetentionQuery", "retentionFilter": {}, "breakdownFilter": `+breakdown+`}}`)
		q, ok := at.Source.(*retention.Query)
		if !ok {
			t.Fatalf("over a %T", at.Source)
		}
		if _, err := retention.Actors(q, at, insighttest.World()); err != nil {
			t.Errorf("%s: %v", breakdown, err)
		}
	}
}

func TestActorsMistakes(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, fields, breakdown, want string }{
		{"a row behind the last", `"interval": 8`, "", "interval: There is no row 8: the retention has 8"},
		{"a period before", `"compare": "previous"`, "", "compare: A retention is not compared with a previous period"},
		{"a value of no breakdown", `"breakdown": ["x"]`, "", "breakdown: The retention has no breakdown"},
		{"another cohort", `"breakdown": 5`, `, "breakdownFilter": {"breakdown": "all", "breakdown_type": "cohort"}`, "breakdown: There is no cohort '5'"},
		{"a cohort next to those of the breakdown", `"breakdown": "8"`, `, "breakdownFilter": {"breakdown": [7, "all"], "breakdown_type": "cohort"}`, "breakdown: There is no cohort '8'"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			at := insighttest.Node[*query.InsightActors](t, `{"kind": "InsightActorsQuery", `+tt.fields+`, "source": {"kind": "RetentionQuery", "retentionFilter": {}`+tt.breakdown+`}}`)
			q, ok := at.Source.(*retention.Query)
			if !ok {
				t.Fatalf("over a %T", at.Source)
			}
			_, err := retention.Actors(q, at, insighttest.World())
			if diff := cmp.Diff(tt.want, insighttest.Mistake(t, err)); diff != "" {
				t.Errorf("mistake (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCellsOfCohorts checks that a breakdown by cohorts has as many matrices as cohorts, whatever its limit of values.
func TestCellsOfCohorts(t *testing.T) {
	t.Parallel()
	for _, cohorts := range []string{`"breakdown": [7, 8]`, `"breakdown": ["all"], "breakdown_limit": 1000`} {
		if _, err := build(t, insighttest.World(), `"retentionFilter": {"period": "Hour", "totalIntervals": 200}, "breakdownFilter": {"breakdown_type": "cohort", `+cohorts+`}`); err != nil {
			t.Errorf("%s: %v", cohorts, err)
		}
	}
}

// TestCellsOfAllTime: if only the rows show that an answer would have too many cells, it is refused before they are made.
func TestCellsOfAllTime(t *testing.T) {
	t.Parallel()
	w := world(t, "UTC", 0)
	built, err := build(t, w, `"dateRange": {"date_from": "all"}, "retentionFilter": {"totalIntervals": 30}, "breakdownFilter": {"breakdown": "k", "breakdown_limit": 1000}`)
	if err != nil {
		t.Fatal(err)
	}
	rows := []string{fmt.Sprintf(`[0, "", -1, %d, 0]`, insighttest.Now.AddDate(0, 0, -3000).Unix())}
	for place := range 12 {
		rows = append(rows, fmt.Sprintf(`[%d, "v%d", 0, 0, 1]`, place+1, place))
	}
	_, err = built.Shape(func(yield func([]byte) bool) {
		for _, row := range rows {
			if !yield([]byte(row)) {
				return
			}
		}
	})
	const want = "breakdownFilter.breakdown_limit: The answer has 1080360 cells; it may have 1000000. Ask for fewer values, fewer intervals or a shorter range."
	if diff := cmp.Diff(want, insighttest.Mistake(t, err)); diff != "" {
		t.Errorf("mistake (-want +got):\n%s", diff)
	}
}
