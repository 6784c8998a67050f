package queries_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// completionWorld returns a world with another project, whose names all contain theirs; those of the world's own project contain ours.
func completionWorld(t *testing.T) *apitest.World {
	t.Helper()
	w := apitest.New(t)
	w.LoseTables(t, nil) // the tables are unknown
	for id, word := range map[int64]string{w.Project.ID: "ours", w.NewProject(t).ID: "theirs"} {
		defs := []registry.PropertyDefinition{
			{Scope: registry.EventProperty, Name: "event " + word, Type: registry.PropertyString},
			{Scope: registry.PersonProperty, Name: "person_" + word, Type: registry.PropertyNumeric},
			{Scope: registry.GroupProperty, GroupTypeIndex: 0, Name: "first_" + word, Type: registry.PropertyString},
			{Scope: registry.GroupProperty, GroupTypeIndex: 1, Name: "second_" + word, Type: registry.PropertyString},
		}
		if err := w.Registry.Learn(t.Context(), id, defs, []registry.GroupType{{Name: "group_" + word, Index: 1}}); err != nil {
			t.Fatal(err)
		}
		_, err := w.Registry.CreateVariable(t.Context(), registry.NewVariable{Project: id, Name: "variable_" + word, Type: registry.VariableString}, apitest.Began)
		if err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// complete returns the labels of what can be written at a bar in a text, with the inserted text where it differs.
func complete(t *testing.T, w *apitest.World, marked string) string {
	t.Helper()
	before, after, _ := strings.Cut(marked, "|")
	answer := w.Send(t, http.MethodPost, fmt.Sprintf("/api/projects/%d/query/", w.Project.ID), string(jsontext.Append(nil, map[string]any{"query": map[string]any{
		"kind": "HogQLAutocomplete", "language": "hogQL", "query": before + after, "startPosition": len(before), "endPosition": len(before),
	}})))
	var got struct {
		Suggestions []struct{ Label, InsertText, Kind string }
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || answer.Code != http.StatusOK {
		t.Fatalf("%q is answered %d %s", marked, answer.Code, answer.Body)
	}
	var out []string
	for _, s := range got.Suggestions {
		if s.Kind == "Function" {
			continue
		}
		if s.InsertText != s.Label {
			s.Label += "=" + s.InsertText
		}
		out = append(out, s.Label)
	}
	return strings.Join(out, ", ")
}

// TestCompletionKeepsToItsProject asks at every place where names of a project may occur.
func TestCompletionKeepsToItsProject(t *testing.T) {
	w := completionWorld(t)
	for text, want := range map[string]string{
		"select properties.| from events":              "event ours=`event ours`",
		"select properties.theirs| from events":        "",
		"select properties.| from persons":             "person_ours",
		"select group_0.properties.| from events":      "first_ours",
		"select group_ours.properties.| from events":   "second_ours",
		"select group_theirs.properties.| from events": "",
		"select properties.| from groups":              "first_ours, second_ours",
		"select {|}":                                   "variables.variable_ours",
		"select {variables.|}":                         "variable_ours",
	} {
		if got := complete(t, w, text); got != want {
			t.Errorf("%q gives %q, want %q", text, got, want)
		}
	}
	if got := complete(t, w, "select | from events"); strings.Contains(got, "theirs") || !strings.Contains(got, "group_ours") {
		t.Errorf("the fields of events are %s", got)
	}
}

// TestCompletionOfTablesNeedsTheirScopes asks for tables with a key that can read some of them.
func TestCompletionOfTablesNeedsTheirScopes(t *testing.T) {
	w := completionWorld(t)
	_, w.Secret = w.NewKey(t, w.Project.ID, registry.Personal, "query:read")
	if got, want := complete(t, w, "select * from system.|"), "information_schema.columns, information_schema.data_types, information_schema.metrics, information_schema.relationships, information_schema.tables"; got != want {
		t.Errorf("without their scopes there are %q, want %q", got, want)
	}
	_, w.Secret = w.NewKey(t, w.Project.ID, registry.Personal, "query:read", "insight:read", "dashboard:read")
	got := complete(t, w, "select * from system.|")
	if want := "dashboards, information_schema.columns, information_schema.data_types, information_schema.metrics, information_schema.relationships, information_schema.tables, insights"; got != want {
		t.Errorf("with scopes there are %q, want %q", got, want)
	}
}

// TestCompletionNeedsItsScope asks with a key that may not run queries.
func TestCompletionNeedsItsScope(t *testing.T) {
	w := completionWorld(t)
	_, w.Secret = w.NewKey(t, w.Project.ID, registry.Personal, "insight:read")
	answer := w.Send(t, http.MethodPost, fmt.Sprintf("/api/projects/%d/query/", w.Project.ID),
		`{"query": {"kind": "HogQLAutocomplete", "language": "hogQL", "query": "select ", "startPosition": 7, "endPosition": 7}}`)
	if answer.Code != http.StatusForbidden {
		t.Errorf("answered %d %s", answer.Code, answer.Body)
	}
}

// A completion is never cached: the next definition may change it.
func TestCompletionSeesNewDefinitions(t *testing.T) {
	w := completionWorld(t)
	const text = "select properties.new| from events"
	if got := complete(t, w, text); got != "" {
		t.Fatalf("before the definition there is %q", got)
	}
	if err := w.Registry.SetProperty(t.Context(), w.Project.ID, registry.PropertyDefinition{Scope: registry.EventProperty, Name: "newest", Type: registry.PropertyString}); err != nil {
		t.Fatal(err)
	}
	if got := complete(t, w, text); got != "newest" {
		t.Errorf("after the definition there is %q", got)
	}
}
