package projects_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestSettings changes settings by each of the addresses, and reads them again.
func TestSettings(t *testing.T) {
	w := apitest.New(t)
	_, secret := w.NewKey(t, w.Project.ID, registry.Personal, "project:write", "query:read", "organization:read")
	organization := apitest.FieldOf(t, w.SendAs(t, secret, "GET", "/api/organizations/@current/", ""), "id")
	for _, tt := range []struct{ name, path, body, field, want string }{
		{"the name", "/api/projects/1/", `{"name": " Shop "}`, "name", `"Shop"`},
		{"the zone", "/api/environments/@current/", `{"timezone": "America/New_York"}`, "timezone", `"America/New_York"`},
		{"the first day", fmt.Sprintf("/api/organizations/%v/projects/1/", organization), `{"week_start_day": 1}`, "week_start_day", "1"},
		{"no first day", "/api/projects/1", `{"week_start_day": null}`, "week_start_day", "0"},
		{"test accounts", "/api/projects/1/", `{"test_account_filters": [{"key": "email", "type": "person", "operator": "not_icontains", "value": "@us"}]}`, "test_account_filters", `[{"key":"email","operator":"not_icontains","type":"person","value":"@us"}]`},
		{"no test accounts", "/api/projects/1/", `{"test_account_filters": []}`, "test_account_filters", `[]`},
		{"path cleaning", "/api/projects/1/", `{"path_cleaning_filters": [{"alias": "x", "regex": "y", "order": 1}]}`, "path_cleaning_filters", `[{"alias":"x","order":1,"regex":"y"}]`},
		{"names of people", "/api/projects/1/", `{"person_display_name_properties": ["nick"]}`, "person_display_name_properties", `["nick"]`},
		{"the usual names of people", "/api/projects/1/", `{"person_display_name_properties": null}`, "person_display_name_properties", `null`},
		{"a setting that is kept", "/api/projects/1/", `{"heatmaps_opt_in": true, "app_urls": ["https://a.test"]}`, "heatmaps_opt_in", `true`},
		{"another beside it", "/api/projects/1/", `{"cookieless_server_hash_mode": 0}`, "app_urls", `["https://a.test"]`},
		{"whether test accounts are excluded at first", "/api/projects/1/", `{"test_account_filters_default_checked": true}`, "test_account_filters_default_checked", `true`},
		{"no such default", "/api/projects/1/", `{"test_account_filters_default_checked": null}`, "test_account_filters_default_checked", `null`},
		{"a config that is kept", "/api/projects/1/", `{"session_recording_network_payload_capture_config": {"recordBody": true}}`, "session_recording_network_payload_capture_config", `{"recordBody":true}`},
		{"no such config", "/api/projects/1/", `{"session_recording_network_payload_capture_config": null}`, "session_recording_network_payload_capture_config", `null`},
		{"events without addresses", "/api/projects/1/", `{"anonymize_ips": true}`, "anonymize_ips", `true`},
		{"another setting beside it", "/api/projects/1/", `{"capture_performance_opt_in": true}`, "anonymize_ips", `true`},
		{"events with addresses", "/api/projects/1/", `{"anonymize_ips": false}`, "anonymize_ips", `false`},
		{"null", "/api/projects/1/", `{"heatmaps_opt_in": null}`, "heatmaps_opt_in", `null`},
		{"what cannot be changed", "/api/projects/1/", `{"id": 7, "uuid": "x", "api_token": "x", "organization": "x", "no_such_setting": {"a": 1}}`, "id", `1`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answer := w.SendAs(t, secret, http.MethodPatch, tt.path, tt.body)
			if answer.Code != http.StatusOK {
				t.Fatalf("answers %d %s", answer.Code, answer.Body)
			}
			for _, answer := range []any{apitest.FieldOf(t, answer, tt.field), apitest.FieldOf(t, w.SendAs(t, secret, "GET", "/api/projects/@current/", ""), tt.field)} {
				got, err := json.Marshal(answer)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, string(got)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", tt.field, diff)
				}
			}
		})
	}
}

// TestSettingsAsRead: the record of a project can be written back as it was read.
func TestSettingsAsRead(t *testing.T) {
	w := apitest.New(t)
	_, secret := w.NewKey(t, w.Project.ID, registry.Personal, "project:write")
	read := func() string { return w.SendAs(t, secret, http.MethodGet, "/api/projects/1/", "").Body.String() }
	before := read()
	if answer := w.SendAs(t, secret, http.MethodPatch, "/api/projects/1/", before); answer.Code != http.StatusOK {
		t.Errorf("answers %d %s", answer.Code, answer.Body)
	}
	if diff := cmp.Diff(before, read()); diff != "" {
		t.Errorf("the record changed (-before +after):\n%s", diff)
	}
}

// TestCookielessModeOfOld: a mode that an earlier version kept reads as what holds, so that the record can be written back as it was read.
func TestCookielessModeOfOld(t *testing.T) {
	w := apitest.New(t)
	change := registry.ProjectChange{At: apitest.Began, Others: map[string]json.RawMessage{"cookieless_server_hash_mode": json.RawMessage("2")}}
	if _, err := w.Registry.UpdateProject(t.Context(), w.Project.ID, change); err != nil {
		t.Fatal(err)
	}
	_, secret := w.NewKey(t, w.Project.ID, registry.Personal, "project:write")
	if got := apitest.FieldOf(t, w.SendAs(t, secret, "GET", "/api/projects/@current/", ""), "cookieless_server_hash_mode"); got != 0.0 {
		t.Errorf("the mode is %v", got)
	}
}

