package alerts_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/alerts"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// alertOf returns an alert with these parts; empty parts are replaced by valid ones.
func alertOf(condition, config, threshold string) *registry.Alert {
	or := func(text, otherwise string) json.RawMessage {
		if text == "" {
			text = otherwise
		}
		return json.RawMessage(text)
	}
	return &registry.Alert{
		Condition: or(condition, `{"type":"absolute_value"}`), Config: or(config, `{"type":"TrendsAlertConfig","series_index":0}`),
		Threshold: registry.Threshold{Configuration: or(threshold, `{"type":"absolute","bounds":{"upper":10}}`)},
	}
}

const pageviews = `{"kind":"TrendsQuery","series":[{"kind":"EventsNode","event":"$pageview"}]}`

func TestReadRule(t *testing.T) {
	const (
		increase = `{"type":"relative_increase"}`
		decrease = `{"type":"relative_decrease"}`
		ongoing  = `{"type":"TrendsAlertConfig","series_index":0,"check_ongoing_interval":true}`
		second   = `{"type":"TrendsAlertConfig","series_index":1}`
		lower    = `{"type":"absolute","bounds":{"lower":1}}`
		formula  = `{"kind":"InsightVizNode","source":{"kind":"TrendsQuery","series":[{"kind":"EventsNode"}],"trendsFilter":{"formulas":["A","A*2"]}}}`
	)
	tests := []struct{ name, query, condition, config, threshold, want string }{
		{"an absolute value", pageviews, "", "", "", ""},
		{"an increase by percent", pageviews, increase, "", `{"type":"percentage","bounds":{"upper":0.5}}`, ""},
		{"a second formula", formula, "", second, "", ""},
		{"a decrease that has not ended", pageviews, decrease, ongoing, lower, ""},
		{"null bounds", pageviews, "", "", `{"type":"absolute","bounds":null}`, ""},
		{"no condition", pageviews, `null`, "", "", ": Alert has invalid condition: None"},
		{"another condition", pageviews, `{"type":"bo'gus"}`, "", "", `: Alert has invalid condition: {'type': 'bo\'gus'}`},
		{"more in a condition", pageviews, `{"type":"absolute_value","x":[1.0,true,null]}`, "", "", ": Alert has invalid condition: {'type': 'absolute_value', 'x': [1.0, True, None]}"},
		{"another config", pageviews, "", `{"series_index":0}`, "", ": Unsupported alert config type: {'series_index': 0}"},
		{"a config for SQL", pageviews, "", `{"type":"HogQLAlertConfig"}`, "", ": Unsupported alert config type: {'type': 'HogQLAlertConfig'}"},
		{"no series", pageviews, "", `{"type":"TrendsAlertConfig"}`, "", ": Alert has invalid TrendsAlertConfig: {'type': 'TrendsAlertConfig'}"},
		{"a wrong series", pageviews, "", second, "", ": series_index 1 is out of range (query has 1 series)"},
		{"a series below the first", pageviews, "", `{"type":"TrendsAlertConfig","series_index":-1}`, "", ": series_index -1 is out of range (query has 1 series)"},
		{"a third formula", formula, "", `{"type":"TrendsAlertConfig","series_index":2}`, "", ": series_index 2 is out of range (query has 2 series)"},
		{"no query", "", "", "", "", "insight: Alerts are not supported for this insight."},
		{"a funnel", `{"kind":"FunnelsQuery","series":[{"kind":"EventsNode"},{"kind":"EventsNode"}]}`, "", "", "", "insight: Alerts are not supported for this insight."},
		{"a box plot", `{"kind":"TrendsQuery","series":[{"kind":"EventsNode","math_property":"n"}],"trendsFilter":{"display":"BoxPlot"}}`, "", "", "", "insight: Alerts are not supported for this insight."},
		{"SQL", `{"kind":"HogQLQuery","query":"select 1"}`, "", "", "", "insight: Alerts are not supported for this insight."},
		{"a query that is wrong", `{"kind":"TrendsQuery","series":1}`, "", "", "", "insight: Alert's insight has an invalid TrendsQuery: JSON parse error - 1 validation error for QueryRequest\nquery.TrendsQuery.series\n  Input should be a valid list [type=list_type]"},
		{
			"the change of a total", `{"kind":"TrendsQuery","series":[{"kind":"EventsNode"}],"trendsFilter":{"display":"BoldNumber"}}`, increase, "", "",
			": Relative alert condition 'relative_increase' is not compatible with non time series trends",
		},
		{
			"a percentage of a value", pageviews, "", "", `{"type":"percentage","bounds":{"upper":1}}`,
			": Absolute value alerts require an absolute threshold, but a percentage threshold was configured",
		},
		{
			"a lower bound for what goes on", pageviews, "", ongoing, lower,
			": check_ongoing_interval is only supported for alert condition absolute_value when upper threshold is specified",
		},
		{
			"a lower bound for an increase that goes on", pageviews, increase, ongoing, lower,
			": check_ongoing_interval is only supported for alert condition relative_increase when upper threshold is specified",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := alerts.ReadRule(alertOf(tt.condition, tt.config, tt.threshold), []byte(tt.query))
			if diff := cmp.Diff(tt.want, mistake(err)); diff != "" {
				t.Errorf("mistake (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDelay(t *testing.T) {
	const (
		ongoing = `{"type":"TrendsAlertConfig","series_index":0,"check_ongoing_interval":true}`
		field   = "evaluation_delay_intervals: "
		monday  = `"dateRange":{"daysOfWeek":[1]}`
	)
	for _, tt := range []struct{ name, more, config, want string }{
		{"over time", `"interval":"hour"`, "", ""},
		{"on Mondays, by week", `"interval":"week",` + monday, "", ""},
		{"on all days of the week", `"dateRange":{"daysOfWeek":[1,2,3,4,5,6,7]}`, "", ""},
		{"a total", `"trendsFilter":{"display":"BoldNumber"}`, "", field + "Only trends over time can have an evaluation delay."},
		{"in progress", `"interval":"hour"`, ongoing, field + "Set check_ongoing_interval to false to use an evaluation delay."},
		{"on Mondays", monday, "", field + "An insight for some days of the week can't have an evaluation delay, unless its interval is a week or longer."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, query := alertOf("", tt.config, ""), []byte(strings.TrimSuffix(pageviews, "}")+","+tt.more+"}")
			if _, err := alerts.ReadRule(a, query); err != nil {
				t.Errorf("without a delay: %v", err)
			}
			a.Delay = 1
			_, err := alerts.ReadRule(a, query)
			if diff := cmp.Diff(tt.want, mistake(err)); diff != "" {
				t.Errorf("mistake (-want +got):\n%s", diff)
			}
		})
	}
}

// mistake returns the field and the message of a mistake; empty for none.
func mistake(err error) string {
	if known, ok := errors.AsType[*registry.FieldError](err); ok {
		return known.Field + ": " + known.Message
	}
	if err != nil {
		return "not a mistake of a field: " + err.Error()
	}
	return ""
}

func TestCheckThreshold(t *testing.T) {
	const whole = "threshold__non_field_errors: "
	for _, tt := range []struct{ in, want string }{
		{`{"type":"absolute","bounds":{"lower":1,"upper":1}}`, ""},
		{`{"type":"percentage","bounds":{}}`, ""},
		{`{"type":"absolute"}`, ""},
		{`{"type":"absolute","bounds":{"lower":2,"upper":1}}`, whole + "Lower threshold must be less than upper threshold"},
		{`{}`, whole + "Invalid threshold configuration: {}"},
		{`{"type":"relative","bounds":{"upper":1}}`, whole + "Invalid threshold configuration: {'type': 'relative', 'bounds': {'upper': 1}}"},
		{`{"type":"absolute","bounds":{"upper":"1"}}`, whole + "Invalid threshold configuration: {'type': 'absolute', 'bounds': {'upper': '1'}}"},
		{`{"type":"absolute","bounds":{"up":1}}`, whole + "Invalid threshold configuration: {'type': 'absolute', 'bounds': {'up': 1}}"},
		{`[]`, whole + "Invalid threshold configuration: []"},
		{`"` + strings.Repeat("x", 500) + `"`, whole + "Invalid threshold configuration: '" + strings.Repeat("x", 199) + "..."},
	} {
		if diff := cmp.Diff(tt.want, mistake(alerts.CheckThreshold(json.RawMessage(tt.in)))); diff != "" {
			t.Errorf("CheckThreshold(%s) (-want +got):\n%s", tt.in, diff)
		}
	}
}

func TestCheckBounds(t *testing.T) {
	const want = "threshold__configuration: At least one threshold bound (lower or upper) must be provided."
	for threshold, want := range map[string]string{
		`{"type":"absolute","bounds":{"lower":0}}`: "", `{"type":"absolute","bounds":{"upper":0}}`: "",
		`{"type":"absolute","bounds":{"upper":null}}`: want, `{"type":"absolute"}`: want,
	} {
		r, err := alerts.ReadRule(alertOf("", "", threshold), []byte(pageviews))
		if err != nil {
			t.Fatal(err)
		}
		if got := mistake(r.CheckBounds()); got != want {
			t.Errorf("%s: %q", threshold, got)
		}
	}
}

// TestCompleteConfig: an alert that is checked more often than an interval ends compares the one in progress, unless it says otherwise.
func TestCompleteConfig(t *testing.T) {
	const (
		increase = `{"type":"relative_increase"}`
		decrease = `{"type":"relative_decrease"}`
		open     = `{"type":"TrendsAlertConfig","series_index":0}`
		null     = `{"type":"TrendsAlertConfig","series_index":0,"check_ongoing_interval":null}`
		off      = `{"type":"TrendsAlertConfig","series_index":0,"check_ongoing_interval":false}`
		on       = `{"check_ongoing_interval":true,"series_index":0,"type":"TrendsAlertConfig"}`
		lower    = `{"type":"absolute","bounds":{"lower":5}}`
	)
	by := func(interval string) string {
		return strings.TrimSuffix(pageviews, "}") + `,"interval":"` + interval + `"}`
	}
	tests := []struct {
		name, query, condition, config, threshold string
		interval                                  registry.AlertInterval
		want                                      string
	}{
		{"days, every 15 minutes", pageviews, "", open, "", registry.AlertQuarterly, on},
		{"days, hourly", pageviews, "", open, "", registry.AlertHourly, on},
		{"days, every two minutes, an increase", pageviews, increase, open, "", registry.AlertRealTime, on},
		{"days, daily", pageviews, "", open, "", registry.AlertDaily, open},
		{"hours, hourly", by("hour"), "", open, "", registry.AlertHourly, open},
		{"hours, every 15 minutes", by("hour"), "", open, "", registry.AlertQuarterly, on},
		{"minutes, every two minutes", by("minute"), "", open, "", registry.AlertRealTime, open},
		{"weeks, daily", by("week"), "", open, "", registry.AlertDaily, on},
		{"months, monthly", by("month"), "", open, "", registry.AlertMonthly, open},
		{"quarters, monthly", by("quarter"), "", open, "", registry.AlertMonthly, on},
		{"a delay", pageviews, "", open, "", registry.AlertHourly, open},
		{"null", pageviews, "", null, "", registry.AlertHourly, on},
		{"off", pageviews, "", off, "", registry.AlertHourly, off},
		{"on", pageviews, "", on, "", registry.AlertHourly, on},
		{"no upper bound", pageviews, "", open, lower, registry.AlertHourly, open},
		{"a decrease", pageviews, decrease, open, "", registry.AlertHourly, open},
		{"a total", strings.TrimSuffix(pageviews, "}") + `,"trendsFilter":{"display":"BoldNumber"}}`, "", open, "", registry.AlertHourly, open},
		{"another config", pageviews, "", `{"type":"HogQLAlertConfig"}`, "", registry.AlertHourly, `{"type":"HogQLAlertConfig"}`},
		{"no object", pageviews, "", `[]`, "", registry.AlertHourly, `[]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := alertOf(tt.condition, tt.config, tt.threshold)
			a.Interval = tt.interval
			if tt.name == "a delay" {
				a.Delay = 1
			}
			if diff := cmp.Diff(tt.want, string(alerts.CompleteConfig(a, []byte(tt.query)))); diff != "" {
				t.Errorf("config (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEvaluate(t *testing.T) {
	one := func(current, before float64) []alerts.Series {
		return []alerts.Series{{Label: "a", Current: &current, Before: &before}}
	}
	empty := []alerts.Series{{Label: "empty result", Current: new(0.0), Before: new(0.0), Empty: true}}
	lone := func(current float64) []alerts.Series { return []alerts.Series{{Label: "a", Current: &current}} }
	bounds := func(kind, text string) string { return `{"type":"` + kind + `","bounds":{` + text + `}}` }
	const (
		increase = `{"type":"relative_increase"}`
		decrease = `{"type":"relative_decrease"}`
		ongoing  = `{"type":"TrendsAlertConfig","series_index":0,"check_ongoing_interval":true}`
		byBrowse = `{"kind":"TrendsQuery","interval":"week","series":[{"kind":"EventsNode"}],"breakdownFilter":{"breakdown":"$browser"}}`
		total    = `{"kind":"TrendsQuery","series":[{"kind":"EventsNode"}],"trendsFilter":{"display":"BoldNumber"}}`
	)
	none := math.NaN() // stands for no value
	tests := []struct {
		name, query, condition, config, threshold string
		series                                    []alerts.Series
		value                                     float64
		breach                                    string
	}{
		{"between bounds", pageviews, "", "", bounds("absolute", `"lower":1,"upper":5`), one(3, 0), 3, ""},
		{"at the upper bound", pageviews, "", "", bounds("absolute", `"upper":5`), one(5, 0), 5, ""},
		{"at the lower bound", pageviews, "", "", bounds("absolute", `"lower":5`), one(5, 0), 5, ""},
		{"above", pageviews, "", "", bounds("absolute", `"upper":5`), one(5.5, 0), 5.5, "The insight value (a) for previous day (5.5) is more than upper threshold (5)"},
		{"below", pageviews, "", "", bounds("absolute", `"lower":5`), lone(0), 0, "The insight value (a) for previous day (0) is less than lower threshold (5)"},
		{"above at once", pageviews, "", ongoing, bounds("absolute", `"upper":5`), one(6, 0), 6, "The insight value (a) for current day (6) is more than upper threshold (5)"},
		{
			"above, with a long label", pageviews, "", "", bounds("absolute", `"upper":5`),
			[]alerts.Series{{Label: strings.Repeat("ü", 500), Current: new(6.0)}},
			6,
			"The insight value (" + strings.Repeat("ü", 400) + "…) for previous day (6) is more than upper threshold (5)",
		},
		{"a total", total, "", "", bounds("absolute", `"upper":5`), lone(6), 6, "The insight value (a) for current interval (6) is more than upper threshold (5)"},
		{"an increase", pageviews, increase, "", bounds("absolute", `"upper":5`), one(16, 10), 6, "The insight value (a) for previous day (6) increased more than upper threshold (5)"},
		{"an increase below the bound", pageviews, increase, "", bounds("absolute", `"lower":5`), one(9, 10), -1, "The insight value (a) for previous day (-1) increased less than lower threshold (5)"},
		{"half as much again", pageviews, increase, "", bounds("percentage", `"upper":0.4`), one(15, 10), 0.5, "The insight value (a) for previous day (50.00%) increased more than upper threshold (40.00%)"},
		{"from nothing", pageviews, increase, "", bounds("percentage", `"upper":1000`), one(1, 0), math.Inf(1), "The insight value (a) for previous day (+Inf%) increased more than upper threshold (100000.00%)"},
		{"nothing from nothing", pageviews, increase, "", bounds("percentage", `"upper":0`), one(0, 0), 0, ""},
		{"a decrease", pageviews, decrease, "", bounds("absolute", `"upper":5`), one(4, 10), 6, "The insight value (a) for previous day (6) decreased more than upper threshold (5)"},
		{"to nothing", pageviews, decrease, "", bounds("percentage", `"upper":0.9`), one(0, 10), 1, "The insight value (a) for previous day (100.00%) decreased more than upper threshold (90.00%)"},
		{"a decrease is not taken early", pageviews, decrease, ongoing, bounds("absolute", `"upper":5`), one(4, 10), 6, "The insight value (a) for previous day (6) decreased more than upper threshold (5)"},
		{"no number", pageviews, "", "", bounds("absolute", `"lower":5`), []alerts.Series{{Label: "a"}}, none, ""},
		{"no number before", pageviews, increase, "", bounds("absolute", `"lower":5`), lone(1), none, ""},
		{"no series", pageviews, "", "", bounds("absolute", `"lower":5`), nil, none, ""},
		{"several, and none of them", byBrowse, "", "", bounds("absolute", `"upper":9`), append(one(3, 0), one(8, 0)...), none, ""},
		{"a breakdown without results", byBrowse, "", "", bounds("absolute", `"upper":9`), empty, 0, ""},
		{
			"a breakdown without results, which is too few", byBrowse, "", "", bounds("absolute", `"lower":1`), empty, 0,
			"The insight value (empty result) for previous week (0) is less than lower threshold (1)",
		},
		{
			"several, and one of them", byBrowse, "", "", bounds("absolute", `"upper":5`), append(one(3, 0), one(8, 0)...), 8,
			"The insight value (a) for previous week (8) is more than upper threshold (5)",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := alerts.ReadRule(alertOf(tt.condition, tt.config, tt.threshold), []byte(tt.query))
			if err != nil {
				t.Fatal(err)
			}
			got := r.Evaluate(tt.series)
			value := none
			if got.Value != nil {
				value = *got.Value
			}
			if value != tt.value && !(math.IsNaN(value) && math.IsNaN(tt.value)) || got.Breach != tt.breach {
				t.Errorf("%v %q, want %v %q", value, got.Breach, tt.value, tt.breach)
			}
		})
	}
}

// FuzzReadRule: any alert is either read or a mistake in a field.
func FuzzReadRule(f *testing.F) {
	f.Add(`{"type":"absolute_value"}`, `{"type":"TrendsAlertConfig","series_index":0}`, `{"type":"absolute","bounds":{"upper":1}}`, `{"blocked_windows":[{"start":"22:00","end":"07:00"}]}`)
	f.Add(`[{"a":[1e999,{"b":null}]}]`, `{"type":"TrendsAlertConfig","series_index":1e3}`, `"x"`, `{"blocked_windows":{}}`)
	f.Fuzz(func(t *testing.T, condition, config, threshold, quiet string) {
		for _, text := range []string{condition, config, threshold, quiet} {
			if !json.Valid([]byte(text)) {
				return
			}
		}
		if text := mistake(alerts.CheckThreshold(json.RawMessage(threshold))); strings.HasPrefix(text, "not ") {
			t.Error(text)
		}
		r, err := alerts.ReadRule(alertOf(condition, config, threshold), []byte(pageviews))
		if text := mistake(err); strings.HasPrefix(text, "not ") {
			t.Error(text)
		}
		if err == nil {
			r.Evaluate([]alerts.Series{{Current: new(1.0), Before: new(0.0)}})
		}
		hours, err := alerts.ReadQuietHours(json.RawMessage(quiet))
		if err != nil {
			return
		}
		shown, err := json.Marshal(alerts.ShowQuietHours(hours))
		if err != nil {
			t.Fatal(err)
		}
		again, err := alerts.ReadQuietHours(shown)
		if err != nil || !cmp.Equal(hours, again) {
			t.Errorf("%s is shown as %s, which is %v, %v", quiet, shown, again, err)
		}
	})
}
