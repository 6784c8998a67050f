package compiler_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler"
)

func TestHeldTables(t *testing.T) {
	t.Parallel()
	filtered := func(property string) string {
		return `{"kind": "HogQLQuery", "query": "select count() from events where {filters}", "filters": {"properties": [` + property + `]}}`
	}
	for _, tt := range []struct{ name, node, want string }{
		{"none", `{"kind": "HogQLQuery", "query": "select 1 from events"}`, ""},
		{"in FROM", `{"kind": "HogQLQuery", "query": "select 1 from system.teams, query_log, system.teams t"}`, "query_log system.teams"},
		{"in PostHog's namespace", `{"kind": "HogQLQuery", "query": "select 1 from posthog.query_log"}`, "query_log"},
		{"not in that namespace", `{"kind": "HogQLQuery", "query": "select 1 from posthog.system.teams"}`, ""},
		{"in a subquery", `{"kind": "HogQLQuery", "query": "select (select 1 from system.alerts)"}`, "system.alerts"},
		{"in a filter", filtered(`{"type": "hogql", "key": "(select count() from system.alerts) > 0"}`), "system.alerts"},
		{
			"in a filter of a filter", filtered(`{"type": "behavioral", "value": "performed_event", "key": "a", "event_type": "events", "time_value": 30, "time_interval": "day",
				"event_filters": [{"type": "hogql", "key": "(select count() from query_log) > 0"}]}`), "query_log",
		},
		{"in another kind of filter", filtered(`{"type": "event", "key": "(select count() from system.alerts) > 0", "value": "x"}`), ""},
		{"in a text with a mistake", `{"kind": "HogQLQuery", "query": "select from system.alerts"}`, ""},
		{"in another kind", `{"kind": "TrendsQuery", "series": [{"kind": "EventsNode", "event": "a", "properties": [{"type": "hogql", "key": "(select 1 from system.alerts)"}]}]}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			node, err := compiler.Parse([]byte(tt.node))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, strings.Join(compiler.HeldTables(node), " ")); diff != "" {
				t.Errorf("tables (-want +got):\n%s", diff)
			}
		})
	}
}
