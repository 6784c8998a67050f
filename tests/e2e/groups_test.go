package e2e_test

import (
	"maps"
	"net/http"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestGroupsQuery lists the groups of a type: all of them, those that match a search or a filter, in an order, and how many there are.
func TestGroupsQuery(t *testing.T) {
	c := newProject(t)
	importLines(t, c, `{"type": "group", "group_type": "company", "group_type_index": 0, "group_key": "c:1", "properties": {"name": "Acme", "plan": "pro", "seats": 9}, "created_at": "2024-01-01T00:00:00Z"}
{"type": "group", "group_type": "company", "group_type_index": 0, "group_key": "c:2", "properties": {"name": "Acme East", "plan": "free", "seats": 10}, "created_at": "2024-01-02T00:00:00Z"}
{"type": "group", "group_type": "company", "group_type_index": 0, "group_key": "acme:3", "properties": {"plan": "pro"}, "created_at": "2024-01-03T00:00:00Z"}
{"type": "group", "group_type": "company", "group_type_index": 0, "group_key": "c:4", "properties": {"name": "The Acme", "plan": "free"}, "created_at": "2024-01-04T00:00:00Z"}
{"type": "group", "group_type": "team", "group_type_index": 1, "group_key": "t:1", "properties": {"name": "Acme", "plan": "pro"}, "created_at": "2024-01-05T00:00:00Z"}
`)
	c.Server.MustCommand(t, nil, nil, "property", "set", "--project", strconv.FormatInt(c.Project, 10), "--type", "group", "--group-type-index", "0", "--name", "seats", "--as", "Numeric")
	name := func(name, key string) map[string]any { return map[string]any{"display_name": name, "key": key} }
	pro := []any{map[string]any{"type": "group", "group_type_index": 0, "key": "plan", "value": "pro"}}
	tests := []struct {
		name          string
		fields        map[string]any
		columns, want any
		more          bool
	}{
		{"all, the newest first", map[string]any{}, row("group_name"), []any{row(name("The Acme", "c:4")), row(name("acme:3", "acme:3")), row(name("Acme East", "c:2")), row(name("Acme", "c:1"))}, false},
		{
			"the best matches first",
			map[string]any{"search": "ACME", "select": []string{"key", "group_name", "key"}},
			row("key", "group_name"),
			[]any{row("c:1", name("Acme", "c:1")), row("acme:3", name("acme:3", "acme:3")), row("c:2", name("Acme East", "c:2")), row("c:4", name("The Acme", "c:4"))},
			false,
		},
		{"a search that is no pattern", map[string]any{"search": "%"}, row("group_name"), []any{}, false},
		{"a filter", map[string]any{"select": []string{"key"}, "properties": pro}, row("key"), []any{row("acme:3"), row("c:1")}, false},
		{"a number", map[string]any{"select": []string{"key"}, "properties": []any{map[string]any{"type": "group", "group_type_index": 0, "key": "seats", "operator": "gt", "value": 9}}}, row("key"), []any{row("c:2")}, false},
		{"an order", map[string]any{"select": []string{"key"}, "orderBy": []string{"properties.plan DESC", "group_name desc"}, "limit": 2, "offset": 1}, row("key"), []any{row("c:1"), row("c:4")}, true},
		{"a filter that names no type", map[string]any{"select": []string{"key"}, "properties": []any{map[string]any{"type": "group", "key": "plan", "value": "pro"}}}, row("key"), []any{row("acme:3"), row("c:1")}, false},
		{"numbers", map[string]any{"select": []string{"properties.seats"}, "orderBy": []string{"properties.seats DESC"}, "search": "c:"}, row("properties.seats"), []any{row(10.0), row(9.0), row(nil)}, false},
		{"hidden fields", map[string]any{"select": []string{"0 as index", "'x' as key", "group_name", "'y' as created_at"}, "group_type_index": 1}, row("0 as index", "'x' as key", "group_name", "'y' as created_at"), []any{row(0.0, "x", name("Acme", "t:1"), "y")}, false},
		{"counts", map[string]any{"select": []string{"properties.plan", "count()"}}, row("properties.plan", "count()"), []any{row("free", 2.0), row("pro", 2.0)}, false},
		{"another type", map[string]any{"group_type_index": 1}, row("group_name"), []any{row(name("Acme", "t:1"))}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			node := map[string]any{"kind": "GroupsQuery", "group_type_index": 0}
			maps.Copy(node, tt.fields)
			answer := c.Do(t, http.MethodPost, "query/", map[string]any{"query": map[string]any{"kind": "DataTableNode", "source": node}})
			if diff := cmp.Diff([]any{tt.columns, tt.want, tt.more}, []any{answer.Body["columns"], answer.Body["results"], answer.Body["hasMore"]}); diff != "" {
				t.Errorf("columns, results, hasMore (-want +got):\n%s\n%s", diff, answer.Raw)
			}
		})
	}
	for name, node := range map[string]map[string]any{
		"no type":            {"kind": "GroupsQuery"},
		"no such column":     {"kind": "GroupsQuery", "group_type_index": 0, "select": []string{"nothing"}},
		"all columns":        {"kind": "GroupsQuery", "group_type_index": 0, "select": []string{"group_name", "*"}},
		"a filter by events": {"kind": "GroupsQuery", "group_type_index": 0, "properties": []any{map[string]any{"type": "event", "key": "a", "value": "b"}}},
	} {
		if answer := c.Do(t, http.MethodPost, "query/", map[string]any{"query": node}); answer.Status != http.StatusBadRequest {
			t.Errorf("%s: %d %s, want a 400", name, answer.Status, answer.Raw)
		}
	}
}
