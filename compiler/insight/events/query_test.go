package events_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight/events"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

func TestRead(t *testing.T) {
	t.Parallel()
	got := insighttest.Node[*events.Query](t, `{"kind": "DataTableNode", "full": true, "source": {"kind": "EventsQuery", "select": ["event", "count()"], "where": ["a > 1"],
		"event": "e", "personId": "p", "after": "-7d", "before": null, "orderBy": ["event"], "limit": 5, "offset": 10, "filterTestAccounts": true,
		"properties": [{"key": "k", "operator": "is_set"}], "fixedProperties": [{}]}}`)
	event := "e"
	want := &events.Query{
		At: "source", Select: []string{"event", "count()"}, Where: []string{"a > 1"}, Event: &event, Person: "p", After: "-7d",
		OrderBy: []string{"event"}, Limit: 5, Offset: 10, FilterTestAccounts: true,
		Properties: &query.Condition{At: "source.properties", All: []query.Condition{{
			At: "source.properties.0", Filter: &query.Property{Type: "event", Key: "k", Operator: "is_set"},
		}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
