package correlation_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/insight"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/correlation"
	"github.com/caddy-analytics/caddy-analytics/compiler/insight/insighttest"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

const (
	funnel = `{"kind": "FunnelsQuery", "series": [{"event": "start"}, {"event": "paid"}]}`
	source = `"source": {"kind": "FunnelsActorsQuery", "source": ` + funnel + `}`
)

func build(t *testing.T, fields string) (*insight.Built, error) {
	t.Helper()
	return correlation.Build(insighttest.Node[*correlation.Query](t, `{"kind": "FunnelCorrelationQuery", `+fields+`}`), insighttest.World())
}

func TestResults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, fields string
		rows         []string
		want         string
	}{
		{
			"events", `"funnelCorrelationType": "events"`,
			[]string{`[0, "", "", "", 10, 10, 0]`, `[1, "good", "", "", 5, 0, 1]`, `[1, "bad", "", "", 0, 5, 2]`, `[1, "even", "", "", 3, 3, 2]`},
			`{"events":[` +
				`{"event":{"event":"good","properties":{},"elements":[]},"success_count":5,"failure_count":0,"odds_ratio":11,"correlation_type":"success"},` +
				`{"event":{"event":"bad","properties":{},"elements":[]},"success_count":0,"failure_count":5,"odds_ratio":0.09090909090909091,"correlation_type":"failure"},` +
				`{"event":{"event":"even","properties":{},"elements":[]},"success_count":3,"failure_count":3,"odds_ratio":1,"correlation_type":"failure"}],"skewed":false}`,
		},
		{
			"properties of actors", `"funnelCorrelationType": "properties", "funnelCorrelationNames": ["plan"]`,
			[]string{`[0, "", "", "", 2, 21, 0]`, `[1, "", "plan", "a::b", 1, 1, 1]`, `[1, "", "plan", "", 1, 1, 1]`},
			`{"events":[` +
				`{"event":{"event":"plan::a::b","properties":{},"elements":[]},"success_count":1,"failure_count":1,"odds_ratio":10.5,"correlation_type":"success"},` +
				`{"event":{"event":"plan::","properties":{},"elements":[]},"success_count":1,"failure_count":1,"odds_ratio":10.5,"correlation_type":"success"}],"skewed":true}`,
		},
		{
			"elements", `"funnelCorrelationType": "event_with_properties", "funnelCorrelationEventNames": ["$autocapture"]`,
			[]string{`[0, "", "", "", 3, 3, 0]`, `[1, "$autocapture", "elements_chain", "click__~~__a:href=\"/b::c\"", 3, 0, 1]`},
			`{"events":[{"event":{"event":"$autocapture::elements_chain::click__~~__a:href=\"/b::c\"","properties":{"$event_type":"click"},"elements":[` +
				`{"text":null,"tag_name":"a","attr_class":null,"href":"/b::c","attr_id":null,"nth_child":null,"nth_of_type":null,"attributes":{},"order":0}]},` +
				`"success_count":3,"failure_count":0,"odds_ratio":16,"correlation_type":"success"}],"skewed":false}`,
		},
		{"as many as ten times more is not too many", `"funnelCorrelationType": "events"`, []string{`[0, "", "", "", 2, 20, 0]`}, `{"events":[],"skewed":false}`},
		{"nobody came to the end", `"funnelCorrelationType": "events"`, []string{`[0, "", "", "", 0, 3, 0]`}, `{"events":[],"skewed":true}`},
		{"nobody came", `"funnelCorrelationType": "events"`, nil, `{"events":[],"skewed":true}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			built, err := build(t, tt.fields+`, `+source)
			if err != nil {
				t.Fatal(err)
			}
			answer := insighttest.Shape(t, built, tt.rows...)
			if diff := cmp.Diff(tt.want, string(answer.Results)); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	const events = `"funnelCorrelationType": "events", `
	of := func(funnel, fields string) string {
		return events + `"source": {"kind": "FunnelsActorsQuery"` + fields + `, "source": ` + funnel + `}`
	}
	for _, tt := range []struct{ name, fields, want string }{
		{"no property", `"funnelCorrelationType": "properties", ` + source, "funnelCorrelationNames: Property Correlation expects atleast one Property to run correlation on"},
		{"no event", `"funnelCorrelationType": "event_with_properties", ` + source, "funnelCorrelationEventNames: Event Property Correlation expects atleast one event name to run correlation on"},
		{"a funnel of one step", of(`{"kind": "FunnelsQuery", "series": [{}]}`, ``), "source.source.series: Funnels require at least two steps."},
		{"an unknown step", of(funnel, `, "funnelStep": 3`), "source.funnelStep: The funnel has no step 3: steps count from 1, and those that were not reached from -2 down"},
		{"an unknown breakdown", of(funnel, `, "funnelStepBreakdown": "x"`), "source.funnelStepBreakdown: The funnel has no breakdown"},
		{
			"actors that are texts", of(`{"kind": "FunnelsQuery", "series": [{}, {}], "funnelsFilter": {"funnelAggregateByHogQL": "event"}}`, ``),
			"source.source.funnelsFilter.funnelAggregateByHogQL: This funnel counts neither people nor groups, so its actors cannot be told apart by what they did or are",
		},
		{"an unknown action", of(`{"kind": "FunnelsQuery", "series": [{}, {"kind": "ActionsNode", "id": 5}]}`, ``), "source.source.series.1.id: Action ID 5 does not exist!"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := build(t, tt.fields)
			if diff := cmp.Diff(tt.want, insighttest.Mistake(t, err)); diff != "" {
				t.Errorf("mistake (-want +got):\n%s", diff)
			}
		})
	}
}

func TestActorsMistakes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, of, fields, want string }{
		{"no event", `"events"`, ``, "funnelCorrelationPersonEntity: No entity for persons specified"},
		{"no value", `"properties"`, ``, "funnelCorrelationPropertyValues: Property Correlation expects atleast one Property to get persons for"},
		{
			"an invalid filter", `"events"`, `, "funnelCorrelationPersonEntity": {"event": "a", "properties": [{"type": "hogql", "key": "nothing"}]}`,
			"funnelCorrelationPersonEntity.properties.0.key: Unable to resolve field: nothing",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			q := insighttest.Node[*correlation.ActorsQuery](t, `{"kind": "FunnelCorrelationActorsQuery"`+tt.fields+
				`, "source": {"kind": "FunnelCorrelationQuery", "funnelCorrelationType": `+tt.of+`, `+source+`}}`)
			_, err := correlation.Actors(q, insighttest.World())
			if diff := cmp.Diff(tt.want, insighttest.Mistake(t, err)); diff != "" {
				t.Errorf("mistake (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	names, err := json.Marshal(slices.Repeat([]string{"a"}, 101))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, in, attr, want string }{
		{"nothing", `{"kind": "FunnelCorrelationQuery"}`, "source", "query.FunnelCorrelationQuery.source\n  Field required"},
		{
			"another type", `{"kind": "FunnelCorrelationQuery", "funnelCorrelationType": "people", ` + source + `}`, "funnelCorrelationType",
			"query.FunnelCorrelationQuery.funnelCorrelationType\n  Input should be 'events', 'properties' or 'event_with_properties'",
		},
		{
			"too many names", `{"kind": "FunnelCorrelationQuery", "funnelCorrelationType": "properties", "funnelCorrelationNames": ` + string(names) + `, ` + source + `}`,
			"funnelCorrelationNames", "query.FunnelCorrelationQuery.funnelCorrelationNames\n  List should have at most 100 items after validation, not 101",
		},
		{
			"a funnel alone", `{"kind": "FunnelCorrelationQuery", "funnelCorrelationType": "events", "source": ` + funnel + `}`, "source",
			"query.FunnelCorrelationQuery.source\n  Input tag 'FunnelsQuery' found using 'kind' does not match any of the expected tags: 'FunnelsActorsQuery'",
		},
		{
			"actors of a funnel", `{"kind": "FunnelCorrelationActorsQuery", ` + source + `}`, "source",
			"query.FunnelCorrelationActorsQuery.source\n  Input tag 'FunnelsActorsQuery' found using 'kind' does not match any of the expected tags: 'FunnelCorrelationQuery'",
		},
		{
			"another field", `{"kind": "FunnelCorrelationQuery", "funnelCorrelationType": "events", "limit": 3, ` + source + `}`, "limit",
			"query.FunnelCorrelationQuery.limit\n  Extra inputs are not permitted",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			insighttest.CheckMistake(t, tt.in, tt.attr, tt.want)
		})
	}
}

// TestNames checks which names a query looks for, for warnings about names that nothing has.
func TestNames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, fields, want string }{
		{"events", `"funnelCorrelationType": "events", "funnelCorrelationEventNames": ["a"], ` + source, `[]`},
		{
			"properties of people", `"funnelCorrelationType": "properties", "funnelCorrelationNames": ["$all", "plan"], ` + source,
			`[{plan person 0 funnelCorrelationNames.1}]`,
		},
		{
			"properties of groups", `"funnelCorrelationType": "properties", "funnelCorrelationNames": ["plan"], ` + strings.Replace(source, `"series"`, `"aggregation_group_type_index": 1, "series"`, 1),
			`[{plan group 1 funnelCorrelationNames.0}]`,
		},
		{
			"properties of events", `"funnelCorrelationType": "event_with_properties", "funnelCorrelationEventNames": ["a"], ` + source,
			`[{a  0 funnelCorrelationEventNames.0}]`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			q := insighttest.Node[*correlation.Query](t, `{"kind": "FunnelCorrelationQuery", `+tt.fields+`}`)
			if diff := cmp.Diff(tt.want, fmt.Sprint(q.Names())); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
}

// TestModifiers checks that inner modifiers override outer ones.
func TestModifiers(t *testing.T) {
	t.Parallel()
	q := insighttest.Node[query.Node](t, `{
		"kind": "FunnelCorrelationActorsQuery", "modifiers": {"personsOnEventsMode": "disabled", "bounceRateDurationSeconds": 7},
		"source": {"kind": "FunnelCorrelationQuery", "funnelCorrelationType": "events", "modifiers": {"personsOnEventsMode": "person_id_override_properties_joined"}, `+source+`}}`)
	m := query.ModifiersOf(q)
	if m.Persons == nil || *m.Persons != schema.PersonModes["person_id_override_properties_joined"] || m.BounceSeconds == nil || *m.BounceSeconds != 7 {
		t.Errorf("the modifiers are %+v", m)
	}
}

// TestForeignRows checks that rows that cannot be from the query are an error, not an answer.
func TestForeignRows(t *testing.T) {
	t.Parallel()
	built, err := build(t, `"funnelCorrelationType": "events", `+source)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{`[1, "a", "", "", 1, 1]`, `["a", "a", "", "", 1, 1, 0]`, `{}`} {
		if answer, err := built.Shape(slices.Values([][]byte{[]byte(row)})); err == nil {
			t.Errorf("row %s gives %s", row, answer.Results)
		}
	}
}
