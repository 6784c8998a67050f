package alerts

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/trends"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

func ruleOf(t *testing.T, query, condition string) *Rule {
	t.Helper()
	r, err := ReadRule(&registry.Alert{
		Condition: json.RawMessage(`{"type":"` + condition + `"}`), Config: json.RawMessage(`{"type":"TrendsAlertConfig","series_index":0}`),
		Threshold: registry.Threshold{Configuration: json.RawMessage(`{"type":"absolute","bounds":{"upper":10}}`)},
	}, []byte(`{"kind":"TrendsQuery","series":[{"kind":"EventsNode"}],`+query+`}`))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestNarrowed: the range that is asked for has all the intervals that the compared numbers are made of.
func TestNarrowed(t *testing.T) {
	const (
		value, increase = "absolute_value", "relative_increase"
		cumulative      = `"trendsFilter":{"display":"ActionsLineGraphCumulative"}`
	)
	tests := []struct{ name, query, condition, zone, want string }{
		{"a value", `"dateRange":{"date_from":"-30d"}`, value, "UTC", "2020-01-04 to 2020-01-06, running"},
		{"a change", `"dateRange":{"date_from":"-30d"}`, increase, "UTC", "2020-01-03 to 2020-01-06, running"},
		{"a value of a day of the week", `"dateRange":{"daysOfWeek":[1]}`, value, "UTC", "2019-12-30 to 2020-01-06, running"},
		{"a change from a week before", `"dateRange":{"daysOfWeek":[1]}`, increase, "UTC", "2019-12-23 to 2020-01-06, running"},
		{"a change from a week before, another day", `"dateRange":{"daysOfWeek":[2]}`, increase, "UTC", "2019-12-24 to 2019-12-31"},
		{"a mean", `"trendsFilter":{"smoothingIntervals":7}`, value, "UTC", "2019-12-29 to 2020-01-06, running"},
		{"a mean of weeks", `"interval":"week","trendsFilter":{"smoothingIntervals":3}`, increase, "UTC", "2019-12-01 to 2020-01-05, running"},
		{"a mean of very many seconds", `"interval":"second","trendsFilter":{"smoothingIntervals":1000}`, value, "UTC", "2020-01-06 02:11:21 to 2020-01-06 02:30:00, running"},
		{"a mean of very many years", `"interval":"year","trendsFilter":{"smoothingIntervals":1000}`, value, "UTC", "1920-01-01 to 2020-01-01, running"},
		{"a mean of very many quarters", `"interval":"quarter","trendsFilter":{"smoothingIntervals":1000}`, value, "UTC", "1920-01-01 to 2020-01-01, running"},
		{"a running sum", cumulative + `,"dateRange":{"date_from":"-30d"}`, value, "UTC", "2019-12-07 to 2020-01-06, running"},
		{"a running sum of last year", cumulative + `,"dateRange":{"date_from":"2019-01-01","date_to":"2019-12-31"}`, value, "UTC", "2019-01-01 to 2019-12-31"},
		{"a running sum that ends in the future", cumulative + `,"dateRange":{"date_from":"2020-01-01","date_to":"2020-12-31"}`, value, "UTC", "2020-01-01 to 2020-01-06, running"},
		{"a running sum that ends today", cumulative + `,"dateRange":{"date_from":"2020-01-01","date_to":"2020-01-06"}`, value, "UTC", "2020-01-01 to 2020-01-06, running"},
		{"a running sum of whole days", cumulative + `,"dateRange":{"date_from":"2020-01-01","excludeIncompletePeriods":true}`, value, "UTC", "2020-01-01 to 2020-01-05"},
		{"where it is still yesterday", `"dateRange":{"date_from":"-30d"}`, value, "America/New_York", "2020-01-03 to 2020-01-05, running"},
		{"where it is still yesterday, as a running sum", cumulative, value, "America/New_York", "2019-12-29 to 2020-01-05, running"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			zone, err := time.LoadLocation(tt.zone)
			if err != nil {
				t.Fatal(err)
			}
			now := time.Date(2020, time.January, 6, 2, 30, 0, 0, time.UTC) // a Monday
			node, span, err := ruleOf(t, tt.query, tt.condition).narrowed(&insight.World{Database: &schema.Database{Location: zone}, Now: now})
			if err != nil {
				t.Fatal(err)
			}
			buckets := span.Buckets()
			got := fmt.Sprintf("%s to %s", span.Day(buckets[0]), span.Day(buckets[len(buckets)-1]))
			if runs(&span, now) {
				got += ", running"
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("asks with %+v (-want +got):\n%s", node.DateRange, diff)
			}
		})
	}
}

