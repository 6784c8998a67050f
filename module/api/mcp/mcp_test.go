package mcp_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/compiler/taxonomy"
	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestPagesOfEvents: a page has at most 500 events, and says where the next one begins.
func TestPagesOfEvents(t *testing.T) {
	w := apitest.New(t)
	w.LoseClickHouse(t)
	asked := w.Asks(http.MethodPost, "/")
	p, err := result.PlanNode(w.Executor, &asked.Caller.Caller, taxonomy.Events(), result.Overrides{}, execution.RefreshBlocking)
	if err != nil {
		t.Fatal(err)
	}
	rows := make([]string, 501)
	for i := range rows {
		rows[i] = fmt.Sprintf(`["e%03d", "2024-03-01T00:00:00Z", "2024-03-02T00:00:00Z"]`, i)
	}
	w.Remember(t, p, time.Now(), rows...)
	for _, limit := range []string{"", `, "limit": 500`, `, "limit": 501`, `, "limit": -1`} {
		got := w.Send(t, http.MethodPost, "/api/projects/@current/mcp_tools/read_taxonomy/", `{"args": {"query": {"kind": "events"`+limit+`}}}`)
		content, _ := apitest.FieldOf(t, got, "content").(string)
		if want := "\ne499|2024-03-02T00:00:00Z\n\nThere are more rows than these 500: go on with the offset 500."; !strings.HasSuffix(content, want) || strings.Count(content, "\ne") != 500 {
			t.Errorf("the first page%s: %s", limit, got.Body)
		}
	}
	got := w.Send(t, http.MethodPost, "/api/projects/@current/mcp_tools/read_taxonomy/", `{"args": {"query": {"kind": "events", "offset": 500}}}`)
	if content := apitest.FieldOf(t, got, "content"); content != "event|last_seen_at\ne500|2024-03-02T00:00:00Z" {
		t.Errorf("the last page: %s", got.Body)
	}
}

// TestReadTaxonomy: all kinds have pages and short values, and a mistake in the arguments is told to the language model.
func TestReadTaxonomy(t *testing.T) {
	w := apitest.New(t)
	w.LoseClickHouse(t)
	for _, name := range []string{"a", "b", "c"} {
		if err := w.Registry.SetProperty(t.Context(), w.Project.ID, registry.PropertyDefinition{Scope: registry.PersonProperty, Name: name, Type: registry.PropertyString}); err != nil {
			t.Fatal(err)
		}
	}
	asked := w.Asks(http.MethodPost, "/")
	p, err := result.PlanNode(w.Executor, &asked.Caller.Caller, taxonomy.EventValues("path", []string{"e"}), result.Overrides{}, execution.RefreshBlocking)
	if err != nil {
		t.Fatal(err)
	}
	w.Remember(t, p, time.Now(), fmt.Sprintf(`[%q, 3]`, strings.Repeat("v", 501)), `["short", 2]`)
	const values = `{"query": {"kind": "event_property_values", "event_name": "e", "property_name": "path"`
	for _, tt := range []struct {
		args    string
		success bool
		content string
	}{
		{`{"query": {"kind": "entity_properties", "entity": "person"}}`, true, "property|type\na|String\nb|String\nc|String"},
		{`{"query": {"kind": "entity_properties", "entity": "person", "limit": 1, "offset": 1}}`, true, "property|type\nb|String\n\nThere are more rows than these 1: go on with the offset 2."},
		{`{"query": {"kind": "entity_properties", "entity": "person", "limit": 1, "offset": 2}}`, true, "property|type\nc|String"},
		{`{"query": {"kind": "entity_properties", "entity": "person", "limit": -1, "offset": 9}}`, true, "property|type"},
		{values + `}}`, true, "value|events\n" + strings.Repeat("v", 500) + "…|3\nshort|2"},
		{values + `}, "truncate": false}`, true, "value|events\n" + strings.Repeat("v", 501) + "|3\nshort|2"},
		{values + `, "limit": 1, "offset": 1}}`, true, "value|events\nshort|2"},
		{`{"query": {"kind": "event_properties"}}`, false, "event_properties needs an event_name."},
		{`{"query": {"kind": "event_property_values", "event_name": "e"}}`, false, "event_property_values needs an event_name and a property_name."},
		{`{"query": {"kind": "action_properties"}}`, false, "action_properties needs an action_id."},
		{`{"query": {"kind": "action_property_values", "action_id": 1}}`, false, "action_property_values needs an action_id and a property_name."},
		{`{"query": {"kind": "entity_property_values", "entity": "person"}}`, false, "entity_property_values needs an entity and a property_name."},
		{
			`{"query": {"kind": "entity_properties", "entity": "sessions", "limit": 2}}`, true,
			"property|type\nsession_id|String\nsession_timestamp|DateTime\n\nThere are more rows than these 2: go on with the offset 2.",
		},
	} {
		got := w.Send(t, http.MethodPost, "/api/projects/@current/mcp_tools/read_taxonomy/", `{"args": `+tt.args+`}`)
		want := string(jsontext.Append(nil, struct {
			Success bool   `json:"success"`
			Content string `json:"content"`
		}{tt.success, tt.content}))
		if diff := cmp.Diff(want, got.Body.String()); diff != "" || got.Code != http.StatusOK {
			t.Errorf("%s: %d (-want +got):\n%s", tt.args, got.Code, diff)
		}
	}
}
