package e2e_test

import (
	"net/http"
	"testing"
)

// TestAuthErrors checks each refusal of contract api.md, section 6.5.
func TestAuthErrors(t *testing.T) {
	c := newProject(t)
	reader := server.Key(t, c.Project, "insight:read", "personal")
	secret := server.Key(t, c.Project, "endpoint:read", "secret")
	const invalid = "Personal API key found in request Authorization header is invalid."
	const secretQueries = "This is a project secret API key, which runs endpoints and does nothing else. Use a personal API key with the scope query:read."
	tests := []struct {
		name, header, method, path string
		status                     int
		code, detail               string
	}{
		{"no key", "", "POST", "query/", 401, "not_authenticated", "Authentication credentials were not provided."},
		{"another scheme", "Basic abc", "POST", "query/", 401, "not_authenticated", "Authentication credentials were not provided."},
		{"lower-case scheme", "bearer " + c.Key, "POST", "query/", 401, "not_authenticated", "Authentication credentials were not provided."},
		{"unknown key", "Bearer phx_nosuchkey", "POST", "query/", 401, "authentication_failed", invalid},
		{"unknown secret key", "Bearer phs_nosuchkey", "POST", "endpoints/x/run", 401, "authentication_failed", invalid},
		{"empty key", "Bearer ", "POST", "query/", 401, "not_authenticated", "Authentication credentials were not provided."},
		{"missing scope", "Bearer " + reader, "POST", "query/", 403, "permission_denied", "API key missing required scope 'query:read'"},
		{"secret key on the query route", "Bearer " + secret, "POST", "query/", 403, "permission_denied", secretQueries},
		{"secret key on insights", "Bearer " + secret, "GET", "insights/", 401, "authentication_failed", invalid},
		{"secret key that publishes", "Bearer " + secret, "POST", "endpoints/", 403, "permission_denied", "This action does not support project secret API key access"},
		{"unknown project", "Bearer " + c.Key, "POST", "/api/projects/999999/query/", 404, "not_found", "Project not found."},
		{"no number", "Bearer " + c.Key, "POST", "/api/projects/main/query/", 404, "not_found", "Project not found."},
		{"wrong method", "Bearer " + c.Key, "DELETE", "query/", 405, "method_not_allowed", `Method "DELETE" not allowed.`},
		{"no route", "Bearer " + c.Key, "GET", "nosuchthing/", 404, "not_found", "Not found."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			one := server.Client(c.Project, "")
			if one.Header = (http.Header{}); tt.header != "" {
				one.Header.Set("Authorization", tt.header)
			}
			answer := one.Do(t, tt.method, tt.path, "{}")
			if answer.Status != tt.status || answer.Body["code"] != tt.code || answer.Body["detail"] != tt.detail || answer.Body["attr"] != nil {
				t.Errorf("answered %d %s", answer.Status, answer.Raw)
			}
			if challenge := answer.Header.Get("WWW-Authenticate"); (tt.status == 401) != (challenge != "") {
				t.Errorf("WWW-Authenticate: %q", challenge)
			}
			if got := answer.Header.Get("Cache-Control"); got != "no-store" {
				t.Errorf("Cache-Control: %q", got)
			}
		})
	}
	if answer := server.Client(c.Project, c.Key).Do(t, "POST", "/api/projects/@current/query/", map[string]any{
		"query": map[string]any{"kind": "HogQLQuery", "query": "select 1"},
	}); answer.Status != 200 {
		t.Errorf("@current: %d %s", answer.Status, answer.Raw)
	}
}

// TestKeyInQueryStringIsNoKey: a key there would end up in every access log.
func TestKeyInQueryStringIsNoKey(t *testing.T) {
	c := newProject(t)
	one := server.Client(c.Project, "")
	if answer := one.Do(t, "GET", "endpoints/?personal_api_key="+c.Key, nil); answer.Status != 401 {
		t.Errorf("answered %d", answer.Status)
	}
}
