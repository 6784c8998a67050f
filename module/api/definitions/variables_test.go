package definitions_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestVariableDefaults checks defaults against the type of their variable, also when only the type changes.
func TestVariableDefaults(t *testing.T) {
	w := apitest.New(t)
	const path = "/api/projects/@current/insight_variables/"
	tests := []struct{ name, body, want string }{
		{"number", `"type": "Number", "default_value": "X"`, `"X" is not a number`},
		{"number that is too large", `"type": "Number", "default_value": 1e400`, `1e400 is not a number`},
		{"integer that is too large", `"type": "Number", "default_value": 123456789012345678901`, `123456789012345678901 is not a number`},
		{"string", `"type": "String", "default_value": 5`, `5 is not a string`},
		{"boolean", `"type": "Boolean", "default_value": "maybe"`, `"maybe" is not a boolean`},
		{"date", `"type": "Date", "default_value": "2026-02-30"`, `"2026-02-30" is not a valid date (want, for example, 2026-01-31 or 2026-01-31T10:00:00Z)`},
		{"list", `"type": "List", "values": ["a"], "default_value": "b"`, `"b" is not one of its values`},
		{"list of several", `"type": "List", "values": ["a", "b"], "default_value": ["a", "b"]`, `["a","b"] is a list; the variable takes one value`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			answer := w.Send(t, http.MethodPost, path, `{"name": "`+tt.name+`", `+tt.body+`}`)
			want := "The default value does not fit the variable: " + tt.want
			if answer.Code != 400 || apitest.FieldOf(t, answer, "attr") != "default_value" || apitest.FieldOf(t, answer, "detail") != want {
				t.Errorf("answered %d %s", answer.Code, answer.Body)
			}
		})
	}
	made := w.Send(t, http.MethodPost, path, `{"name": "v", "type": "List", "is_multi": true, "values": ["a", "b"], "default_value": ["a"]}`)
	if made.Code != 201 {
		t.Fatalf("creating: %d %s", made.Code, made.Body)
	}
	id, _ := apitest.FieldOf(t, made, "id").(string)
	for body, want := range map[string]int{
		`{"type": "Number"}`: 400, `{"is_multi": false}`: 200, `{"values": ["b"]}`: 400, `{"values_query": "select 1"}`: 400,
		`{"type": "Number", "default_value": 3, "values": null}`: 200, `{"default_value": null}`: 200,
	} {
		if answer := w.Send(t, http.MethodPatch, path+id+"/", body); answer.Code != want {
			t.Errorf("%s: %d %s", body, answer.Code, answer.Body)
		}
		if want == 200 { // unchanged
			w.Send(t, http.MethodPatch, path+id+"/", `{"type": "List", "is_multi": true, "values": ["a", "b"], "default_value": ["a"]}`)
		}
		now := w.Registry.Snapshot().VariableByID(w.Project.ID, id)
		if diff := cmp.Diff([]any{registry.VariableList, true, []any{"a", "b"}, []any{"a"}}, []any{now.Type, now.IsMulti, now.Values, now.Default}); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", body, diff)
		}
	}
}

// TestVariablesOfPostHog: records that PostHog returned can be sent back. It stores blank texts for what a variable does not have.
func TestVariablesOfPostHog(t *testing.T) {
	w := apitest.New(t)
	made := w.Send(t, http.MethodPost, "/api/projects/@current/insight_variables/",
		`{"name": "plan", "type": "List", "values": ["a", "b"], "default_value": "", "values_query": "", "values_query_connection_id": " "}`)
	if made.Code != http.StatusCreated || apitest.FieldOf(t, made, "default_value") != nil {
		t.Errorf("answered %d %s", made.Code, made.Body)
	}
	if refused := w.Send(t, http.MethodPost, "/api/projects/@current/insight_variables/",
		`{"name": "other", "type": "List", "values_query": "select 1"}`); refused.Code != http.StatusBadRequest {
		t.Errorf("a query for values: %d %s", refused.Code, refused.Body)
	}
}
