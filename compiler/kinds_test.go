package compiler

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// TestKinds checks what users of the table of kinds rely on.
func TestKinds(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for i := range kinds {
		k := &kinds[i]
		t.Run(k.Name, func(t *testing.T) {
			if seen[k.Name] {
				t.Error("two rows have this name")
			}
			seen[k.Name] = true
			node := leastOf(t, k)
			if KindOf(node) != k {
				t.Errorf("it reads a %s", node.Kind())
			}
			q, isInsight := node.(query.Insight)
			if isInsight != k.Insight {
				t.Errorf("the row says insight: %t; the node is a %T", k.Insight, node)
			}
			if _, isHogQL := node.(*query.HogQL); isHogQL != k.HogQL {
				t.Errorf("the row says HogQL: %t; the node is a %T", k.HogQL, node)
			}
			if !isInsight {
				return
			}
			product := k.Actors != nil // otherwise web analytics: lists treat them as JSON, and there are no people behind their numbers
			if (k.ListName != "") != product || k.Endpoint != product || (k.people != nil) != product {
				t.Errorf("asks for actors: %t; is called %q in lists; endpoints can run it: %t", product, k.ListName, k.Endpoint)
			}
			if k.build == nil || k.form == nil || k.table == nil || !query.Wraps(k.Wrapper) {
				t.Error("the row of an insight kind is not full")
			}
			if k.Form(q).Type == "" {
				t.Error("the results have no form")
			}
			if rows, err := k.Table(q, []byte("[]")); err != nil || len(rows) == 0 {
				t.Errorf("no results make the table %q, %v", rows, err)
			}
		})
	}
}

var required = regexp.MustCompile(`\.(\w+)\n  Field required`)

// leastOf returns a query of a kind with only the fields that it requires, as found from its reader's mistakes.
func leastOf(t *testing.T, k *Kind) query.Node {
	t.Helper()
	values := map[string]any{
		"query": "select 1", "language": "hogQL", "series": []any{}, "select": []any{}, "properties": []any{}, "breakdownBy": "Page", "source": map[string]any{"kind": sourceOf(k), "series": []any{}},
		"funnelCorrelationType": "events", "startPosition": 0, "endPosition": 0, "group_type_index": 0,
	}
	if strings.HasPrefix(k.Name, "FunnelCorrelation") { // a node over a node over a funnel
		node := map[string]any{"kind": "FunnelsActorsQuery", "source": map[string]any{"kind": "FunnelsQuery", "series": []any{}}}
		if k.Drills {
			node = map[string]any{"kind": "FunnelCorrelationQuery", "funnelCorrelationType": "events", "source": node}
		}
		values["source"] = node
	}
	if k.Name == "InsightActorsQueryOptions" { // a node over a drill-down
		values["source"] = map[string]any{"kind": "InsightActorsQuery", "source": values["source"]}
	}
	q := map[string]any{"kind": k.Name}
	for range 5 {
		raw, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		node, err := Parse(raw)
		if err == nil {
			return node
		}
		missing := required.FindAllStringSubmatch(err.Error(), -1)
		if missing == nil {
			t.Fatal(err)
		}
		for _, field := range missing {
			q[field[1]] = map[string]any{}
			if value, ok := values[field[1]]; ok {
				q[field[1]] = value
			}
		}
	}
	t.Fatalf("it cannot be read: %v", q)
	return nil
}

// sourceOf returns a kind of insight that a kind of drill-down can be about.
func sourceOf(k *Kind) string {
	if own := strings.Replace(k.Name, "ActorsQuery", "Query", 1); byName[own] != nil {
		return own
	}
	return "TrendsQuery"
}