// TestDelayed: a rule with a delay asks for as many intervals more, and compares one that ended that long ago.
func TestDelayed(t *testing.T) {
	for _, tt := range []struct{ query, want string }{
		{`"interval":"day"`, "2020-01-01"},
		{`"interval":"week"`, "2019-12-01"},
		{`"interval":"hour","trendsFilter":{"smoothingIntervals":5}`, "2020-01-05 17:00:00"},
		{`"trendsFilter":{"display":"ActionsLineGraphCumulative"},"dateRange":{"date_from":"-30d"}`, "2019-12-07"},
	} {
		r := ruleOf(t, tt.query, "relative_increase")
		r.Delay = 2
		now := time.Date(2020, time.January, 6, 2, 30, 0, 0, time.UTC)
		_, span, err := r.narrowed(&insight.World{Database: &schema.Database{Location: time.UTC}, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		if got := span.Day(span.Buckets()[0]); got != tt.want {
			t.Errorf("%s: asks from %s, want %s", tt.query, got, tt.want)
		}
	}
	const results = `[{"label":"a","data":[1,20,3,4,5],"days":["2020-01-02","2020-01-03","2020-01-04","2020-01-05","2020-01-06"]}]`
	r := ruleOf(t, `"interval":"day"`, "relative_increase")
	for _, tt := range []struct {
		delay  int
		breach string
	}{
		{0, ""},
		{2, "The insight value (a) for 2020-01-03 (19) increased more than upper threshold (10)"},
		{3, ""}, // there is none before
		{9, ""},
	} {
		r.Delay = tt.delay
		series, err := r.series([]byte(results), true)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Evaluate(series).Breach; got != tt.breach {
			t.Errorf("with a delay of %d: %q, want %q", tt.delay, got, tt.breach)
		}
	}
	r.Delay, r.Condition, r.Lower = 1, AbsoluteValue, new(1.0)
	series, err := r.series([]byte(`[]`), true)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.Evaluate(series).Breach, "The insight value (empty result) (0) is less than lower threshold (1)"; got != want {
		t.Errorf("without results: %q, want %q", got, want)
	}
}

// TestNarrowedSlope: a slope is asked for as a line, since its answer lacks the intervals between its ends.
func TestNarrowedSlope(t *testing.T) {
	now := time.Date(2020, time.January, 6, 2, 30, 0, 0, time.UTC)
	node, _, err := ruleOf(t, `"trendsFilter":{"display":"SlopeGraph"}`, "relative_increase").narrowed(&insight.World{Database: new(schema.Database), Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if node.Display != trends.Line {
		t.Errorf("a slope is asked for as %s", node.Display)
	}
}

// TestNarrowedEver: a range of all time has too many intervals to list.
func TestNarrowedEver(t *testing.T) {
	r := ruleOf(t, `"interval":"second","dateRange":{"date_from":"all"},"trendsFilter":{"display":"ActionsLineGraphCumulative"}`, "absolute_value")
	now := time.Date(2020, time.January, 6, 2, 30, 0, 0, time.UTC)
	node, span, err := r.narrowed(&insight.World{Database: new(schema.Database), Now: now})
	if err != nil || node.DateRange.From != "all" || !span.All || !runs(&span, now) {
		t.Errorf("%+v, all %t: %v", node.DateRange, span.All, err)
	}
}

// TestNoResults: an insight without results counts as 0, also one with breakdowns.
func TestNoResults(t *testing.T) {
	for _, query := range []string{`"interval":"day"`, `"breakdownFilter":{"breakdown":"$browser"}`} {
		r := ruleOf(t, query, "absolute_value")
		series, err := r.series([]byte("[]"), true)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Evaluate(series); got.Value == nil || *got.Value != 0 || got.Breach != "" {
			t.Errorf("%s: %+v", query, got)
		}
	}
}
