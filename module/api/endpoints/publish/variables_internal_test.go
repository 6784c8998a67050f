package publish

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestVariablesWithoutDefinitions publishes queries in a project that has no variables.
func TestVariablesWithoutDefinitions(t *testing.T) {
	t.Parallel()
	const id = "0199a3c0-0000-7000-8000-000000000000"
	tests := []struct{ name, query, variables, want, mistake string }{
		{name: "left out", query: "select 1", want: `{"kind":"HogQLQuery","query":"select 1"}`},
		{name: "null stays", query: "select 1", variables: `null`, want: `{"kind":"HogQLQuery","query":"select 1","variables":null}`},
		{name: "an empty object goes", query: "select 1", variables: `{}`, want: `{"kind":"HogQLQuery","query":"select 1"}`},
		{
			name: "an unused one goes, whose definition was deleted", query: "select 1",
			variables: `{"` + id + `":{"variableId":"` + id + `","code_name":"old"}}`, want: `{"kind":"HogQLQuery","query":"select 1"}`,
		},
		{
			name: "an unused one goes, whose id is no UUID", query: "select 1",
			variables: `{"old":{"variableId":"old","code_name":"old"}}`, want: `{"kind":"HogQLQuery","query":"select 1"}`,
		},
		{
			name: "a used one, whose definition was deleted", query: "select {variables.old}",
			variables: `{"` + id + `":{"variableId":"` + id + `","code_name":"old"}}`, mistake: "400 invalid_input: Variable ID(s) not found: " + id + ".",
		},
		{
			name: "a used one, whose id is no UUID", query: "select {variables.old}",
			variables: `{"old":{"variableId":"old","code_name":"old"}}`, mistake: "400 invalid_input: Variable ID(s) not valid UUIDs: old.",
		},
		{
			name: "a used one that is not given", query: "select {variables.old}",
			mistake: "400 invalid_input: Query references undefined variable(s): old. See insight_variables/, where variables are made.",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fields := map[string]any{"kind": "HogQLQuery", "query": tt.query}
			if tt.variables != "" {
				fields["variables"] = json.RawMessage(tt.variables)
			}
			raw, err := json.Marshal(fields)
			if err != nil {
				t.Fatal(err)
			}
			var got, mistake string
			p := &Publisher{snap: &registry.Snapshot{}, project: &registry.Project{ID: 1}}
			if checked, err := p.Read(raw); err != nil {
				mistake = err.Error()
			} else {
				got = string(checked.Raw)
			}
			if diff := cmp.Diff([]string{tt.want, tt.mistake}, []string{got, mistake}); diff != "" {
				t.Errorf("query and mistake (-want +got):\n%s", diff)
			}
		})
	}
}
