package insights

import (
	"encoding/json"
	"testing"
)

func TestHoldsHogQL(t *testing.T) {
	trends := func(more string) string {
		return `{"kind": "InsightVizNode", "source": {"kind": "TrendsQuery", "series": [{"kind": "EventsNode", "event": "e"` + more + `}]}}`
	}
	for name, tt := range map[string]struct {
		query string
		want  bool
	}{
		"none":            {`null`, false},
		"an insight":      {trends(""), false},
		"an empty field":  {trends(`, "math_hogql": null`), false},
		"a formula":       {trends(`, "math": "hogql", "math_hogql": "count()"`), true},
		"a filter":        {trends(`, "properties": [{"type": "hogql", "key": "1 = 1"}]`), true},
		"escaped":         {trends(`, "properties": [{"type": "hog\u0071l", "key": "1 = 1"}]`), true},
		"HogQL":           {`{"kind": "DataVisualizationNode", "source": {"kind": "HogQLQuery", "query": "select 1"}}`, true},
		"a list":          {`{"kind": "DataTableNode", "source": {"kind": "EventsQuery", "select": ["count()"]}}`, true},
		"not understood":  {`{"kind": "TrendsQuery", "series": 1}`, true},
		"not even a kind": {`{}`, true},
	} {
		if got := holdsHogQL(json.RawMessage(tt.query)); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
