package query_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

const paid = `"type": "behavioral", "key": "paid", "event_type": "events", "value": "performed_event"`

func TestBehavioralFilterMistakes(t *testing.T) {
	t.Parallel()
	const month = `, "time_value": 30, "time_interval": "day"`
	tests := []struct{ name, filter, want string }{
		{"no time", paid, "filters_override.properties.0: A behavioral filter needs a time: time_value and time_interval, or explicit_datetime"},
		{"half a time", paid + `, "time_value": 30`, "filters_override.properties.0: A behavioral filter needs a time: time_value and time_interval, or explicit_datetime"},
		{"an end alone", paid + month + `, "explicit_datetime_to": "2024-01-01"`, "filters_override.properties.0: A behavioral filter needs a time: time_value and time_interval, or explicit_datetime"},
		{"an unknown unit", paid + `, "time_value": 30, "time_interval": "hour"`, "filters_override.properties.0.time_interval: Input should be 'day', 'week', 'month' or 'year'"},
		{"a time too long", paid + `, "time_value": 100001, "time_interval": "day"`, "filters_override.properties.0.time_value: Input should be an integer from 1 to 100000"},
		{
			"a behavior of cohorts alone", strings.Replace(paid, "performed_event", "stopped_performing_event", 1) + month,
			"filters_override.properties.0.value: The behavior 'stopped_performing_event' cannot be asked for by a filter: use performed_event or " +
				"performed_event_multiple, or make a cohort with this behavior and filter by it",
		},
		{"no event", strings.Replace(paid, `"key": "paid", `, "", 1) + month, "filters_override.properties.0.key: Field required"},
		{"no kind of event", strings.Replace(paid, `"events"`, `"people"`, 1) + month, "filters_override.properties.0.event_type: Input should be 'events' or 'actions'"},
		{"an action by name", strings.Replace(paid, `"events"`, `"actions"`, 1) + month, "filters_override.properties.0.key: The key of an action is its number"},
		{
			"an unknown operator", strings.Replace(paid, "performed_event", "performed_event_multiple", 1) + month + `, "operator": "regex"`,
			"filters_override.properties.0.operator: Input should be 'gte', 'lte', 'gt', 'lt', 'eq' or 'exact'",
		},
		{
			"never", strings.Replace(paid, "performed_event", "performed_event_multiple", 1) + month + `, "operator": "lte", "operator_value": 0`,
			"filters_override.properties.0.operator_value: Input should be an integer from 1 to 100000",
		},
		{"behavior of behavior", paid + month + `, "event_filters": [{` + paid + month + `}]`, "filters_override.properties.0.event_filters.0.type: The events of a behavioral filter cannot be filtered by behavior"},
		{"an unknown field", paid + month + `, "seq_event": "x"`, "filters_override.properties.0.seq_event: Extra inputs are not permitted"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := query.ParseRunOverrides([]byte(`{"properties": [{` + tt.filter + `}]}`))
			if err == nil {
				t.Fatal("it is read")
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("mistake (-want +got):\n%s", diff)
			}
		})
	}
}

// TestBehavioralFilterTimes: a number without an operator means exactly that many, as in cohorts.
func TestBehavioralFilterTimes(t *testing.T) {
	t.Parallel()
	for fields, want := range map[string]string{
		``: "gte 1", `"operator": "lte"`: "lte 1", `"operator_value": null`: "gte 1",
		`"operator_value": 1`: "eq 1", `"operator_value": 3`: "eq 3", `"operator_value": "3"`: "eq 3", `"operator": null, "operator_value": 3`: "eq 3",
		`"operator": "exact", "operator_value": 3`: "eq 3", `"operator": "gt", "operator_value": 3`: "gt 3",
	} {
		if fields != "" {
			fields = ", " + fields
		}
		text := "{" + strings.Replace(paid, "performed_event", "performed_event_multiple", 1) + `, "time_value": 1, "time_interval": "week"` + fields + "}"
		v, err := query.Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		c, err := query.Filter(v.(map[string]any), "")
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		b := c.Filter.Behavior
		if got := b.Operator + " " + strconv.Itoa(b.Times); got != want {
			t.Errorf("%s asks for %s times, want %s", text, got, want)
		}
	}
}

// TestBehavioralFilterHoldsHogQL: an expression among the filters on its events counts as HogQL in the overrides.
func TestBehavioralFilterHoldsHogQL(t *testing.T) {
	t.Parallel()
	for filters, want := range map[string]bool{
		`[{"type": "hogql", "key": "1 = 1"}]`: true, `[{"type": "event", "key": "hogql", "value": "x"}]`: false,
	} {
		over, err := query.ParseOverrides([]byte(`{"properties": [{` + paid + `, "time_value": 1, "time_interval": "week", "event_filters": ` + filters + `}]}`))
		if err != nil {
			t.Fatal(err)
		}
		if over.HogQL() != want {
			t.Errorf("%s: HogQL is %t", filters, !want)
		}
	}
}

// TestBehavioralFilterOfActions: actions cannot have behavioral filters, through which they could refer to themselves.
func TestBehavioralFilterOfActions(t *testing.T) {
	t.Parallel()
	_, err := query.ParseActionProperties([]byte(`[{"type": "AND", "values": [{` + paid + `, "time_value": 1, "time_interval": "week"}]}]`))
	if err == nil || !strings.Contains(err.Error(), "The steps of an action cannot ask for behavior") {
		t.Errorf("error: %v", err)
	}
}
