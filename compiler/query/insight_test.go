package query_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/stickiness"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/trends"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

func TestInsightMistakes(t *testing.T) {
	t.Parallel()
	lifecycle := func(fields string) string { return `{"kind": "LifecycleQuery", "series": [{}], ` + fields + `}` }
	stickiness := func(fields string) string { return `{"kind": "StickinessQuery", "series": [{}], ` + fields + `}` }
	tests := []struct{ name, in, attr, want string }{
		{"no series", `{"kind": "LifecycleQuery"}`, "series", "query.LifecycleQuery.series\n  Field required [type=missing]"},
		{"series null", `{"kind": "StickinessQuery", "series": null}`, "series", "query.StickinessQuery.series\n  Field required [type=missing]"},
		{
			"an unknown field", lifecycle(`"breakdownFilter": {}`), "breakdownFilter",
			"query.LifecycleQuery.breakdownFilter\n  Extra inputs are not permitted [type=extra_forbidden]",
		},
		{
			"an unknown interval", lifecycle(`"interval": "decade"`), "interval",
			"query.LifecycleQuery.interval\n  Input should be 'second', 'minute', 'hour', 'day', 'week', 'month', 'quarter' or 'year' [type=enum]",
		},
		{
			"an unknown status", lifecycle(`"lifecycleFilter": {"toggledLifecycles": ["new", "old"]}`), "lifecycleFilter.toggledLifecycles.1",
			"query.LifecycleQuery.lifecycleFilter.toggledLifecycles.1\n  Input should be 'new', 'returning', 'resurrecting' or 'dormant' [type=enum]",
		},
		{
			"a group type that cannot be", lifecycle(`"aggregation_group_type_index": 5`), "aggregation_group_type_index",
			"query.LifecycleQuery.aggregation_group_type_index\n  Input should be from 0 to 4 [type=value_error]",
		},
		{
			"more than all people", lifecycle(`"samplingFactor": 1.5`), "samplingFactor",
			"query.LifecycleQuery.samplingFactor\n  Input should be from 0 to 1 [type=value_error]",
		},
		{
			"an unknown operator, deep down", lifecycle(`"properties": {"type": "AND", "values": [{"type": "OR", "values": [{"key": "a", "operator": "near"}]}]}`),
			"properties.values.0.values.0.operator",
			"query.LifecycleQuery.properties.values.0.values.0.operator\n  Input should be 'exact', 'is_not', 'icontains'",
		},
		{
			"an unknown way to join", lifecycle(`"properties": {"type": "XOR", "values": []}`), "properties.type",
			"query.LifecycleQuery.properties.type\n  Input should be 'AND' or 'OR' [type=enum]",
		},
		{
			"too many filters", lifecycle(`"properties": [` + strings.Repeat(`{},`, 500) + `{}]`), "properties.499",
			"query.LifecycleQuery.properties.499\n  There are more than 500 property filters [type=value_error]",
		},
		{
			"no weekday", lifecycle(`"dateRange": {"daysOfWeek": [8]}`), "dateRange.daysOfWeek.0",
			"query.LifecycleQuery.dateRange.daysOfWeek.0\n  Input should be an integer from 1 to 7 [type=value_error]",
		},
		{
			"unknown math", `{"kind": "StickinessQuery", "series": [{}, {"event": "a", "math": "mode"}]}`, "series.1.math",
			"query.StickinessQuery.series.1.math\n  Input should be 'total', 'dau'",
		},
		{
			"a table of a warehouse", `{"kind": "StickinessQuery", "series": [{"kind": "DataWarehouseNode"}]}`, "series.0.kind",
			"query.StickinessQuery.series.0.kind\n  Input should be 'EventsNode', 'ActionsNode' or 'GroupNode' [type=enum]",
		},
		{
			"a group in a group", `{"kind": "StickinessQuery", "series": [{"kind": "GroupNode", "nodes": [{"kind": "GroupNode"}]}]}`, "series.0.nodes.0.kind",
			"query.StickinessQuery.series.0.nodes.0.kind\n  A GroupNode cannot hold another one [type=value_error]",
		},
		{
			"an amount in another currency", `{"kind": "TrendsQuery", "series": [{"math": "sum", "math_property": "p", "math_property_revenue_currency": {"static": "EUR"}}]}`,
			"series.0.math_property_revenue_currency", "Conversion of currencies is not supported",
		},
		{"no columns", `{"kind": "EventsQuery"}`, "select", "query.EventsQuery.select\n  Field required [type=missing]"},
		{
			"a column that is not text, and a limit that is not a number", `{"kind": "EventsQuery", "select": ["event", 1], "limit": "x"}`, "select.1",
			"query.EventsQuery.select.1\n  Input should be a valid string [type=string_type]\n" +
				"query.EventsQuery.limit\n  Input should be a valid integer [type=int_type]",
		},
		{
			"a criterion without a value", stickiness(`"stickinessFilter": {"stickinessCriteria": {"operator": "lt"}}`),
			"stickinessFilter.stickinessCriteria.value", "query.StickinessQuery.stickinessFilter.stickinessCriteria.value\n  Field required [type=missing]\n" +
				"query.StickinessQuery.stickinessFilter.stickinessCriteria.operator\n  Input should be 'gte', 'lte' or 'exact' [type=enum]",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			insighttest.CheckMistake(t, tt.in, tt.attr, tt.want)
		})
	}
}

