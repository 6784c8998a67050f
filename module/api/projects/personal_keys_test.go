package projects_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

const personalKeysPath = "/api/projects/@current/personal_api_keys/"

// TestPersonalKeyLife creates a personal key over the API, uses, changes, rolls and revokes it.
func TestPersonalKeyLife(t *testing.T) {
	w := apitest.New(t)
	w.Key, w.Secret = w.NewKey(t, w.Project.ID, registry.Personal, "project:write", "query:read")
	made := w.Send(t, http.MethodPost, personalKeysPath, `{"label": "Ann", "scopes": ["project:read", "query:read"], "expires_in": 3600}`)
	value, _ := apitest.FieldOf(t, made, "value").(string)
	id, _ := apitest.FieldOf(t, made, "id").(string)
	if made.Code != http.StatusCreated || !strings.HasPrefix(value, "phx_") || made.Header().Get("Cache-Control") != "no-store" {
		t.Fatalf("creating: %d %s", made.Code, made.Body)
	}
	path := personalKeysPath + id + "/"
	read := w.Send(t, http.MethodGet, path, "")
	for name, want := range map[string]any{
		"id": id, "label": "Ann", "value": nil, "mask_value": value[:4] + "..." + value[len(value)-4:], "scopes": []any{"project:read", "query:read"},
		"last_used_at": nil, "last_rolled_at": nil, "fixed": nil, "endpoints": nil, "parent": w.Key.ID, "is_current": false, "is_session": false, "is_expired": false,
		"scoped_teams": []any{}, "can": []any{"change", "revoke", "roll"},
	} {
		if diff := cmp.Diff(want, apitest.FieldOf(t, read, name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if by, _ := apitest.FieldOf(t, read, "created_by").(map[string]any); by["distinct_id"] != w.Key.ID {
		t.Errorf("created_by: %v", by)
	}
	expires, err := time.Parse(time.RFC3339Nano, fmt.Sprint(apitest.FieldOf(t, read, "expires_at")))
	if left := time.Until(expires); err != nil || left < 50*time.Minute || left > time.Hour {
		t.Errorf("it expires in %s: %v", left, err)
	}
	if own := w.SendAs(t, value, http.MethodGet, personalKeysPath+"@current/", ""); apitest.FieldOf(t, own, "is_current") != true || apitest.FieldOf(t, own, "id") != id || len(apitest.FieldOf(t, own, "can").([]any)) != 0 {
		t.Errorf("the key itself reads %d %s", own.Code, own.Body)
	}
	if back := w.Send(t, http.MethodPut, path, read.Body.String()); back.Code != http.StatusOK {
		t.Errorf("a record that was read can't be sent back: %d %s", back.Code, back.Body)
	}
	if changed := w.Send(t, http.MethodPatch, path, `{"label": "Ann, at home", "scopes": ["query:read"]}`); apitest.FieldOf(t, changed, "label") != "Ann, at home" || apitest.FieldOf(t, changed, "value") != nil {
		t.Errorf("changing: %d %s", changed.Code, changed.Body)
	}
	if blank := w.Send(t, http.MethodPatch, path, `{"label": ""}`); blank.Code != http.StatusBadRequest || apitest.FieldOf(t, blank, "code") != "blank" {
		t.Errorf("a blank label: %d %s", blank.Code, blank.Body)
	}
	rolled := w.Send(t, http.MethodPost, path+"roll/", "")
	next, _ := apitest.FieldOf(t, rolled, "value").(string)
	if rolled.Code != http.StatusOK || next == value || apitest.FieldOf(t, rolled, "last_rolled_at") == nil {
		t.Errorf("rolling: %d %s", rolled.Code, rolled.Body)
	}
	for text, want := range map[string]int{value: 401, next: 200} {
		if answer := w.SendAs(t, text, http.MethodPost, "/api/projects/@current/query/check_auth_for_async/", "{}"); answer.Code != want {
			t.Errorf("after rolling: %d %s, want %d", answer.Code, answer.Body, want)
		}
	}
	list := w.Send(t, http.MethodGet, personalKeysPath, "")
	if apitest.FieldOf(t, list, "count") != 3.0 || strings.Contains(list.Body.String(), next) || strings.Contains(list.Body.String(), w.Secret) {
		t.Errorf("list: %d %s", list.Code, list.Body)
	}
	if gone := w.Send(t, http.MethodDelete, path, ""); gone.Code != http.StatusNoContent {
		t.Errorf("revoking: %d %s", gone.Code, gone.Body)
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPatch} {
		if answer := w.Send(t, method, path, "{}"); answer.Code != http.StatusNotFound {
			t.Errorf("%s of a revoked key: %d", method, answer.Code)
		}
	}
	if answer := w.SendAs(t, next, http.MethodPost, "/api/projects/@current/query/check_auth_for_async/", "{}"); answer.Code != http.StatusUnauthorized {
		t.Errorf("a revoked key works: %d", answer.Code)
	}
}

func TestPersonalKeyMistakes(t *testing.T) {
	w := apitest.New(t)
	w.Key, w.Secret = w.NewKey(t, w.Project.ID, registry.Personal, "project:write", "query:read")
	other, _ := w.NewKey(t, w.Project.ID, registry.Personal, "query:read")
	strong, _ := w.NewKey(t, w.Project.ID, registry.Personal, "*")
	secret, _ := w.NewKey(t, w.Project.ID, registry.Secret, "endpoint:read")
	stranger, _ := w.NewKey(t, w.NewProject(t).ID, registry.Personal, "query:read")
	before := w.Registry.Snapshot().Revision
	for _, tt := range []struct {
		method, path, body string
		want               int
		attr               any
	}{
		{"POST", "", `{"scopes": ["query:read"]}`, 400, "label"},
		{"POST", "", `{"label": "", "scopes": ["query:read"]}`, 400, "label"},
		{"POST", "", `{"label": "a"}`, 400, "scopes"},
		{"POST", "", `{"label": "a", "scopes": []}`, 400, "scopes"},
		{"POST", "", `{"label": "a", "scopes": ["nonsense"]}`, 400, "scopes"},
		{"POST", "", `{"label": "` + strings.Repeat("a", 41) + `", "scopes": ["query:read"]}`, 400, "label"},
		{"POST", "", `{"label": "a", "scopes": ["query:read"], "kind": "secret"}`, 400, "kind"},
		{"POST", "", `{"label": "a", "scopes": ["query:read"], "session": true}`, 400, "session"},
		{"POST", "", `{"label": "a", "scopes": ["query:read"], "expires_in": 0}`, 400, "expires_in"},
		{"POST", "", `{"label": "a", "scopes": ["query:read"], "expires_in": 99999999999999}`, 400, "expires_in"},
		{"POST", "", `{"label": "a", "scopes": ["query:read"], "expires_at": "tomorrow"}`, 400, "expires_at"},
		{"POST", "", `{"label": "a", "scopes": ["query:read"], "expires_at": "2020-01-01T00:00:00Z"}`, 400, "expires_at"},
		{"POST", "", `{"label": "a", "scopes": ["query:read"], "expires_at": "2099-01-01T00:00:00Z", "expires_in": 5}`, 400, "expires_in"},
		{"POST", "", `{"label": "a", "scopes": ["query:read"], "scoped_teams": [2]}`, 400, "scoped_teams"},
		{"POST", "", `{"label": "a", "scopes": ["query:read"], "scoped_organizations": ["x"]}`, 400, "scoped_organizations"},
		{"POST", "", `{"label": "a", "scopes": ["query:read"], "endpoints": ["nope"]}`, 400, "fixed"},
		{"POST", "", `{"label": "a", "scopes": ["insight:read"]}`, 403, nil},
		{"POST", "", `{"label": "a", "scopes": ["*"]}`, 403, nil},
		{"PATCH", other.ID + "/", `{"scopes": ["query:read", "project:write"]}`, 403, nil},
		{"PATCH", other.ID + "/", `{"expires_in": 5}`, 400, "expires_at"},
		{"PATCH", other.ID + "/", `{"expires_at": "2099-01-01T00:00:00Z"}`, 400, "expires_at"},
		{"PATCH", other.ID + "/", `{"endpoints": ["a"]}`, 400, "endpoints"},
		{"PATCH", strong.ID + "/", `{"label": "mine"}`, 403, nil},
		{"DELETE", strong.ID + "/", ``, 403, nil},
		{"POST", strong.ID + "/roll/", ``, 403, nil},
		{"POST", other.ID + "/roll/", ``, 403, nil},
		{"GET", secret.ID + "/", ``, 404, nil},
		{"DELETE", secret.ID + "/", ``, 404, nil},
		{"POST", secret.ID + "/roll/", ``, 404, nil},
		{"GET", stranger.ID + "/", ``, 404, nil},
		{"PATCH", stranger.ID + "/", `{"label": "mine"}`, 404, nil},
		{"DELETE", stranger.ID + "/", ``, 404, nil},
		{"POST", stranger.ID + "/roll/", ``, 404, nil},
		{"GET", "nope/", ``, 404, nil},
	} {
		answer := w.Send(t, tt.method, personalKeysPath+tt.path, tt.body)
		if answer.Code != tt.want || apitest.FieldOf(t, answer, "attr") != tt.attr {
			t.Errorf("%s %s %s: %d %s", tt.method, tt.path, tt.body, answer.Code, answer.Body)
		}
	}
	for _, tt := range []struct{ method, path, body, want string }{
		{"POST", "", `{"scopes": ["query:read"]}`, "required"},
		{"POST", "", `{"label": "a"}`, "required"},
		{"POST", "", `{"label": " ", "scopes": ["query:read"]}`, "blank"},
		{"POST", "", `{"label": null, "scopes": ["query:read"]}`, "null"},
		{"POST", "", `{"label": "a", "scopes": null}`, "null"},
		{"POST", "", `{"label": ["a"], "scopes": ["query:read"]}`, "invalid_input"},
		{"POST", "", `{"label": "a", "scopes": ["query:run"]}`, "invalid_input"},
		{"PATCH", other.ID + "/", `{"scopes": null}`, "null"},
	} {
		answer := w.Send(t, tt.method, personalKeysPath+tt.path, tt.body)
		if answer.Code != http.StatusBadRequest || apitest.FieldOf(t, answer, "code") != tt.want {
			t.Errorf("%s %s %s: %d %s, want %s", tt.method, tt.path, tt.body, answer.Code, answer.Body, tt.want)
		}
	}
	if after := w.Registry.Snapshot().Revision; after != before {
		t.Error("what was refused changed something")
	}
	if dated := w.Send(t, http.MethodPost, personalKeysPath, `{"label": "a", "scopes": ["query:read"], "expires_at": "2099-01-01 12:00"}`); apitest.FieldOf(t, dated, "expires_at") != "2099-01-01T12:00:00Z" {
		t.Errorf("a key that expires at a time without a zone: %d %s", dated.Code, dated.Body)
	}
	if list := w.Send(t, http.MethodGet, personalKeysPath, ""); strings.Contains(list.Body.String(), stranger.ID) || strings.Contains(list.Body.String(), secret.ID) {
		t.Errorf("the list has other keys: %s", list.Body)
	}
	_, bound := w.BoundKey(t, registry.Personal, nil, "a")
	_, reader := w.NewKey(t, w.Project.ID, registry.Personal, "project:read")
	for who, text := range map[string]string{"a bound key": bound, "a reader": reader} {
		if answer := w.SendAs(t, text, http.MethodPost, personalKeysPath, `{"label": "a", "scopes": ["project:read"]}`); answer.Code != http.StatusForbidden {
			t.Errorf("%s makes a key: %d %s", who, answer.Code, answer.Body)
		}
	}
}

// TestConsoleMakesKeys: a person who signed in with the operator's code creates a key that outlives the session.
func TestConsoleMakesKeys(t *testing.T) {
	w := apitest.New(t)
	session, text, err := w.Registry.CreateKey(t.Context(), registry.NewKey{
		Project: w.Project.ID, Label: "Console", Scopes: []string{"*"}, ExpiresAt: time.Now().Add(12 * time.Hour), Session: true,
	}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	made := w.SendAs(t, text, http.MethodPost, personalKeysPath, `{"label": "Ann", "scopes": ["*"], "expires_in": 7776000}`)
	value, _ := apitest.FieldOf(t, made, "value").(string)
	if made.Code != http.StatusCreated || apitest.FieldOf(t, made, "parent") != nil || apitest.FieldOf(t, made, "is_session") != false {
		t.Fatalf("making: %d %s", made.Code, made.Body)
	}
	if answer := w.SendAs(t, text, http.MethodDelete, "/api/personal_api_keys/@current/", ""); answer.Code != http.StatusNoContent {
		t.Fatalf("signing out: %d %s", answer.Code, answer.Body)
	}
	list := w.SendAs(t, value, http.MethodGet, personalKeysPath, "")
	if list.Code != http.StatusOK || strings.Contains(list.Body.String(), session.ID+`","label`) {
		t.Errorf("after signing out: %d %s", list.Code, list.Body)
	}
	var page struct{ Results []struct{ Label string } }
	if err := json.Unmarshal(list.Body.Bytes(), &page); err != nil || len(page.Results) != 2 || page.Results[0].Label != "Ann" {
		t.Errorf("list: %s", list.Body)
	}
}

// TestKeysShareTheirMakersRate: creating keys does not raise how much a customer may run.
func TestKeysShareTheirMakersRate(t *testing.T) {
	w := apitest.New(t)
	w.Limits = execution.NewLimiter(registry.Rate{Queries: 3, Per: time.Hour})
	by, _ := w.NewKey(t, w.Project.ID, registry.Personal, "project:write", "query:read")
	keys := []*registry.Key{by}
	for range 3 {
		made, _, err := w.Registry.CreateKey(t.Context(), registry.NewKey{Project: w.Project.ID, Scopes: []string{"query:read"}, Grantor: by}, apitest.Began)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, made)
	}
	ran := 0
	for _, key := range keys {
		for range 3 {
			if w.Count(key, new(execution.Query), time.Now()) == nil {
				ran++
			}
		}
	}
	if ran != 3 {
		t.Errorf("one key and those that it made ran %d queries, want 3", ran)
	}
}
