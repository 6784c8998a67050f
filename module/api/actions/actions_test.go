package actions_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/registry"
	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// TestActionMistakes: a body that no query could use is a 400 that names the field, and changes nothing.
func TestActionMistakes(t *testing.T) {
	w := apitest.NewForActions(t)
	w.NewAction(t, `{"name": "taken", "steps": [{"event": "a"}]}`)
	step := func(fields string) string { return `{"steps": [{"event": "a"}, {` + fields + `}]}` }
	for _, tt := range []struct{ name, body, code, attr, detail string }{
		{"a taken name with blanks", `{"name": " taken "}`, "unique", "name", "This project already has an action with this name, ID 1"},
		{"a taken name", `{"name": "taken"}`, "unique", "name", "This project already has an action with this name, ID 1"},
		{"a blank name", `{"name": " "}`, "blank", "name", "This field may not be blank."},
		{"a long name", `{"name": "` + strings.Repeat("x", 401) + `"}`, "max_length", "name", "Ensure this field has no more than 400 characters."},
		{"a name that is no text", `{"name": true}`, "invalid_input", "name", "Not a valid string."},
		{"a description that is null", `{"description": null}`, "null", "description", "This field may not be null."},
		{"deleted that is no boolean", `{"deleted": "maybe"}`, "invalid_input", "deleted", "Must be a valid boolean."},
		{"steps that are no list", `{"steps": {}}`, "invalid_input", "steps", "Not a valid list."},
		{"steps that are null", `{"steps": null}`, "null", "steps", "This field may not be null."},
		{"a step that is no object", `{"steps": ["a"]}`, "invalid_input", "steps__0", "Invalid data. Expected a dictionary."},
		{"a step that is null", `{"steps": [null]}`, "invalid_input", "steps__0", "Invalid data. Expected a dictionary."},
		{
			"many steps", `{"steps": [` + strings.Repeat(`{},`, 100) + `{}]}`, "invalid_input", "steps",
			"An action can have 100 steps, and this one has 101.",
		},
		{"an empty text", step(`"text": ""`), "blank", "steps__1__text", "This field may not be blank."},
		{"a selector of blanks", step(`"selector": "  "`), "blank", "steps__1__selector", "This field may not be blank."},
		{"a url that is no text", step(`"url": []`), "invalid_input", "steps__1__url", "Not a valid string."},
		{"an unknown matching", step(`"text_matching": "fuzzy"`), "invalid_choice", "steps__1__text_matching", `"fuzzy" is not a valid choice.`},
		{
			"an invalid regular expression", step(`"url": "a(b", "url_matching": "regex"`), "invalid_input", "steps__1__url",
			"\"a(b\" is not a valid regular expression: missing closing ): `a(b`.",
		},
		{"properties that are no list", step(`"properties": {}`), "not_a_list", "steps__1__properties", "Expected a list of property filters."},
		{
			"an unknown operator", step(`"properties": [{"key": "k", "value": "v", "operator": "near"}]`), "invalid_input", "steps__1__properties__0__operator",
			"",
		},
		{"a HogQL expression", step(`"properties": [{"type": "hogql", "key": "nonsense()"}]`), "hogql_query_error", "steps__1__properties", "Unsupported function call 'nonsense(...)'"},
		{"an unknown field", step(`"properties": [{"type": "hogql", "key": "nothing = 1"}]`), "hogql_query_error", "steps__1__properties__0__key", "Unable to resolve field: nothing"},
		{"an unknown cohort", step(`"properties": [{"type": "cohort", "key": "id", "value": 9}]`), "hogql_query_error", "steps__1__properties__0", "Could not find cohort with ID 9"},
		{"a selector", step(`"event": "$autocapture", "selector": "a["`), "hogql_query_error", "steps__1__selector", "The selector of a property filter is invalid: the name of an attribute is missing"},
		{"JSON that breaks off", `{"name": `, "parse_error", "", ""},
		{"a list", `[]`, "invalid_input", "non_field_errors", "Invalid data. Expected a dictionary."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := w.Registry.Snapshot().Revision
			for _, method := range []string{http.MethodPost, http.MethodPatch} {
				target := apitest.ActionsPath
				if method == http.MethodPatch {
					if target += "1/"; tt.code == "unique" { // its own
						continue
					}
				}
				answer := w.Send(t, method, target, tt.body)
				attr, _ := apitest.FieldOf(t, answer, "attr").(string)
				detail, _ := apitest.FieldOf(t, answer, "detail").(string)
				want := []any{http.StatusBadRequest, tt.code, tt.attr, tt.detail}
				if tt.detail == "" {
					want[3] = detail
				}
				if diff := cmp.Diff(want, []any{answer.Code, apitest.FieldOf(t, answer, "code"), attr, detail}); diff != "" {
					t.Errorf("%s (-want +got):\n%s\n%s", method, diff, answer.Body)
				}
			}
			if w.Registry.Snapshot().Revision != before {
				t.Error("what was refused was written")
			}
		})
	}
}

