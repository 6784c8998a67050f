package compiler_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// TestMentions checks the names that queries of each kind look for, with their places.
func TestMentions(t *testing.T) {
	t.Parallel()
	sql := func(text string) string { return fmt.Sprintf(`{"kind": "HogQLQuery", "query": %q}`, text) }
	tests := []struct{ name, in, want string }{
		{"a comparison", sql("select 1 from events where event = 'a'"), "event a at 35"},
		{"a comparison from the right, of an alias", sql("select 1 from events e where 'a' = e.event"), "event a at 29"},
		{"a set", sql("select countIf(event in ('a', 'b', 'a')) from events"), "event a at 25, event b at 30"},
		{"an array", sql("select countIf(event in ['a', 'b']) from events"), "event a at 25, event b at 30"},
		{"a subquery that reads events", sql("select n from (select count() as n from events where event = 'a')"), "event a at 61"},
		{"what is not equal", sql("select 1 from events where event != 'a' and event like 'b%'"), ""},
		{"a computed event", sql("select 1 from (select lower(event) as event from events) where event = 'a'"), ""},
		{"an alias that hides the event", sql("select 'a' as event from events where event = 'a'"), ""},
		{"a CTE that hides events", sql("with events as (select 'a' as event) select 1 from events where event = 'a'"), ""},
		{"a placeholder", `{"kind": "HogQLQuery", "query": "select 1 from events where event in {names}", "values": {"names": ["a", "b"]}}`, "event a at 36, event b at 36"},
		{
			"properties", sql("select properties.a, person.properties.b, group_0.properties.c, properties.a from events"),
			"event property a at 18, person property b at 39, group property c at 61",
		},
		{"a query that does not compile", sql("select properties.a from nothing"), ""},
		{"a query that does not parse", sql("select"), ""},
		{
			"a trend", `{"kind": "TrendsQuery", "series": [
				{"kind": "EventsNode", "event": "a", "math": "sum", "math_property": "m", "properties": [{"type": "person", "key": "p", "value": "1"}]},
				{"kind": "EventsNode", "event": null}, {"kind": "EventsNode", "event": "a"}],
				"properties": [{"type": "event", "key": "q", "operator": "is_set"}, {"type": "hogql", "key": "1 = 1"}],
				"breakdownFilter": {"breakdowns": [{"property": "b", "type": "event"}]}}`,
			"event property q in properties.0.key, event a in series.0.event, event property m in series.0.math_property, person property p in series.0.properties.0.key, " +
				"event property b in breakdownFilter.breakdowns.0.property",
		},
		{
			"a retention", `{"kind": "RetentionQuery", "retentionFilter": {"targetEntity": {"id": "a", "type": "events"}, "returningEntity": {"id": "b", "type": "events"}}}`,
			"event a in retentionFilter.targetEntity.id, event b in retentionFilter.returningEntity.id",
		},
		{
			"steps of a list of events", `{"kind": "EventsQuery", "select": ["event"], "actionSteps": [{}, {"event": "a", "properties": [{"type": "event", "key": "q", "value": "x"}]}]}`,
			"event a in actionSteps.1.event, event property q in actionSteps.1.properties.0.key",
		},
		{"a list of events", `{"kind": "EventsQuery", "select": ["event"], "event": "a", "properties": [{"type": "event", "key": "q", "operator": "is_set"}]}`, "event a in event, event property q in properties.0.key"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			mentions, err := compiler.Mentions(mustRead(t, tt.in), surveyEnv())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range mentions {
				what := map[schema.PropertyScope]string{
					schema.NoProperties: "event", schema.EventProperty: "event property", schema.PersonProperty: "person property", schema.GroupProperty: "group property",
				}[m.Key.Scope]
				where := fmt.Sprintf("at %d", m.At.Start)
				if m.Attr != "" {
					where = "in " + m.Attr
				}
				got = append(got, what+" "+m.Name+" "+where)
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("mentions (-want +got):\n%s", diff)
			}
		})
	}
}

