package trends_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/trends"
)

// TestMetric checks when a metric has the items of the previous period too.
func TestMetric(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		fields string
		want   bool
	}{
		{`"trendsFilter": {"display": "Metric"}`, true},
		{`"trendsFilter": {"display": "Metric", "metricShowChange": true, "metricSummary": "average"}, "compareFilter": {"compare": false}`, true},
		{`"trendsFilter": {"display": "Metric", "metricShowChange": false}`, false},
		{`"trendsFilter": {"display": "Metric", "metricShowChange": false}, "compareFilter": {"compare": true}`, true},
		{`"trendsFilter": {"display": "Metric", "metricSummary": "latest"}`, false},
		{`"trendsFilter": {"display": "Metric"}, "dateRange": {"date_from": "all"}`, false},
		{`"trendsFilter": {"display": "ActionsLineGraph"}`, false},
		{`"trendsFilter": {"display": "ActionsProportionBar"}`, false},
	} {
		q := insighttest.Node[*trends.Query](t, `{"kind": "TrendsQuery", "series": [{"event": "a"}], `+tt.fields+`}`)
		if got := q.Compare != nil; got != tt.want {
			t.Errorf("with %s, there is a comparison: %t", tt.fields, got)
		}
	}
	q := insighttest.Node[*trends.Query](t, `{"kind": "TrendsQuery", "series": [{"event": "a"}], "trendsFilter": {"display": "Metric"},
		"compareFilter": {"compare": false, "compare_to": "-1w"}}`)
	if q.Compare == nil || q.Compare.To != "-1w" {
		t.Errorf("a metric is compared with %+v, not with the period of its compareFilter", q.Compare)
	}
	if !trends.Display("ActionsProportionBar").Total() {
		t.Error("a proportion bar does not count over the whole range")
	}
}

// TestPreviousOfTotals checks which time one number is compared with (contract: trends.md, section 9). Now is 15:30 on 9 January.
func TestPreviousOfTotals(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, fields, want string }{
		{"hours to the end of this one", `"interval": "hour", "dateRange": {"date_from": "-24h"}`, "2020-01-07T15:00:00 2020-01-08T15:59:59.999999"},
		{"hours and a time of its own", `"interval": "hour", "dateRange": {"date_from": "-24h"}, "compareFilter": {"compare": true, "compare_to": "-1w"}`, "2020-01-01T15:00:00 2020-01-02T15:59:59.999999"},
		{"weekdays stay aligned", `"interval": "day", "dateRange": {"date_from": "-7d"}`, "2019-12-26T00:00:00 2020-01-02T23:59:59.999999"},
		{"but not by the week", `"interval": "week", "dateRange": {"date_from": "-7d"}`, "2019-12-25T00:00:00 2020-01-01T23:59:59.999999"},
		{"whole days alone", `"interval": "week", "dateRange": {"date_from": "-7d", "excludeIncompletePeriods": true}`, "2019-12-26T00:00:00 2020-01-01T23:59:59.999999"},
		{"days that are over have the same length", `"interval": "hour", "dateRange": {"date_from": "2020-01-06", "date_to": "2020-01-08"}`, "2020-01-03T00:00:00 2020-01-05T23:59:59.999999"},
		{"more seconds than a chart has", `"interval": "second", "dateRange": {"date_from": "-3h"}`, "2020-01-09T09:29:59.000001 2020-01-09T12:30:00"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			built, err := build(`"series": [{"event": "a"}], "trendsFilter": {"display": "BoldNumber"}, "compareFilter": {"compare": true}, ` + tt.fields)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := built.Shape(slices.Values([][]byte{}))
			if err != nil {
				t.Fatal(err)
			}
			const form = "2006-01-02T15:04:05.999999"
			if diff := cmp.Diff(tt.want, answer.Previous.From.Format(form)+" "+answer.Previous.To.Format(form)); diff != "" {
				t.Errorf("previous range (-want +got):\n%s", diff)
			}
		})
	}
}