// TestBadSettings: what is refused changes nothing.
func TestBadSettings(t *testing.T) {
	w := apitest.New(t)
	other := w.NewProject(t)
	_, secret := w.NewKey(t, w.Project.ID, registry.Personal, "project:write")
	for _, tt := range []struct{ name, body, want string }{
		{"no name", `{"name": " "}`, "400 name required"},
		{"a name that is too long", `{"name": "` + strings.Repeat("x", 201) + `"}`, "400 name max_length"},
		{"null as name", `{"name": null}`, "400 name null"},
		{"no zone", `{"timezone": "Mars/Olympus"}`, "400 timezone invalid_choice"},
		{"an empty zone", `{"timezone": ""}`, "400 timezone invalid_choice"},
		{"no such day", `{"week_start_day": 5}`, "400 week_start_day invalid_choice"},
		{"a day that is not a number", `{"week_start_day": "x"}`, "400 week_start_day invalid_input"},
		{"test accounts that are not a list", `{"test_account_filters": {}}`, "400 test_account_filters not_a_list"},
		{"test accounts that are not filters", `{"test_account_filters": [1]}`, "400 test_account_filters invalid_input"},
		{"a rule that is not a regular expression", `{"path_cleaning_filters": [{"regex": "("}]}`, "400 path_cleaning_filters invalid_input"},
		{"names that are not strings", `{"person_display_name_properties": [1]}`, "400 person_display_name_properties invalid_input"},
		{"an invalid switch", `{"name": "changed", "surveys_opt_in": "perhaps"}`, "400 surveys_opt_in invalid_input"},
		{"addresses that are not a list", `{"name": "changed", "app_urls": "x"}`, "400 app_urls invalid_input"},
		{"a cookieless mode", `{"name": "changed", "cookieless_server_hash_mode": 2}`, "400 cookieless_server_hash_mode not_supported"},
		{"HogQL without the scope", `{"test_account_filters": [{"type": "hogql", "key": "1 = 1"}]}`, "403 <nil> permission_denied"},
		{"HogQL among more filters than an override can have", `{"test_account_filters": [{"type": "hogql", "key": "1 = 1"}` + strings.Repeat(", {}", 600) + `]}`, "403 <nil> permission_denied"},
		{"too much", `{"app_urls": ["` + strings.Repeat("x", 1<<20) + `"]}`, "400 <nil> record_too_large"},
		{"no JSON", `{`, "400 <nil> parse_error"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := w.Registry.Snapshot().Revision
			answer := w.SendAs(t, secret, http.MethodPatch, "/api/projects/1/", tt.body)
			got := fmt.Sprint(answer.Code, " ", apitest.FieldOf(t, answer, "attr"), " ", apitest.FieldOf(t, answer, "code"))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", answer.Body, diff)
			}
			if after := w.Registry.Snapshot().Revision; after != before {
				t.Error("it changed something")
			}
		})
	}
	if answer := w.SendAs(t, secret, http.MethodPatch, fmt.Sprintf("/api/projects/%d/", other.ID), `{"name": "stolen"}`); answer.Code != http.StatusForbidden {
		t.Errorf("another project answers %d %s", answer.Code, answer.Body)
	}
	_, reader := w.NewKey(t, w.Project.ID, registry.Personal, "project:read")
	if answer := w.SendAs(t, reader, http.MethodPatch, "/api/projects/1/", `{"name": "stolen"}`); answer.Code != http.StatusForbidden {
		t.Errorf("a reader gets %d %s", answer.Code, answer.Body)
	}
}

// TestMembers lists the users of a project's keys.
func TestMembers(t *testing.T) {
	w := apitest.New(t)
	other := w.NewProject(t)
	w.NewKey(t, other.ID, registry.Personal, "query:read")
	w.NewKey(t, w.Project.ID, registry.Secret, "endpoint:read")
	revoked, _ := w.NewKey(t, w.Project.ID, registry.Personal, "query:read")
	if _, err := w.Registry.RevokeKey(t.Context(), revoked.ID, apitest.Began); err != nil {
		t.Fatal(err)
	}
	key, secret := w.NewKey(t, w.Project.ID, registry.Personal, "organization_member:read")
	get := func(path string) (int, any) {
		answer := w.SendAs(t, secret, "GET", "/api/organizations/@current/members/"+path, "")
		return answer.Code, apitest.FieldOf(t, answer, "count")
	}
	for path, want := range map[string]any{
		"": 2.0, "?search=nobody": 0.0, "?email=" + fmt.Sprintf("user-%d@analytics.invalid", key.User): 1.0, "?updated_after=2100-01-01": 0.0, "?updated_after=2100-01-01T12:00": 0.0, "?limit=1": 2.0,
		"?levels=15": 2.0, "?levels=1,8": 0.0, "?levels=8,15": 2.0, "?email_domain=Analytics.invalid": 2.0, "?email_domain=invalid": 0.0,
	} {
		if code, count := get(path); code != http.StatusOK || count != want {
			t.Errorf("%q: %d with %v members, want %v", path, code, count, want)
		}
	}
	me := w.SendAs(t, secret, "GET", "/api/organizations/@current/members/@me/", "")
	if user, _ := apitest.FieldOf(t, me, "user").(map[string]any); user["distinct_id"] != key.ID || apitest.FieldOf(t, me, "level") != 15.0 {
		t.Errorf("@me is %d %s", me.Code, me.Body)
	}
	for path, want := range map[string]int{
		"GET ?order=age": 400, "GET ?updated_after=soon": 400, "GET nobody/": 404, "PATCH @me/": 405, "DELETE @me/": 405, "POST ": 405,
	} {
		method, path, _ := strings.Cut(path, " ")
		if answer := w.SendAs(t, secret, method, "/api/organizations/@current/members/"+path, "{}"); answer.Code != want {
			t.Errorf("%s %s answers %d %s, want %d", method, path, answer.Code, answer.Body, want)
		}
	}
}
