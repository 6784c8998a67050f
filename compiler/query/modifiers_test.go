package query_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
)

func TestModifiers(t *testing.T) {
	t.Parallel()
	const (
		one = "JSON parse error - 1 validation error for QueryRequest\nquery.HogQLQuery.modifiers."
		two = "JSON parse error - 2 validation errors for QueryRequest\nquery.HogQLQuery.modifiers."
	)
	tests := []struct{ name, in, want string }{
		{"known", `{"personsOnEventsMode": "disabled", "bounceRateDurationSeconds": 12.5, "sessionTableVersion": "auto", "debug": false}`, ""},
		{"how PostHog computes", `{"sessionIdPushdown": true, "materializedColumnsOptimizationMode": "optimized", "typeAwareCastSimplification": true,
			"pushDownPredicates": true, "mergeFederatedAggregateJoins": true, "parserMode": "rust_py"}`, ""},
		{"as PostHog answers them", `{"inlineCohortCalculation": "auto", "cookielessTrafficIsRegular": true, "customBotDefinitions": [], "anotherOne": null}`, ""},
		{"no bot definitions", `{"customBotDefinitions": null}`, ""},
		{"bot definitions", `{"customBotDefinitions": [{"id": "1"}]}`, "Bot definitions of your own are not supported."},
		{"not a list of bots", `{"customBotDefinitions": "x"}`, one + "customBotDefinitions\n  Input should be a valid list [type=list_type]"},
		{"when to compute cohorts", `{"inlineCohortCalculation": "on"}`, one + "inlineCohortCalculation\n  Input should be 'off', 'auto' or 'always' [type=enum]"},
		{"what changes results", `{"funnelUseClientCaptureOrder": true}`, one + "funnelUseClientCaptureOrder\n  Extra inputs are not permitted [type=extra_forbidden]"},
		{"unknown mode", `{"personsOnEventsMode": "off"}`, one + "personsOnEventsMode\n  Input should be 'disabled', " +
			"'person_id_no_override_properties_on_events', 'person_id_override_properties_on_events' or " +
			"'person_id_override_properties_joined' [type=enum]"},
		{"empty mode", `{"personsJoinMode": ""}`, one + "personsJoinMode\n  Input should be 'inner' or 'left' [type=enum]"},
		{"mode of another type", `{"personsJoinMode": 1}`, one + "personsJoinMode\n  Input should be a valid string [type=string_type]"},
		{"no time", `{"bounceRateDurationSeconds": 0}`, one + "bounceRateDurationSeconds\n  Input should be from 1 to 120 [type=value_error]"},
		{"text for a number", `{"bounceRateDurationSeconds": "5"}`, one + "bounceRateDurationSeconds\n  Input should be a valid number [type=float_type]"},
		{"a rule", `{"customChannelTypeRules": [{"id": "1", "channel_type": "X", "combiner": "OR", "items":
			[{"id": "a", "key": "url", "op": "icontains", "value": ["x", "y"]}, {"key": "hostname", "op": "is_set", "value": null}]}]}`, ""},
		{
			"a rule without operator, and of numbers", `{"customChannelTypeRules": [{"channel_type": "X", "combiner": "AND", "items": [{"key": "url", "value": [1]}]}]}`,
			two + "customChannelTypeRules.0.items.0.op\n  Field required [type=missing]\nquery.HogQLQuery.modifiers." +
				"customChannelTypeRules.0.items.0.value\n  Input should be a valid string or a list of them [type=string_type]",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := compiler.Parse([]byte(`{"kind": "HogQLQuery", "query": "select 1", "modifiers": ` + tt.in + `}`))
			got := ""
			if mistake, ok := errors.AsType[*diag.Error](err); ok {
				got = mistake.Detail
			} else if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("mistakes (-want +got):\n%s", diff)
			}
		})
	}
}
