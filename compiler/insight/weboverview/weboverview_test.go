package weboverview_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/weboverview"
)

func build(t *testing.T, fields string) (*insight.Built, error) {
	t.Helper()
	return weboverview.Build(insighttest.Node[*weboverview.Query](t, `{"kind": "WebOverviewQuery", "properties": []`+fields+`}`), insighttest.World())
}

func TestItems(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, fields, row, want string }{
		{
			"one period", ``, `[null, 2, 3, 2, 5.5, 0.25]`,
			`[{"key": "visitors", "kind": "unit", "isIncreaseBad": null, "value": 2, "previous": null, "changeFromPreviousPct": null},
			{"key": "views", "kind": "unit", "isIncreaseBad": null, "value": 3, "previous": null, "changeFromPreviousPct": null},
			{"key": "sessions", "kind": "unit", "isIncreaseBad": null, "value": 2, "previous": null, "changeFromPreviousPct": null},
			{"key": "session duration", "kind": "duration_s", "isIncreaseBad": null, "value": 5.5, "previous": null, "changeFromPreviousPct": null},
			{"key": "bounce rate", "kind": "percentage", "isIncreaseBad": true, "value": 25, "previous": null, "changeFromPreviousPct": null}]`,
		},
		{
			"two periods: there is no growth from nothing", `, "compareFilter": {"compare": true}`, `[null, 3, 0, 2, null, 1, 2, 0, 8, 4, null]`,
			`[{"key": "visitors", "kind": "unit", "isIncreaseBad": null, "value": 3, "previous": 2, "changeFromPreviousPct": 50},
			{"key": "views", "kind": "unit", "isIncreaseBad": null, "value": 0, "previous": 0, "changeFromPreviousPct": null},
			{"key": "sessions", "kind": "unit", "isIncreaseBad": null, "value": 2, "previous": 8, "changeFromPreviousPct": -75},
			{"key": "session duration", "kind": "duration_s", "isIncreaseBad": null, "value": null, "previous": 4, "changeFromPreviousPct": null},
			{"key": "bounce rate", "kind": "percentage", "isIncreaseBad": true, "value": 100, "previous": null, "changeFromPreviousPct": null}]`,
		},
		{
			"a goal, of a tenth of the people, with revenue",
			`, "conversionGoal": {"customEventName": "paid"}, "includeRevenue": true, "sampling": {"enabled": true, "forceSamplingRate": {"numerator": 1, "denominator": 10}}`,
			`[null, 4, 6, 1]`,
			`[{"key": "visitors", "kind": "unit", "isIncreaseBad": null, "value": 40, "previous": null, "changeFromPreviousPct": null},
			{"key": "total conversions", "kind": "unit", "isIncreaseBad": null, "value": 60, "previous": null, "changeFromPreviousPct": null},
			{"key": "unique conversions", "kind": "unit", "isIncreaseBad": null, "value": 10, "previous": null, "changeFromPreviousPct": null},
			{"key": "conversion rate", "kind": "percentage", "isIncreaseBad": null, "value": 25, "previous": null, "changeFromPreviousPct": null},
			{"key": "conversion revenue", "kind": "currency", "isIncreaseBad": null, "value": null, "previous": null, "changeFromPreviousPct": null}]`,
		},
		{
			"two thirds of the people, in whole numbers",
			`, "sampling": {"enabled": true, "forceSamplingRate": {"numerator": 2, "denominator": 3}}`, `[null, 3, 4, 1, 5.5, 0.25]`,
			`[{"key": "visitors", "kind": "unit", "isIncreaseBad": null, "value": 4, "previous": null, "changeFromPreviousPct": null},
			{"key": "views", "kind": "unit", "isIncreaseBad": null, "value": 6, "previous": null, "changeFromPreviousPct": null},
			{"key": "sessions", "kind": "unit", "isIncreaseBad": null, "value": 2, "previous": null, "changeFromPreviousPct": null},
			{"key": "session duration", "kind": "duration_s", "isIncreaseBad": null, "value": 5.5, "previous": null, "changeFromPreviousPct": null},
			{"key": "bounce rate", "kind": "percentage", "isIncreaseBad": true, "value": 25, "previous": null, "changeFromPreviousPct": null}]`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			built, err := build(t, tt.fields)
			if err != nil {
				t.Fatal(err)
			}
			answer := insighttest.Shape(t, built, tt.row)
			if diff := cmp.Diff(insighttest.JSON(t, tt.want), insighttest.JSON(t, string(answer.Results))); diff != "" {
				t.Errorf("items (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDates(t *testing.T) {
	t.Parallel()
	for fields, want := range map[string]string{
		``: `{"dateFrom": "2020-01-02 00:00:00", "dateTo": "2020-01-09 23:59:59", "samplingRate": {"numerator": 1, "denominator": null}, "usedPreAggregatedTables": false}`,
		`, "interval": "hour", "dateRange": {"date_from": "-24h"}, "useWebAnalyticsPrecompute": true`: `{"dateFrom": "2020-01-08 15:00:00", "dateTo": "2020-01-09 15:59:59",
			"samplingRate": {"numerator": 1, "denominator": null}, "usedPreAggregatedTables": false}`,
		`, "dateRange": {"date_from": "all", "date_to": "2020-01-05"}, "samplingFactor": 0.5`: `{"dateFrom": "2019-12-31 00:00:00", "dateTo": "2020-01-05 23:59:59",
			"samplingRate": {"numerator": 0.5, "denominator": null}, "usedPreAggregatedTables": false}`,
	} {
		built, err := build(t, fields)
		if err != nil {
			t.Fatal(err)
		}
		answer := insighttest.Shape(t, built, `[1577836799, 1, 1, 1, 1, 1]`)
		if diff := cmp.Diff(insighttest.JSON(t, want), insighttest.JSON(t, string(answer.More))); diff != "" {
			t.Errorf("%s: further members (-want +got):\n%s", fields, diff)
		}
	}
}

// TestForeignRows checks that rows that cannot be from the query are an error, not an answer.
func TestForeignRows(t *testing.T) {
	t.Parallel()
	built, err := build(t, ``)
	if err != nil {
		t.Fatal(err)
	}
	for _, rows := range [][]string{nil, {`[null, 1]`}, {`[]`}, {`["x"]`}, {`[null, 1, 1, 1, 1, 1]`, `[null, 1, 1, 1, 1, 1]`}, {`[null, 1, 1, 1, 1, 1, 1]`}} {
		raw := make([][]byte, len(rows))
		for i, row := range rows {
			raw[i] = []byte(row)
		}
		if answer, err := built.Shape(slices.Values(raw)); err == nil {
			t.Errorf("rows %s give %s", rows, answer.Results)
		}
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, fields, want string }{
		{"an action", `, "conversionGoal": {"actionId": 5}`, "conversionGoal.actionId: Action ID 5 does not exist!"},
		{"a bad date", `, "dateRange": {"date_to": "soon"}`, "dateRange.date_to: The date 'soon' is neither ISO 8601 nor relative, such as -7d"},
		{
			"a comparison with a date", `, "compareFilter": {"compare": true, "compare_to": "2019-01-01"}`,
			"compareFilter.compare_to: compare_to '2019-01-01' is not a relative date (want, for example, -1w)",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := build(t, tt.fields)
			if diff := cmp.Diff(tt.want, insighttest.Mistake(t, err)); diff != "" {
				t.Errorf("mistake (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadMistakes(t *testing.T) {
	t.Parallel()
	node := func(fields string) string { return `{"kind": "WebOverviewQuery", "properties": []` + fields + `}` }
	tests := []struct{ name, in, attr, want string }{
		{"no properties", `{"kind": "WebOverviewQuery"}`, "properties", "query.WebOverviewQuery.properties\n  Field required [type=missing]"},
		{
			"a filter of groups", `{"kind": "WebOverviewQuery", "properties": {"type": "AND", "values": [{"type": "group", "key": "k", "group_type_index": 0}]}}`,
			"properties.values.0.type",
			"query.WebOverviewQuery.properties.values.0.type\n  Input should be 'event', 'person', 'session' or 'cohort' [type=enum]",
		},
		{"a goal of nothing", node(`, "conversionGoal": {}`), "conversionGoal.actionId", "query.WebOverviewQuery.conversionGoal.actionId\n  Field required [type=missing]"},
		{
			"two goals", node(`, "conversionGoal": {"actionId": 1, "customEventName": "a"}`), "conversionGoal",
			"query.WebOverviewQuery.conversionGoal\n  Input should have actionId or customEventName, not both [type=value_error]",
		},
		{
			"more than all people", node(`, "sampling": {"forceSamplingRate": {"numerator": 2}}`), "sampling.forceSamplingRate",
			"query.WebOverviewQuery.sampling.forceSamplingRate\n  Input should be greater than 0 and at most 1 [type=value_error]",
		},
		{
			"groups", node(`, "aggregation_group_type_index": 0`), "aggregation_group_type_index",
			"query.WebOverviewQuery.aggregation_group_type_index\n  Web analytics counts people, not groups [type=value_error]",
		},
		{
			"an order by two columns", node(`, "orderBy": ["Views", "DESC", "Visitors"]`), "orderBy",
			"query.WebOverviewQuery.orderBy\n  Input should be a column and 'ASC' or 'DESC' [type=value_error]",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			insighttest.CheckMistake(t, tt.in, tt.attr, tt.want)
		})
	}
}
