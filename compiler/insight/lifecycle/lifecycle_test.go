package lifecycle_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/lifecycle"
)

func build(t *testing.T, node string) (*insight.Built, error) {
	t.Helper()
	return lifecycle.Build(insighttest.Node[*lifecycle.Query](t, node), insighttest.World())
}

func shape(t *testing.T, node string, rows ...string) *insight.Answer {
	t.Helper()
	built, err := build(t, node)
	if err != nil {
		t.Fatal(err)
	}
	return insighttest.Shape(t, built, rows...)
}

func TestItems(t *testing.T) {
	t.Parallel()
	// Day 18262 is 2020-01-01.
	answer := shape(t, `{"kind": "LifecycleQuery", "series": [{"event": "$pageview", "custom_name": "Views", "name": "ignored"}],
		"dateRange": {"date_from": "2020-01-01", "date_to": "2020-01-03"}}`,
		`[0, 18262, 3]`, `[0, 18264, 1]`, `[1, 18263, 2]`, `[3, 18263, 1]`, `[3, 18264, 2]`)
	const shared = `"action": {"id": "$pageview", "name": "$pageview", "type": "events", "order": 0, "math": "total", "custom_name": "Views"},
		"labels": ["1-Jan-2020", "2-Jan-2020", "3-Jan-2020"], "days": ["2020-01-01", "2020-01-02", "2020-01-03"], `
	want := `[
		{` + shared + `"label": "$pageview - new", "status": "new", "data": [3, 0, 1], "count": 4},
		{` + shared + `"label": "$pageview - returning", "status": "returning", "data": [0, 2, 0], "count": 2},
		{` + shared + `"label": "$pageview - resurrecting", "status": "resurrecting", "data": [0, 0, 0], "count": 0},
		{` + shared + `"label": "$pageview - dormant", "status": "dormant", "data": [0, -1, -2], "count": -3}]`
	if diff := cmp.Diff(insighttest.JSON(t, want), insighttest.JSON(t, string(answer.Results))); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	span := &insight.Span{
		From: time.Date(2020, time.January, 1, 0, 0, 0, 0, time.UTC), To: time.Date(2020, time.January, 3, 23, 59, 59, 999_999_000, time.UTC),
	}
	if diff := cmp.Diff(span, answer.Range); diff != "" {
		t.Errorf("range (-want +got):\n%s", diff)
	}
}

// TestUntil checks when a lifecycle stops changing: its last bucket counts as a whole, beyond the end of the range.
func TestUntil(t *testing.T) {
	t.Parallel()
	for interval, want := range map[string]time.Time{
		"day":   time.Date(2020, time.January, 8, 23, 59, 59, 999_999_000, time.UTC),
		"week":  time.Date(2020, time.January, 11, 23, 59, 59, 999_999_000, time.UTC),
		"month": time.Date(2020, time.January, 31, 23, 59, 59, 999_999_000, time.UTC),
	} {
		answer := shape(t, `{"kind": "LifecycleQuery", "series": [{}], "interval": "`+interval+`", "dateRange": {"date_from": "2020-01-01", "date_to": "2020-01-08"}}`)
		if !answer.Until.Equal(want) {
			t.Errorf("by %s: until %v, want %v", interval, answer.Until, want)
		}
	}
}

