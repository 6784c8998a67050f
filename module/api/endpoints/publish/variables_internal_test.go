package publish

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

func TestVariablesOfQueryWithoutAny(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"left out", `{"query":"select 1"}`, `{"query":"select 1"}`},
		{"null stays", `{"query":"select 1","variables":null}`, `{"query":"select 1","variables":null}`},
		{"unused ones go", `{"query":"select 1","variables":{}}`, `{"query":"select 1"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var fields map[string]json.RawMessage
			if err := json.Unmarshal([]byte(tt.in), &fields); err != nil {
				t.Fatal(err)
			}
			if _, err := (&Publisher{}).fillVariables(&query.HogQL{Query: "select 1"}, fields); err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(fields)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}
