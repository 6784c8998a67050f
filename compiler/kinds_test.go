package compiler

import (
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// TestKinds holds the rows against what everybody who asks them relies on.
func TestKinds(t *testing.T) {
	t.Parallel()
	least := map[string]string{
		"HogQLQuery": `"query": "select 1"`, "HogQLMetadata": `"language": "hogQL", "query": "select 1"`, "RetentionQuery": `"retentionFilter": {}`,
		"EventsQuery": `"select": []`, "ActorsQuery": `"select": []`, "DatabaseSchemaQuery": `"version": 1`, "PathsQuery": `"version": 1`,
	}
	seen := map[string]bool{}
	for i := range kinds {
		k := &kinds[i]
		t.Run(k.Name, func(t *testing.T) {
			if seen[k.Name] {
				t.Error("two rows have this name")
			}
			seen[k.Name] = true
			fields := least[k.Name]
			switch {
			case k.Drills:
				fields = `"source": {"kind": "` + sourceOf(k) + `", "series": []}`
			case fields == "":
				fields = `"series": []`
			}
			node, err := Parse([]byte(`{"kind": "` + k.Name + `", ` + fields + `}`))
			if err != nil {
				t.Fatal(err)
			}
			if KindOf(node) != k {
				t.Errorf("it reads a %s", node.Kind())
			}
			q, isInsight := node.(query.Insight)
			if isInsight != k.Insight {
				t.Errorf("the row says insight: %t; the node is a %T", k.Insight, node)
			}
			if !isInsight {
				return
			}
			if k.build == nil || k.people == nil || k.form == nil || k.table == nil || k.Actors == nil || !query.Wraps(k.Wrapper) {
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

// sourceOf is a kind of insight that a kind of drill-down can ask about.
func sourceOf(k *Kind) string {
	if own := strings.Replace(k.Name, "ActorsQuery", "Query", 1); byName[own] != nil {
		return own
	}
	return "TrendsQuery"
}