// TestLimitsAndRangesAreWarnedOf checks the warnings that need no data.
func TestLimitsAndRangesAreWarnedOf(t *testing.T) {
	t.Parallel()
	const lowered, reversed = "A query returns at most 50000 rows: the limit was lowered to that", "The range of time ends before it begins, so there is nothing in it"
	for in, want := range map[string]string{
		`{"kind": "HogQLQuery", "query": "select 1 limit 50000"}`:                                                                                                             "",
		`{"kind": "HogQLQuery", "query": "select 1 limit 50001"}`:                                                                                                             lowered,
		`{"kind": "HogQLQuery", "query": "select 1 from (select 1 limit 60000)"}`:                                                                                             "",
		`{"kind": "EventsQuery", "select": ["event"], "limit": 50001}`:                                                                                                        lowered,
		`{"kind": "EventsQuery", "select": ["event"], "after": "2024-02-01", "before": "2024-01-01"}`:                                                                         reversed,
		`{"kind": "EventsQuery", "select": ["event"], "after": "2024-01-01", "before": "2024-02-01"}`:                                                                         "",
		`{"kind": "EventsQuery", "select": ["event"], "after": "all", "before": "2024-02-01"}`:                                                                                "",
		`{"kind": "HogQLQuery", "query": "select 1 from events where {filters}", "filters": {"dateRange": {"date_from": "-1d", "date_to": "-7d"}}}`:                           reversed,
		`{"kind": "HogQLQuery", "query": "select 1 from events where {filters} limit 50001", "filters": {"dateRange": {"date_from": "2024-02-01", "date_to": "2024-01-01"}}}`: lowered + ", " + reversed,
	} {
		node := mustRead(t, in)
		var got []string
		for _, w := range append(compiler.Lowered(node, surveyEnv()), compiler.Reversed(node, surveyEnv())...) {
			got = append(got, w.Message)
		}
		if diff := cmp.Diff(want, strings.Join(got, ", ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", in, diff)
		}
	}
}

// TestUnseen words a warning of each kind.
func TestUnseen(t *testing.T) {
	t.Parallel()
	const text = "select 1 from events where event = 'sing up'"
	event := compiler.Mention{Name: "sing up", At: diag.Span{Start: 35, End: 44}}
	from, to, fix := 35, 44, "'sign up'"
	want := compiler.Warning{Notice: compiler.Notice{
		Message: "No event named 'sing up' has been seen in this project. Did you mean 'sign up'?", Start: &from, End: &to, Fix: &fix,
	}}
	if diff := cmp.Diff(want, compiler.Unseen(&event, text, []string{"log in", "sign up"})); diff != "" {
		t.Errorf("of an event (-want +got):\n%s", diff)
	}
	attr := "properties.0.key"
	property := compiler.Mention{Name: "plan", Key: schema.PropertyKey{Scope: schema.PersonProperty, Name: "plan"}, Attr: attr}
	want = compiler.Warning{Notice: compiler.Notice{Message: "No person of this project has the property 'plan'."}, Attr: &attr}
	if diff := cmp.Diff(want, compiler.Unseen(&property, "", nil)); diff != "" {
		t.Errorf("of a property (-want +got):\n%s", diff)
	}
}

// TestExistenceCompiles compiles the existence query for each kind of name, whatever the name is.
func TestExistenceCompiles(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "it's", "a.b", "", "`", "p%c", "$x", "\\"} {
		for _, scope := range []schema.PropertyScope{schema.NoProperties, schema.EventProperty, schema.PersonProperty, schema.GroupProperty} {
			q := compiler.Existence([]compiler.Mention{{Name: name, Key: schema.PropertyKey{Scope: scope, Group: 1, Name: name}}})
			if _, err := compiler.Compile(q, surveyEnv()); err != nil {
				t.Errorf("%q of scope %v: %v", name, scope, err)
			}
		}
	}
}

func surveyEnv() compiler.Env {
	return compiler.Env{
		Database: &schema.Database{Project: 7, Location: time.UTC, Layout: schema.NativeLayout(), GroupTypes: map[string]int{"organization": 0}},
		Now:      time.Date(2024, 6, 15, 12, 0, 0, 0, time.UTC),
	}
}

func mustRead(t *testing.T, text string) query.Node {
	t.Helper()
	node, err := compiler.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return node
}
