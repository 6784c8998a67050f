package e2e_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMetadataNotices reads the notices on properties whose types were learned by the import.
func TestMetadataNotices(t *testing.T) {
	c := newProject(t)
	importLines(t, c, `{"event": "buy", "distinct_id": "a", "timestamp": "2024-01-01T00:00:00Z", "properties": {"browser": "Chrome", "price": 3}}`+"\n"+
		`{"type": "person", "distinct_ids": ["a"], "properties": {"email": "a@b.test"}}`+"\n")
	answer := c.Do(t, http.MethodPost, "query/", map[string]any{"query": map[string]any{
		"kind": "HogQLMetadata", "language": "hogQL", "debug": true,
		"query": "select properties.browser, properties.price, person.properties.email, properties.prise from events where timestamp > now()",
	}})
	if answer.Status != http.StatusOK || answer.Header.Get("Cache-Control") != "private, no-cache" || answer.Header.Get("Cache-Status") != "" {
		t.Fatalf("answered %d %v: %s", answer.Status, answer.Header, answer.Raw)
	}
	messages := func(field string) []string {
		var out []string
		list, _ := answer.Body[field].([]any)
		for _, item := range list {
			notice, _ := item.(map[string]any)
			message, _ := notice["message"].(string)
			out = append(out, message)
		}
		return out
	}
	want := []string{
		"Event property 'browser' is of type 'String'. This property is read from its own part of a JSON column ⚡️.",
		"Event property 'price' is of type 'Float'. This property is read from its own part of a JSON column ⚡️.",
		"Person property 'email' is of type 'String'. This property is read from its own part of a JSON column ⚡️.",
	}
	if diff := cmp.Diff(want, messages("notices")); diff != "" {
		t.Errorf("notices (-want +got):\n%s", diff)
	}
	want = []string{"Event property 'prise' has no definition in this project. Did you mean 'price'?"}
	if diff := cmp.Diff(want, messages("warnings")); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// TestDatabaseSchema reads one field of everything that it lists.
func TestDatabaseSchema(t *testing.T) {
	c := newProject(t)
	answer := c.Do(t, http.MethodPost, "query/", map[string]any{"query": map[string]any{"kind": "DatabaseSchemaQuery"}})
	tables, _ := answer.Body["tables"].(map[string]any)
	if answer.Status != http.StatusOK || tables["events"] == nil {
		t.Fatalf("answered %d: %s", answer.Status, answer.Raw)
	}
	if at, later := strings.Index(string(answer.Raw), `"uuid":{`), strings.Index(string(answer.Raw), `"event":{`); at < 0 || at > later {
		t.Errorf("the fields are not in the order of the table: %s", answer.Raw)
	}
	plain := []string{"string", "integer", "float", "boolean", "datetime", "date", "json", "array"}
	for name, table := range tables {
		fields, _ := table.(map[string]any)["fields"].(map[string]any)
		var columns []string
		for _, field := range fields {
			f, _ := field.(map[string]any)
			if typ, _ := f["type"].(string); slices.Contains(plain, typ) {
				columns = append(columns, f["hogql_value"].(string))
			}
		}
		if len(columns) == 0 {
			t.Errorf("%s has no columns: %v", name, fields)
			continue
		}
		c.Query(t, "select "+strings.Join(columns, ", ")+" from "+name+" limit 1")
	}
}