func TestInsightCanonical(t *testing.T) {
	t.Parallel()
	base := `{"kind": "StickinessQuery", "series": [{"event": "a"}], "stickinessFilter": {}}`
	tests := []sameness{
		{"defaults and labels", `{"kind": "StickinessQuery", "interval": "day", "tags": {"scene": "s"}, "properties": [{}], "compareFilter": {"compare": false},
			"stickinessFilter": {"computedAs": "non_cumulative", "showLegend": true}, "series": [{"kind": "EventsNode", "event": "a", "version": 2}]}`, true},
		{"in a wrapper", `{"kind": "InsightVizNode", "source": ` + base + `}`, true},
		{"a group of which an empty one is a member", base[:len(base)-1] + `, "properties": {"type": "OR", "values": [{"type": "AND", "values": []}, {"key": "k", "value": 1}]}}`, true},
		{"a group of which a placeholder is a member", base[:len(base)-1] + `, "properties": [{"type": "OR", "values": [{"key": "k", "value": 1}, {}]}]}`, true},
		{"another event", strings.Replace(base, `"a"`, `"b"`, 1), false},
		{"all events", strings.Replace(base, `"a"`, `null`, 1), false},
		{"an event without a name", strings.Replace(base, `"a"`, `""`, 1), false},
		{"cumulative", strings.Replace(base, `{}`, `{"computedAs": "cumulative"}`, 1), false},
		{"a filter", base[:len(base)-1] + `, "properties": [{"key": "k", "value": 1}]}`, false},
		{"a filter next to an empty group", base[:len(base)-1] + `, "properties": {"type": "AND", "values": [{"type": "OR", "values": []}, {"key": "k", "value": 1}]}}`, false},
		{"compared", base[:len(base)-1] + `, "compareFilter": {"compare": true}}`, false},
		{"explicit dates", base[:len(base)-1] + `, "dateRange": {"explicitDate": true}}`, false},
		{"another kind", `{"kind": "LifecycleQuery", "series": [{"event": "a"}]}`, false},
	}
	checkCanonical(t, base, tests)
}

func TestTrendCanonical(t *testing.T) {
	t.Parallel()
	base := `{"kind": "TrendsQuery", "series": [{"kind": "GroupNode", "nodes": [{"event": "a"}, {"event": "b"}]}]}`
	checkCanonical(t, base, []sameness{
		{"a limit of a group", strings.Replace(base, `"nodes"`, `"limit": 5, "orderBy": ["timestamp"], "nodes"`, 1), true},
		{"a filter of heatmaps", base[:len(base)-1] + `, "calendarHeatmapFilter": {}}`, true},
		{"a filter of heatmaps with its field", base[:len(base)-1] + `, "calendarHeatmapFilter": {"bucketBySessionStart": true}}`, true},
		{"a period to compare with, but no comparison", base[:len(base)-1] + `, "compareFilter": {"compare_to": "-1w"}}`, true},
		{"another interval", base[:len(base)-1] + `, "interval": "week"}`, false},
	})
}

