package projects_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

const secretKeysPath = "/api/projects/@current/project_secret_api_keys/"

// TestSecretKeyLife creates a key over the API, uses, changes, rolls and deletes it.
func TestSecretKeyLife(t *testing.T) {
	w := apitest.NewWithEndpoints(t)
	w.RememberRuns(t, "acme")
	w.Key, w.Secret = w.NewKey(t, w.Project.ID, registry.Personal, "project:write", "endpoint:read")
	made := w.Send(t, http.MethodPost, secretKeysPath, `{"label": "Acme", "scopes": ["endpoint:read"], "fixed": {"customer": "acme"}, "endpoints": ["mine"]}`)
	value, _ := apitest.FieldOf(t, made, "value").(string)
	id, _ := apitest.FieldOf(t, made, "id").(string)
	if made.Code != http.StatusCreated || !strings.HasPrefix(value, "phs_") || made.Header().Get("Cache-Control") != "no-store" {
		t.Fatalf("creating: %d %s", made.Code, made.Body)
	}
	by, _ := apitest.FieldOf(t, made, "created_by").(map[string]any)
	if by["distinct_id"] != w.Key.ID {
		t.Errorf("created_by: %v", by)
	}
	path := secretKeysPath + id + "/"
	read := w.Send(t, http.MethodGet, path, "")
	want := map[string]any{
		"id": id, "label": "Acme", "value": nil, "mask_value": value[:4] + "..." + value[len(value)-4:], "scopes": []any{"endpoint:read"}, "last_used_at": nil,
		"last_rolled_at": nil, "fixed": map[string]any{"customer": "acme"}, "endpoints": []any{"mine"}, "created_at": apitest.FieldOf(t, made, "created_at"), "created_by": any(by),
	}
	for name, value := range want {
		if diff := cmp.Diff(value, apitest.FieldOf(t, read, name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	w.RememberRuns(t, "acme")
	if got := apitest.OutcomeOf(t, w.RunWith(t, value, "mine", "")); got != "[[0 row of acme]]" {
		t.Errorf("a run: %s", got)
	}
	if back := w.Send(t, http.MethodPut, path, read.Body.String()); back.Code != http.StatusOK {
		t.Errorf("a record that was read can't be sent back: %d %s", back.Code, back.Body)
	}
	if renamed := w.Send(t, http.MethodPatch, path, `{"label": "Acme, Inc."}`); apitest.FieldOf(t, renamed, "label") != "Acme, Inc." || apitest.FieldOf(t, renamed, "value") != nil {
		t.Errorf("renaming: %d %s", renamed.Code, renamed.Body)
	}
	rolled := w.Send(t, http.MethodPost, path+"roll/", "")
	next, _ := apitest.FieldOf(t, rolled, "value").(string)
	if rolled.Code != http.StatusOK || next == value || apitest.FieldOf(t, rolled, "last_rolled_at") == nil {
		t.Errorf("rolling: %d %s", rolled.Code, rolled.Body)
	}
	w.RememberRuns(t, "acme")
	for text, want := range map[string]int{value: 401, next: 200} {
		if answer := w.RunWith(t, text, "mine", ""); answer.Code != want {
			t.Errorf("a run after rolling: %d %s, want %d", answer.Code, answer.Body, want)
		}
	}
	if list := w.Send(t, http.MethodGet, secretKeysPath, ""); apitest.FieldOf(t, list, "count") != 1.0 || strings.Contains(list.Body.String(), next) {
		t.Errorf("list: %d %s", list.Code, list.Body)
	}
	if gone := w.Send(t, http.MethodDelete, path, ""); gone.Code != http.StatusNoContent {
		t.Errorf("deleting: %d %s", gone.Code, gone.Body)
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPatch} {
		if answer := w.Send(t, method, path, "{}"); answer.Code != http.StatusNotFound {
			t.Errorf("%s of a deleted key: %d", method, answer.Code)
		}
	}
	if answer := w.RunWith(t, next, "mine", ""); answer.Code != http.StatusUnauthorized {
		t.Errorf("a run after deleting: %d", answer.Code)
	}
}

func TestSecretKeyMistakes(t *testing.T) {
	w := apitest.NewWithEndpoints(t)
	w.Key, w.Secret = w.NewKey(t, w.Project.ID, registry.Personal, "project:write", "endpoint:read")
	person := w.Key.ID
	bound, boundText := w.BoundKey(t, registry.Secret, map[string]any{"customer": "acme"}, "mine")
	elsewhere, _ := w.NewKey(t, w.NewProject(t).ID, registry.Secret, "endpoint:read")
	if answer := w.Send(t, http.MethodPost, secretKeysPath, `{"label": "taken", "scopes": ["endpoint:read"]}`); answer.Code != http.StatusCreated {
		t.Fatalf("creating: %d %s", answer.Code, answer.Body)
	}
	const cannot = "400 What a key is bound to cannot change. Make another key."
	for _, tt := range []struct{ name, method, path, body, want string }{
		{"no label", "POST", "", `{"scopes": ["endpoint:read"]}`, "400 This field is required."},
		{"no scopes", "POST", "", `{"label": "x"}`, "400 This field is required."},
		{"empty scopes", "POST", "", `{"label": "x", "scopes": []}`, "400 This field is required."},
		{"every scope", "POST", "", `{"label": "x", "scopes": ["*"]}`, "400 Invalid scope: *"},
		{"a scope of people", "POST", "", `{"label": "x", "scopes": ["insight:read"]}`, "400 Invalid scope: insight:read"},
		{"a label that is taken", "POST", "", `{"label": "taken", "scopes": ["endpoint:read"]}`, "400 A key with this label already exists for this project."},
		{"a long label", "POST", "", `{"label": "` + strings.Repeat("é", 41) + `", "scopes": ["endpoint:read"]}`, "400 Ensure this field has no more than 40 characters."},
		{"a variable of the wrong type", "POST", "", `{"label": "x", "scopes": ["endpoint:read"], "fixed": {"seats": "many"}}`, `400 variable seats: "many" is not a number`},
		{"another field", "POST", "", `{"label": "x", "scopes": ["endpoint:read"], "expires": "1d"}`, "400 Extra inputs are not permitted"},
		{"another value", "PATCH", bound.ID, `{"fixed": {"customer": "globex"}}`, cannot},
		{"another endpoint", "PATCH", bound.ID, `{"endpoints": ["open"]}`, cannot},
		{"more endpoints", "PATCH", bound.ID, `{"endpoints": ["mine", "open"]}`, cannot},
		{"a name that is taken", "PATCH", bound.ID, `{"label": "taken"}`, "400 A key with this label already exists for this project."},
		{"more scopes", "PATCH", bound.ID, `{"scopes": ["endpoint:write"]}`, "400 Invalid scope: endpoint:write"},
		{"a personal key", "GET", person, ``, "404 Not found."},
		{"another project's key", "DELETE", elsewhere.ID, ``, "404 Not found."},
		{"another project's key, rolled", "POST", elsewhere.ID + "/roll", ``, "404 Not found."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answer := w.Send(t, tt.method, secretKeysPath+tt.path, tt.body)
			if diff := cmp.Diff(tt.want, apitest.OutcomeOf(t, answer)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if after := w.Registry.Snapshot().KeyByID(w.Project.ID, bound.ID); after.Fixed != bound.Fixed || !slices.Equal(after.Endpoints, []string{"mine"}) || after.Label != "" {
		t.Errorf("refused writes changed the key: %+v", after)
	}
	for _, who := range []string{boundText, func() string { _, text := w.NewKey(t, w.Project.ID, registry.Personal, "project:read"); return text }()} {
		as := *w
		as.Secret = who
		if answer := as.Send(t, http.MethodPost, secretKeysPath, `{"label": "y", "scopes": ["endpoint:read"]}`); !slices.Contains([]int{401, 403}, answer.Code) {
			t.Errorf("a key that may not make keys: %d %s", answer.Code, answer.Body)
		}
	}
}
