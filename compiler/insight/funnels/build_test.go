package funnels_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/funnels"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
)

// TestBeginsAtItsTime checks that a funnel reads no event before a date_from in the middle of a bucket.
func TestBeginsAtItsTime(t *testing.T) {
	t.Parallel()
	for _, fields := range []string{
		`"interval": "day"`,
		`"interval": "hour"`,
		`"funnelsFilter": {"funnelVizType": "trends"}, "interval": "week"`,
		`"funnelsFilter": {"funnelVizType": "time_to_convert"}`,
	} {
		q := insighttest.Node[*funnels.Query](t, `{"kind": "FunnelsQuery", "dateRange": {"date_from": "2020-01-08T12:30:00"},
			"series": [{"event": "a", "math": "first_time_for_user"}, {"event": "b"}], `+fields+`}`)
		built, err := funnels.Build(q, insighttest.World())
		if err != nil {
			t.Fatal(err)
		}
		text := hogql.Print(built.Query)
		if got, want := strings.Count(text, "2020-01-08 "), strings.Count(text, "2020-01-08 12:30:00"); got != want || want < 2 {
			t.Errorf("with %s, %d of %d times on the day are at 12:30:\n%s", fields, want, got, text)
		}
	}
}

// TestUncut checks that only trends have periods: for all else, the interval does not limit the range.
func TestUncut(t *testing.T) {
	t.Parallel()
	const long, all = `"interval": "minute", "dateRange": {"date_from": "-30d"}`, `"dateRange": {"date_from": "all"}`
	viz := func(name string) string { return `, "funnelsFilter": {"funnelVizType": "` + name + `"}` }
	const tooMany = "interval: An interval of one minute cuts this date range into 43201 parts; there may be 10000. Use a longer interval or a shorter range."
	const tooOld = "interval: An interval of one day cuts this date range into 14253 parts; there may be 10000. Use a longer interval or a shorter range."
	for _, tt := range []struct{ name, fields, row, want string }{
		{"steps", long + viz("steps"), `[[1, 1], [0, 1], [0, 1]]`, ""},
		{"flow", long + viz("flow"), `[[1, 1], [0, 1], [0, 1]]`, ""},
		{"times", long + viz("time_to_convert"), `[1, 10, 15, 20, 18, 0, 3]`, ""},
		{"trends", long + viz("trends"), `[[]]`, tooMany},
		{"steps from long ago", all + viz("steps"), `[[1, 1], [0, 1], [0, 1], 347155200]`, ""},
		{"times from long ago", all + viz("time_to_convert"), `[1, 10, 15, 20, 18, 0, 3, 347155200]`, ""},
		{"trends from long ago", all + viz("trends"), `[[], 347155200]`, tooOld},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			q := insighttest.Node[*funnels.Query](t, `{"kind": "FunnelsQuery", "series": [{"event": "a"}, {"event": "b"}], `+tt.fields+`}`)
			built, err := funnels.Build(q, insighttest.World())
			if err == nil {
				_, err = built.Shape(slices.Values([][]byte{[]byte(tt.row)}))
			}
			got := ""
			if err != nil {
				got = insighttest.Mistake(t, err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("mistake (-want +got):\n%s", diff)
			}
		})
	}
}

// TestActorsOfTimes checks that a drill-down into times to convert lists the actors of the steps, of one value too.
func TestActorsOfTimes(t *testing.T) {
	t.Parallel()
	for _, fields := range []string{
		`"funnelStep": 2, "funnelStepBreakdown": ["x"]`, `"funnelStep": -2, "funnelStepBreakdown": ["Other"]`, `"funnelStep": 1`,
	} {
		var texts []string
		for _, viz := range []string{"steps", "time_to_convert"} {
			at := insighttest.Node[*funnels.ActorsQuery](t, `{"kind": "FunnelsActorsQuery", `+fields+`, "source": {"kind": "FunnelsQuery",
				"series": [{"event": "a"}, {"event": "b"}], "breakdownFilter": {"breakdown": "k"}, "funnelsFilter": {"funnelVizType": "`+viz+`"}}}`)
			people, err := funnels.Actors(at.Source, at, insighttest.World())
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, hogql.Print(people.Query))
		}
		if diff := cmp.Diff(texts[0], texts[1]); diff != "" {
			t.Errorf("%s (-steps +times):\n%s", fields, diff)
		}
	}
}

// TestActorsOfTrends checks that the actors of a funnel over time need the period and whether they left, in this order.
func TestActorsOfTrends(t *testing.T) {
	t.Parallel()
	const start = `, "funnelTrendsEntrancePeriodStart": "2020-01-08"`
	for fields, want := range map[string]string{
		start:                                    "funnelTrendsDropOff: Actors parameter `funnelTrendsDropOff` must be provided for funnel trends persons!",
		``:                                       "funnelTrendsDropOff: Actors parameter `funnelTrendsDropOff` must be provided for funnel trends persons!",
		`, "funnelTrendsDropOff": false`:         "funnelTrendsEntrancePeriodStart: The actors of a funnel over time need the period in which they entered it",
		start + `, "funnelTrendsDropOff": false`: "",
		start + `, "funnelTrendsDropOff": true`:  "",
	} {
		at := insighttest.Node[*funnels.ActorsQuery](t, `{"kind": "FunnelsActorsQuery", "source": {"kind": "FunnelsQuery",
			"series": [{"event": "a"}, {"event": "b"}], "funnelsFilter": {"funnelVizType": "trends"}}`+fields+`}`)
		_, err := funnels.Actors(at.Source, at, insighttest.World())
		got := ""
		if err != nil {
			got = insighttest.Mistake(t, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("mistake with %s (-want +got):\n%s", fields, diff)
		}
	}
}