func TestOverrides(t *testing.T) {
	t.Parallel()
	q := insighttest.Node[*stickiness.Query](t, `{"kind": "StickinessQuery", "series": [{"event": "a"}], "properties": [{"key": "k"}],
		"dateRange": {"date_from": "2020-01-01", "date_to": "2020-02-01", "explicitDate": true}, "compareFilter": {"compare": true}}`)
	before := string(q.Canonical())
	tests := []struct{ name, overrides, want string }{
		{"nothing", `{}`, before},
		{
			"either date replaces both", `{"date_from": "-7d"}`,
			strings.Replace(before, `{"date_from":"2020-01-01","date_to":"2020-02-01","explicitDate":true}`, `{"date_from":"-7d"}`, 1),
		},
		{
			"all time is not compared", `{"date_from": "all"}`,
			strings.NewReplacer(`{"date_from":"2020-01-01","date_to":"2020-02-01","explicitDate":true}`, `{"date_from":"all"}`, `,"compare":{}`, ``).Replace(before),
		},
		{
			"properties are added", `{"properties": [{"key": "l"}]}`,
			strings.Replace(before, `"properties":{"all":[{"filter":{"Type":"event","Key":"k","Operator":"","Value":null,"Group":0}}]}`,
				`"properties":{"all":[{"all":[{"filter":{"Type":"event","Key":"k","Operator":"","Value":null,"Group":0}}]},`+
					`{"all":[{"filter":{"Type":"event","Key":"l","Operator":"","Value":null,"Group":0}}]}]}`, 1),
		},
		{"the interval", `{"interval": "week"}`, strings.Replace(before, `"interval":"day"`, `"interval":"week"`, 1)},
		{"a breakdown where there is none", `{"breakdown_filter": {"breakdown": "x"}}`, before},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			overrides, err := query.ParseOverrides([]byte(tt.overrides))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(overrides.Apply(q).Canonical())); diff != "" {
				t.Errorf("canonical form (-want +got):\n%s", diff)
			}
			if after := string(q.Canonical()); after != before {
				t.Errorf("the original became %s", after)
			}
		})
	}
	_, err := query.ParseOverrides([]byte(`{"date_form": "-7d"}`))
	want := "filters_override.date_form: JSON parse error - 1 validation error for QueryRequest\nfilters_override.date_form\n  Extra inputs are not permitted [type=extra_forbidden]: did you mean 'date_from'?"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestRunOverrides: a run reports the first mistake with its field.
func TestRunOverrides(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{"date_from": "-7d"}`:                                      "",
		`{"date_form": "-7d", "interval": "eon"}`:                   "filters_override.interval: Input should be 'second', 'minute', 'hour', 'day', 'week', 'month', 'quarter' or 'year'",
		`{"properties": [{"key": "a"}, {"type": "x", "key": "b"}]}`: "filters_override.properties.1.type: Input tag 'x' found using 'type' does not match any of the expected tags: 'event', 'person', 'group', 'session', 'cohort', 'behavioral', 'element', 'event_metadata', 'person_metadata', 'feature', 'hogql'",
		`5`: "filters_override: Input should be a valid dictionary",
	} {
		over, err := query.ParseRunOverrides([]byte(raw))
		switch {
		case want == "" && (err != nil || over.DateFrom != "-7d"):
			t.Errorf("%s gives %v, %v", raw, over, err)
		case want != "" && (err == nil || err.Error() != want):
			t.Errorf("%s gives %v, want %s", raw, err, want)
		}
	}
}

// TestPathCleaning: the flag is next to the properties and applies to each of them.
func TestPathCleaning(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		filter string
		want   map[string]bool // by property
	}{
		{`"breakdown": "$pathname", "breakdown_path_cleaning": true`, map[string]bool{"$pathname": true}},
		{`"breakdown": "$pathname", "breakdown_path_cleaning": false`, map[string]bool{"$pathname": false}},
		{`"breakdown": ["a", "b"], "breakdown_path_cleaning": true`, map[string]bool{"a": true, "b": true}},
		{`"breakdown": ["a", "b"], "breakdown_path_cleaning": false`, map[string]bool{"a": false, "b": false}},
		{`"breakdowns": [{"property": "a"}, {"property": "b"}], "breakdown_path_cleaning": true`, map[string]bool{"a": true, "b": true}},
		{`"breakdowns": [{"property": "a"}, {"property": "b"}], "breakdown_path_cleaning": false`, map[string]bool{"a": false, "b": false}},
	} {
		q := insighttest.Node[*trends.Query](t, `{"kind": "TrendsQuery", "series": [], "breakdownFilter": {`+tt.filter+`}}`)
		got := map[string]bool{}
		for _, field := range q.Breakdowns.Fields {
			got[field.Property] = field.CleanPath
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: properties that are cleaned (-want +got):\n%s", tt.filter, diff)
		}
	}
}
