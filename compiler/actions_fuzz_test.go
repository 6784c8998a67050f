package compiler_test

import (
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// FuzzAction reads the filters of a step, and uses its action in every way: the result is SQL, or a mistake of the author.
func FuzzAction(f *testing.F) {
	f.Add(`[{"type": "event", "key": "a", "value": ["b", 1], "operator": "is_not"}]`, "div > a.b", "https://%", "contains")
	f.Add(`[{"type": "hogql", "key": "(properties.n as event) = 'x' and not matchesAction(2)"}]`, "", "a+", "regex")
	f.Add(`[{"type": "hogql", "key": "matchesAction('one')"}]`, "[x=\"y\"]", "\\", "exact")
	f.Add(`{"type": "OR", "values": [{"type": "cohort", "key": "id", "value": 5}, {"type": "element", "key": "text", "value": "x"}]}`, "a:nth-child(2)", "", "")
	nodes := []string{
		`{"kind": "HogQLQuery", "query": "select matchesAction('one'), countIf(not matchesAction(1)) from events e join persons p on p.id = e.person_id"}`,
		`{"kind": "TrendsQuery", "series": [{"kind": "ActionsNode", "id": 1, "math": "first_time_for_user"}, {"kind": "GroupNode", "nodes": [{"kind": "ActionsNode", "id": 1}, {"event": "a"}]}]}`,
		`{"kind": "EventsQuery", "select": ["*"], "actionId": 1}`,
		`{"kind": "EventsQuery", "select": ["*"], "actionSteps": [{"event": "$autocapture", "selector": "a", "text": "b"}, {"properties": [{"key": "k", "value": 1}]}]}`,
	}
	f.Fuzz(func(t *testing.T, properties, selector, text, matching string) {
		if len(properties)+len(selector)+len(text) > 2000 {
			return
		}
		filters, err := query.ParseActionProperties([]byte(properties))
		if err != nil {
			if compiler.Mistakes(err) == nil {
				t.Fatal(err)
			}
			return
		}
		env := usesEnv(t)
		how := query.Matching(matching)
		env.Actions = query.NewActions([]query.Action{{ID: 1, Name: "one", Steps: []query.ActionStep{
			{Event: "$autocapture", Selector: selector, Text: &text, TextMatching: how, Href: &text, HrefMatching: how, TagName: &text},
			{URL: text, URLMatching: how, Properties: filters},
		}}, {ID: 2, Name: text, Steps: []query.ActionStep{{Event: text}}}})
		for _, node := range nodes {
			if _, err := compiler.Compile(mustRead(t, node), env); err != nil && compiler.Mistakes(err) == nil {
				t.Errorf("%s: %v", node, err)
			}
			compiler.UsesOf(mustRead(t, node), env)
		}
	})
}
