package query_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// TestPathCleaningOrder: the rules of a project are applied in the order of their field order.
func TestPathCleaningOrder(t *testing.T) {
	t.Parallel()
	got, err := query.ParsePathCleaning([]byte(`[{"regex": "c", "order": 2}, {"regex": "b", "order": 1}, {"regex": "a"}, {"regex": "d", "order": 1}]`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]query.PathCleaning{{Regex: "a"}, {Regex: "b"}, {Regex: "d"}, {Regex: "c"}}, got); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}