// TestBuckets checks which buckets a range has, and which of them the number in a row stands for.
func TestBuckets(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, fields string
		rows         []string
		days, labels []string
		data         []float64 // of the status new
	}{
		{
			"the default is the last 7 days and today", ``,
			[]string{`[0, 18263, 1]`, `[0, 18270, 2]`, `[0, 18262, 9]`},
			[]string{"2020-01-02", "2020-01-03", "2020-01-04", "2020-01-05", "2020-01-06", "2020-01-07", "2020-01-08", "2020-01-09"},
			[]string{"2-Jan-2020", "3-Jan-2020", "4-Jan-2020", "5-Jan-2020", "6-Jan-2020", "7-Jan-2020", "8-Jan-2020", "9-Jan-2020"},
			[]float64{1, 0, 0, 0, 0, 0, 0, 2},
		},
		{
			"weeks from Sunday, named by their days in the range", `, "interval": "week", "dateRange": {"date_from": "2019-12-31", "date_to": "2020-01-05"}`,
			[]string{`[0, 2609, 4]`, `[0, 2610, 5]`},
			[]string{"2019-12-29", "2020-01-05"},
			[]string{"31-Dec-2019 – 4-Jan-2020", "5-Jan-2020"},
			[]float64{4, 5},
		},
		{
			"months", `, "interval": "month", "dateRange": {"date_from": "2019-12-31", "date_to": "2020-01-05"}`,
			[]string{`[0, 599, 4]`, `[0, 600, 5]`},
			[]string{"2019-12-01", "2020-01-01"},
			[]string{"Dec 2019", "Jan 2020"},
			[]float64{4, 5},
		},
		{
			"hours", `, "interval": "hour", "dateRange": {"date_from": "2020-01-01T23:10", "date_to": "2020-01-02T01:00"}`,
			[]string{`[0, 438311, 1]`, `[0, 438313, 2]`},
			[]string{"2020-01-01 23:00:00", "2020-01-02 00:00:00", "2020-01-02 01:00:00"},
			[]string{"1-Jan 23:00", "2-Jan 00:00", "2-Jan 01:00"},
			[]float64{1, 0, 2},
		},
		{
			"minutes", `, "interval": "minute", "dateRange": {"date_from": "2020-01-01T23:59:30", "date_to": "2020-01-02T00:00"}`,
			[]string{`[0, 26298719, 1]`},
			[]string{"2020-01-01 23:59:00", "2020-01-02 00:00:00"},
			[]string{"1-Jan 23:59", "2-Jan 00:00"},
			[]float64{1, 0},
		},
		{
			"explicit bounds leave out what begins before", `, "dateRange": {"date_from": "2020-01-01T12:00", "date_to": "2020-01-02T12:00", "explicitDate": true}`,
			[]string{`[0, 18262, 9]`, `[0, 18263, 1]`},
			[]string{"2020-01-02"},
			[]string{"2-Jan-2020"},
			[]float64{1},
		},
		{
			"all time begins with the earliest event", `, "dateRange": {"date_from": "all", "date_to": "2020-01-02"}`,
			[]string{`[0, 18262, 3]`, `[5, 1577890800, 0]`},
			[]string{"2020-01-01", "2020-01-02"},
			[]string{"1-Jan-2020", "2-Jan-2020"},
			[]float64{3, 0},
		},
		{"samples are scaled up and rounded", `, "samplingFactor": 0.3, "dateRange": {"date_from": "2020-01-01", "date_to": "2020-01-01"}`, []string{`[0, 18262, 2]`}, []string{"2020-01-01"}, []string{"1-Jan-2020"}, []float64{7}},
		{"a range that ends before it begins", `, "dateRange": {"date_from": "2020-01-02", "date_to": "2020-01-01"}`, nil, []string{}, []string{}, []float64{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			answer := shape(t, `{"kind": "LifecycleQuery", "series": [{"event": null}]`+tt.fields+`}`, tt.rows...)
			var items []struct {
				Days, Labels  []string
				Data          []float64
				Status, Label string
			}
			if err := json.Unmarshal(answer.Results, &items); err != nil {
				t.Fatal(err)
			}
			if len(items) != 4 || items[0].Label != "All events - new" {
				t.Fatalf("items %+v", items)
			}
			if diff := cmp.Diff([]any{tt.days, tt.labels, tt.data}, []any{items[0].Days, items[0].Labels, items[0].Data}); diff != "" {
				t.Errorf("days, labels, data (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, fields, want string }{
		{"no series", `"series": []`, "series: Lifecycle insights require at least one series."},
		{
			"the people of a warehouse", `"series": [{}], "customAggregationTarget": true`, "customAggregationTarget: Custom entity aggregation target is not supported for " +
				"lifecycle insights without a data warehouse series.",
		},
		{"an action", `"series": [{"kind": "ActionsNode", "id": 5}]`, "series.0.id: Action ID 5 does not exist!"},
		{"a bad date", `"series": [{}], "dateRange": {"date_to": "soon"}`, "dateRange.date_to: The date 'soon' is neither ISO 8601 nor relative, such as -7d"},
		{
			"too many buckets", `"series": [{}], "interval": "minute", "dateRange": {"date_from": "2019-01-01", "date_to": "2020-01-01"}`,
			"interval: An interval of one minute cuts this date range into 525601 parts; there may be 10000. Use a longer interval or a shorter range.",
		},
		{
			"a filter that is no expression", `"series": [{"properties": [{"type": "hogql", "key": "1 +"}]}]`,
			"series.0.properties.0",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := build(t, `{"kind": "LifecycleQuery", `+tt.fields+`}`)
			if got := insighttest.Mistake(t, err); !strings.HasPrefix(got, tt.want) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// TestCodes checks the codes of mistakes that have one of their own.
func TestCodes(t *testing.T) {
	t.Parallel()
	for fields, want := range map[string]diag.Code{
		`"series": []`: "insight_requires_at_least_one_series",
		`"series": [{}], "customAggregationTarget": true`: "lifecycle_custom_aggregation_target_requires_data_warehouse_series",
	} {
		_, err := build(t, `{"kind": "LifecycleQuery", `+fields+`}`)
		if mistake, ok := errors.AsType[*diag.Error](err); !ok || mistake.Code != want {
			t.Errorf("got %v, want a mistake with the code %s", err, want)
		}
	}
	if _, err := build(t, `{"kind": "LifecycleQuery", "series": [{}], "customAggregationTarget": false}`); err != nil {
		t.Error(err)
	}
}

// TestAllTimeIsBounded checks that too many buckets are refused if only the rows show how many there are.
func TestAllTimeIsBounded(t *testing.T) {
	t.Parallel()
	built, err := build(t, `{"kind": "LifecycleQuery", "series": [{}], "interval": "hour", "dateRange": {"date_from": "all"}}`)
	if err != nil {
		t.Fatal(err)
	}
	_, err = built.Shape(slices.Values([][]byte{[]byte(`[5, 1420070400, 0]`)}))
	if got := insighttest.Mistake(t, err); !strings.HasPrefix(got, "interval: ") {
		t.Errorf("got %s, want a mistake in interval", got)
	}
}

// TestForeignRows checks that rows that cannot be from the query are an error, not an answer.
func TestForeignRows(t *testing.T) {
	t.Parallel()
	built, err := build(t, `{"kind": "LifecycleQuery", "series": [{}]}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{`[6, 1, 1]`, `[-1, 1, 1]`, `["new", 1, 1]`, `{}`} {
		if answer, err := built.Shape(slices.Values([][]byte{[]byte(row)})); err == nil {
			t.Errorf("row %s gives %s", row, answer.Results)
		}
	}
}