// TestActionWrites: PATCH changes the given fields, and ignores what only the server decides.
func TestActionWrites(t *testing.T) {
	w := apitest.NewForActions(t)
	made := w.NewAction(t, `{"name": "a", "_create_in_folder": "x", "id": 9, "created_by": 5, "is_calculating": true, "steps": [
		{"event": " e ", "url": " /u ", "selector": " a > b ", "url_matching": null, "unknown": 1, "properties": []}, {}]}`)
	all := func(fields map[string]any) map[string]any {
		for _, name := range []string{"event", "properties", "selector", "tag_name", "text", "text_matching", "href", "href_matching", "url", "url_matching"} {
			if _, ok := fields[name]; !ok {
				fields[name] = nil
			}
		}
		return fields
	}
	want := map[string]any{
		"id": 1.0, "name": "a", "description": "", "tags": []any{}, "post_to_slack": false, "slack_message_format": "", "deleted": false,
		"is_calculating": false, "team_id": float64(w.Project.ID), "is_action": true, "bytecode_error": nil, "pinned_at": nil, "creation_context": nil,
		"user_access_level": "editor", "reference_count": 0.0, "used_by": []any{},
		"steps": []any{
			all(map[string]any{"event": " e ", "url": "/u", "selector": "a > b", "properties": []any{}}), all(map[string]any{"url_matching": "contains"}),
		},
	}
	check := func(what string, got map[string]any) {
		t.Helper()
		if got["created_at"] != made["created_at"] || got["last_calculated_at"] != made["created_at"] {
			t.Errorf("%s: made at %v, calculated at %v, want %v", what, got["created_at"], got["last_calculated_at"], made["created_at"])
		}
		if diff := cmp.Diff(any(want), harness.Only(any(want), any(got))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	check("a new action", made)
	patch := func(method, body string) map[string]any {
		t.Helper()
		answer := w.Send(t, method, apitest.ActionsPath+"1/", body)
		var got map[string]any
		if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || answer.Code != http.StatusOK {
			t.Fatalf("%s %s answers %d %s", method, body, answer.Code, answer.Body)
		}
		return got
	}
	want["tags"], want["description"], want["post_to_slack"], want["slack_message_format"] = []any{"b", "a"}, "d", true, "[event]"
	check("some fields", patch(http.MethodPatch, `{"tags": ["b", "a", "b"], "description": "d", "post_to_slack": true, "slack_message_format": "[event]"}`))
	want["name"], want["steps"] = nil, []any{}
	check("PUT", patch(http.MethodPut, `{"name": null, "steps": []}`))
	pinned := patch(http.MethodPatch, `{"pinned_at": "2001-01-01T00:00:00Z"}`)["pinned_at"]
	if at, _ := pinned.(string); at == "" || strings.HasPrefix(at, "2001") {
		t.Errorf("pinned at %v, want the time of the server", pinned)
	}
	want["pinned_at"] = pinned
	check("pinned again", patch(http.MethodPatch, `{"pinned_at": true}`))
	want["pinned_at"] = nil
	check("no longer pinned", patch(http.MethodPatch, `{"pinned_at": ""}`))
	want["deleted"] = true
	check("deleted", patch(http.MethodPatch, `{"deleted": true}`))
	want["description"] = "changed"
	check("deleted, and changed", patch(http.MethodPatch, `{"description": "changed"}`))
}

// TestActionsAreAProjectsOwn: another project's key finds none of them on any route.
func TestActionsAreAProjectsOwn(t *testing.T) {
	w := apitest.NewForActions(t)
	w.NewAction(t, `{"name": "mine"}`)
	other := w.NewProject(t)
	_, theirs := w.NewKey(t, other.ID, registry.Personal, "action:write")
	for _, tt := range []struct {
		method, path, body string
		want               int
	}{
		{http.MethodGet, "1/", "", http.StatusNotFound},
		{http.MethodPatch, "1/", `{"name": "theirs"}`, http.StatusNotFound},
		{http.MethodPut, "1/", `{"deleted": true}`, http.StatusNotFound},
		{http.MethodDelete, "1/", "", http.StatusMethodNotAllowed},
		{http.MethodGet, "x/", "", http.StatusNotFound},
		{http.MethodGet, "9223372036854775808/", "", http.StatusNotFound},
		{http.MethodGet, "-1/", "", http.StatusNotFound},
	} {
		if answer := w.SendAs(t, theirs, tt.method, apitest.ActionsPath+tt.path, tt.body); answer.Code != tt.want {
			t.Errorf("%s %s: %d %s, want %d", tt.method, tt.path, answer.Code, answer.Body, tt.want)
		}
	}
	if got := apitest.FieldOf(t, w.SendAs(t, theirs, http.MethodGet, apitest.ActionsPath, ""), "count"); got != 0.0 {
		t.Errorf("another project lists %v actions", got)
	}
	if got := w.SendAs(t, theirs, http.MethodPost, apitest.ActionsPath, `{"name": "mine"}`); got.Code != http.StatusCreated {
		t.Errorf("a name of another project: %d %s", got.Code, got.Body)
	}
	_, reader := w.NewKey(t, w.Project.ID, registry.Personal, "action:read")
	if got := w.SendAs(t, reader, http.MethodPatch, apitest.ActionsPath+"1/", `{}`); got.Code != http.StatusForbidden {
		t.Errorf("a key that may read: %d %s", got.Code, got.Body)
	}
	if got := w.SendAs(t, reader, http.MethodGet, apitest.ActionsPath+"1/", ""); got.Code != http.StatusOK || apitest.FieldOf(t, got, "user_access_level") != "viewer" {
		t.Errorf("a key that may read: %d %s", got.Code, got.Body)
	}
	_, secret := w.NewKey(t, w.Project.ID, registry.Secret, "endpoint:read")
	if got := w.SendAs(t, secret, http.MethodGet, apitest.ActionsPath, ""); got.Code != http.StatusUnauthorized {
		t.Errorf("a secret key: %d %s", got.Code, got.Body)
	}
}

func TestActionList(t *testing.T) {
	w := apitest.NewForActions(t)
	for _, name := range []string{"Signed up", "Paid", "Signed in"} {
		w.NewAction(t, `{"name": "`+name+`"}`)
	}
	w.NewAction(t, `{}`)
	w.Send(t, http.MethodPatch, apitest.ActionsPath+"2/", `{"deleted": true}`)
	for _, tt := range []struct {
		query string
		count float64
		want  []any
	}{
		{"", 3, []any{4.0, 3.0, 1.0}},
		{"?limit=2", 3, []any{4.0, 3.0}},
		{"?limit=2&offset=2", 3, []any{1.0}},
		{"?offset=1", 3, []any{3.0, 1.0}},
		{"?search=SIGNED", 2, []any{3.0, 1.0}},
		{"?search=paid", 0, []any{}},
	} {
		answer := w.Send(t, http.MethodGet, apitest.ActionsPath+tt.query, "")
		ids := []any{}
		results, _ := apitest.FieldOf(t, answer, "results").([]any)
		for _, r := range results {
			record, _ := r.(map[string]any)
			ids = append(ids, record["id"])
		}
		if diff := cmp.Diff([]any{tt.count, tt.want}, []any{apitest.FieldOf(t, answer, "count"), ids}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.query, diff)
		}
	}
	if got := w.Send(t, http.MethodGet, apitest.ActionsPath+"?limit=x", ""); got.Code != http.StatusBadRequest {
		t.Errorf("a limit that is not a number: %d %s", got.Code, got.Body)
	}
}

// TestListOfActions: the list has the actions that its parameters name, in the order that they name.
func TestListOfActions(t *testing.T) {
	w := apitest.NewForActions(t)
	w.NewAction(t, `{"name": "beta", "tags": ["x", "y"], "pinned_at": "2026-01-02T00:00:00Z"}`)
	w.NewAction(t, `{"name": "Alpha", "tags": ["y"]}`)
	first := w.Key.User
	w.Key, w.Secret = w.NewKey(t, w.Project.ID, registry.Personal, "action:write")
	w.NewAction(t, `{"name": "gamma"}`)
	for _, tt := range []struct{ query, want string }{
		{"", "gamma Alpha beta"},
		{"search=A", "gamma Alpha beta"},
		{"search=alp", "Alpha"},
		{`tags=["x","z"]`, "beta"},
		{`tags=["y"]`, "Alpha beta"},
		{`tags=[]`, "gamma Alpha beta"},
		{fmt.Sprintf("created_by=%d", first), "Alpha beta"},
		{fmt.Sprintf("created_by=%d,%d", first, w.Key.User), "gamma Alpha beta"},
		{"created_by=99", ""},
		{"ordering=name", "Alpha beta gamma"},
		{"ordering=-name", "gamma beta Alpha"},
		{"ordering=created_at", "beta Alpha gamma"},
		{"ordering=-created_by", "gamma Alpha beta"},
		{"ordering=-pinned_at&limit=1", "beta"},
		{"created_by=me", "400 created_by"},
		{"tags=x", "400 tags"},
		{"ordering=steps", "400 ordering"},
	} {
		t.Run(tt.query, func(t *testing.T) {
			answer := w.Send(t, http.MethodGet, apitest.ActionsPath+"?"+strings.ReplaceAll(tt.query, `"`, "%22"), "")
			var list struct {
				Results []struct{ Name string }
				Attr    string
			}
			if err := json.Unmarshal(answer.Body.Bytes(), &list); err != nil {
				t.Fatalf("%v: %s", err, answer.Body)
			}
			var names []string
			for _, one := range list.Results {
				names = append(names, one.Name)
			}
			got := strings.Join(names, " ")
			if answer.Code != http.StatusOK {
				got = fmt.Sprint(answer.Code, " ", list.Attr)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
