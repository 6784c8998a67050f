package endpoints

import (
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// TestBreakdownOf: an override gives the value of a breakdown by a filter of its type, which is that of events if there is none, and of its groups.
func TestBreakdownOf(t *testing.T) {
	for breakdown, overrides := range map[string]map[string]bool{
		`"breakdown_type": "event"`: {
			``: true, `"type": "event", `: true, `"type": "person", `: false,
		},
		`"breakdown_type": "person"`: {
			``: false, `"type": "event", `: false, `"type": "person", `: true,
		},
		`"breakdown_type": "group", "breakdown_group_type_index": 1`: {
			``: false, `"type": "group", `: false, `"type": "group", "group_type_index": 0, `: false, `"type": "group", "group_type_index": 1, `: true,
		},
	} {
		node, err := compiler.Parse([]byte(`{"kind": "TrendsQuery", "series": [{"event": "a"}], "breakdownFilter": {"breakdown": "plan", ` + breakdown + `}}`))
		if err != nil {
			t.Fatal(err)
		}
		insight, ok := node.(query.Insight)
		if !ok {
			t.Fatalf("%T is no insight", node)
		}
		for filter, want := range overrides {
			name, value, same := breakdownOf(insight, []byte(`{"properties": [{`+filter+`"key": "plan", "value": "pro"}]}`))
			if given := name == "plan" && value == "pro" && same; given != want || !want && name != "" {
				t.Errorf("%s: the filter {%s} gives %q %v, %t", breakdown, filter, name, value, same)
			}
		}
	}
}
