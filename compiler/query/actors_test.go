package query_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
)

// TestActorsCanonical checks what distinguishes two lists of actors, by the JSON that the cache key is made from.
func TestActorsCanonical(t *testing.T) {
	t.Parallel()
	const lifecycle, sticky = `"source": {"kind": "LifecycleQuery", "series": [{}]}`, `"source": {"kind": "StickinessQuery", "series": [{}]}`
	tests := []struct{ name, in, want string }{
		{"all people", `{"kind": "ActorsQuery", "tags": {"scene": "x"}, "limit": 3}`, `{"kind":"ActorsQuery","node":{"limit":3}}`},
		{
			"of an insight", `{"kind": "DataTableNode", "source": {"kind": "ActorsQuery", "select": ["actor"], "source": {"kind": "InsightActorsQuery", "day": "2020-01-01",
				"status": "new", "series": 0, "breakdown": ["a", 1], "compare": "previous", "includeRecordings": true, ` + lifecycle + `}}}`,
			`{"kind":"ActorsQuery","node":{"select":["actor"]},"source":{"kind":"InsightActorsQuery","node":{"includeRecordings":true,"day":"2020-01-01",` +
				`"status":"new","series":0,"breakdown":["a",1],"compare":"previous"},"source":{"kind":"LifecycleQuery","node":{"series":[{"kind":"EventsNode"}],"interval":"day"}}}}`,
		},
		{
			"of a stickiness, by the older name", `{"kind": "InsightActorsQuery", "day": 3, ` + sticky + `}`,
			`{"kind":"StickinessActorsQuery","node":{"day":3},"source":{"kind":"StickinessQuery","node":{"series":[{"kind":"EventsNode"}],"interval":"day"}}}`,
		},
		{
			"of a stickiness", `{"kind": "StickinessActorsQuery", "day": "3", "operator": "gte", ` + sticky + `}`,
			`{"kind":"StickinessActorsQuery","node":{"day":3,"operator":"gte"},"source":{"kind":"StickinessQuery","node":{"series":[{"kind":"EventsNode"}],"interval":"day"}}}`,
		},
		{
			"of a funnel, which has one period", `{"kind": "FunnelsActorsQuery", "funnelStep": 1, "compare": "current", "source": {"kind": "FunnelsQuery", "series": [{}, {}]}}`,
			`{"kind":"FunnelsActorsQuery","node":{"funnelStep":1},"source":`,
		},
		{
			"of a query", `{"kind": "ActorsQuery", "source": {"kind": "HogQLQuery", "query": "select 1 as id"}}`,
			`{"kind":"ActorsQuery","node":{},"source":`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := string(canonical(t, tt.in)); !strings.HasPrefix(got, tt.want) {
				t.Errorf("canonical (-want +got):\n%s", cmp.Diff(tt.want, got))
			}
		})
	}
}

func TestActorsMistakes(t *testing.T) {
	t.Parallel()
	const sticky = `"source": {"kind": "StickinessQuery", "series": [{}]}`
	tests := []struct{ name, in, attr, want string }{
		{"a field too many", `{"kind": "ActorsQuery", "where": []}`, "where", "query.ActorsQuery.where\n  Extra inputs are not permitted [type=extra_forbidden]"},
		{
			"an insight for a source", `{"kind": "ActorsQuery", ` + sticky + `}`, "source",
			"query.ActorsQuery.source\n  Input tag 'StickinessQuery' found using 'kind' does not match any of the expected tags: ",
		},
		{
			"a correlation of nothing", `{"kind": "ActorsQuery", "source": {"kind": "FunnelCorrelationActorsQuery"}}`, "source.source",
			"query.ActorsQuery.source.FunnelCorrelationActorsQuery.source\n  Field required [type=missing]",
		},
		{"no insight", `{"kind": "InsightActorsQuery"}`, "source", "query.InsightActorsQuery.source\n  Field required [type=missing]"},
		{
			"the insight of another kind", `{"kind": "StickinessActorsQuery", "source": {"kind": "LifecycleQuery", "series": []}}`, "source",
			"query.StickinessActorsQuery.source\n  Input tag 'LifecycleQuery' found using 'kind' does not match any of the expected tags: 'StickinessQuery'",
		},
		{
			"an unknown status", `{"kind": "InsightActorsQuery", "status": "old", "source": {"kind": "LifecycleQuery", "series": []}}`, "status",
			"query.InsightActorsQuery.status\n  Input should be 'new', 'returning', 'resurrecting' or 'dormant' [type=enum]",
		},
		{"half a day", `{"kind": "StickinessActorsQuery", "day": 0, ` + sticky + `}`, "day", "query.StickinessActorsQuery.day\n  Input should be a number of intervals, from 1 [type=int_type]"},
		{"a series below none", `{"kind": "StickinessActorsQuery", "series": -1, ` + sticky + `}`, "series", "query.StickinessActorsQuery.series\n  Input should be greater than or equal to 0"},
		{
			"an invalid value", `{"kind": "InsightActorsQuery", "breakdown": [{}], "source": {"kind": "TrendsQuery", "series": []}}`, "breakdown.0",
			"query.InsightActorsQuery.breakdown.0\n  Input should be a valid string or integer [type=string_type]",
		},
		{
			"a funnel of the period before", `{"kind": "FunnelsActorsQuery", "compare": "previous", "source": {"kind": "FunnelsQuery", "series": [{}, {}]}}`, "compare",
			"A funnel is not compared with a previous period",
		},
		{
			"a funnel of the period before, in a correlation", `{"kind": "FunnelCorrelationQuery", "funnelCorrelationType": "events", "source":
				{"kind": "FunnelsActorsQuery", "compare": "previous", "source": {"kind": "FunnelsQuery", "series": [{}, {}]}}}`, "source.compare",
			"A funnel is not compared with a previous period",
		},
		{
			"a mistake in the insight", `{"kind": "ActorsQuery", "source": {"kind": "InsightActorsQuery", "source": {"kind": "TrendsQuery", "series": [{"math": "mode"}]}}}`,
			"source.source.series.0.math", "query.ActorsQuery.source.InsightActorsQuery.source.TrendsQuery.series.0.math\n  Input should be 'total', ",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			insighttest.CheckMistake(t, tt.in, tt.attr, tt.want)
		})
	}
}

// TestFunnelActorsWithoutPeriod checks that null for the period of a drill-down into a funnel is taken wherever the node may be.
func TestFunnelActorsWithoutPeriod(t *testing.T) {
	t.Parallel()
	const actors = `{"kind": "FunnelsActorsQuery", "compare": null, "source": {"kind": "FunnelsQuery", "series": [{}, {}]}}`
	for _, in := range []string{
		actors,
		`{"kind": "FunnelCorrelationQuery", "funnelCorrelationType": "events", "source": ` + actors + `}`,
		`{"kind": "InsightActorsQueryOptions", "source": ` + actors + `}`,
	} {
		canonical(t, in)
	}
}
