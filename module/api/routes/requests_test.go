package routes_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestAuthorizeOrder checks which refusal takes precedence: contract api.md, section 6.4.
func TestAuthorizeOrder(t *testing.T) {
	w := apitest.New(t)
	other := w.NewProject(t)
	secret, _ := w.NewKey(t, w.Project.ID, registry.Secret, "endpoint:read")
	reader, _ := w.NewKey(t, w.Project.ID, registry.Personal, "insight:read")
	own, foreign := strconv.FormatInt(w.Project.ID, 10), strconv.FormatInt(other.ID, 10)
	query, list, run := api.Address{Resource: "query"}, api.Address{Resource: "endpoints"}, api.Address{Resource: "endpoints", Name: "e", Action: "run"}
	const invalid = "401 authentication_failed: Personal API key found in request Authorization header is invalid."
	const secretQueries = "403 permission_denied: This is a project secret API key, which runs endpoints and does nothing else. Use a personal API key with the scope query:read."
	tests := []struct {
		name    string
		key     *registry.Key
		project string
		at      api.Address
		method  string
		want    string
	}{
		{"all is well", w.Key, own, query, http.MethodPost, ""},
		{"the current project", w.Key, "@current", query, http.MethodPost, ""},
		{"a secret key that runs", secret, own, run, http.MethodGet, ""},
		{"a secret key's kind before its project", secret, "999", query, http.MethodPost, secretQueries},
		{"a secret key where only personal ones are known", secret, own, api.Address{Resource: "insights"}, http.MethodGet, invalid},
		{"a secret key's kind before another project", secret, foreign, list, http.MethodGet, "403 permission_denied: This action does not support project secret API key access"},
		{"a secret key in another project", secret, foreign, run, http.MethodPost, fmt.Sprintf("403 permission_denied: API key does not have access to the requested project: ID %s.", foreign)},
		{"the project before the scope", reader, "999", query, http.MethodPost, "404 not_found: Project not found."},
		{"another project before the scope", reader, foreign, query, http.MethodPost, fmt.Sprintf("403 permission_denied: API key does not have access to the requested project: ID %s.", foreign)},
		{"the scope", reader, own, query, http.MethodPost, "403 permission_denied: API key missing required scope 'query:read'"},
		{"the scope to write", reader, own, list, http.MethodPost, "403 permission_denied: API key missing required scope 'endpoint:write'"},
		{"the scope of OPTIONS", reader, own, list, http.MethodOptions, "403 permission_denied: API key missing required scope 'endpoint:read'"},
		{"a project that is not a number", w.Key, "1e0", query, http.MethodPost, "404 not_found: Project not found."},
		{"a project with a sign", w.Key, "+" + own, query, http.MethodPost, "404 not_found: Project not found."},
		{"a project beyond 64 bits", w.Key, "99999999999999999999", query, http.MethodPost, "404 not_found: Project not found."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rt, ok := w.API.Methods(&tt.at).Of(tt.method)
			if !ok {
				t.Fatal("no such route")
			}
			_, err := api.Authorize(w.Registry.Snapshot(), tt.key, tt.project, &tt.at, rt)
			got := ""
			if err != nil {
				got = api.ErrorOf(err).Error()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("refusal (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMethods checks how each address answers unsupported methods.
func TestMethods(t *testing.T) {
	w := apitest.New(t)
	w.NewEndpoint(t, "e", "select 1")
	tests := []struct {
		method, path string
		status       int
		allow        string
	}{
		{http.MethodHead, "endpoints/", 200, ""},
		{http.MethodHead, "endpoints/e", 200, ""},
		{http.MethodHead, "query/", 405, "OPTIONS, POST"},
		{http.MethodOptions, "query/", 200, "OPTIONS, POST"},
		{http.MethodOptions, "endpoints/e/run/", 200, "GET, HEAD, OPTIONS, POST"},
		{http.MethodOptions, "nothing/", 404, ""},
		{http.MethodDelete, "endpoints/", 405, "GET, HEAD, OPTIONS, POST"},
		{http.MethodPost, "endpoints/e", 405, "DELETE, GET, HEAD, OPTIONS, PATCH, PUT"},
		{"get", "endpoints/", 405, "GET, HEAD, OPTIONS, POST"},
		{http.MethodTrace, "insight_variables/", 405, "GET, HEAD, OPTIONS, POST"},
	}
	for _, prefix := range []string{"projects", "environments"} {
		for _, tt := range tests {
			answer := w.Send(t, tt.method, "/api/"+prefix+"/@current/"+tt.path, "")
			if answer.Code != tt.status || answer.Header().Get("Allow") != tt.allow {
				t.Errorf("%s %s/%s answers %d, Allow: %q", tt.method, prefix, tt.path, answer.Code, answer.Header().Get("Allow"))
			}
		}
	}
}

// TestEveryAnswer checks what design section 7 requires of every answer.
func TestEveryAnswer(t *testing.T) {
	w := apitest.New(t)
	w.NewEndpoint(t, "e", "select 1")
	for _, tt := range []struct {
		method, path, body string
		status             int
	}{
		{http.MethodGet, "endpoints/", "", 200},
		{http.MethodPatch, "endpoints/e/", `{"description": "d"}`, 200},
		{http.MethodPost, "insight_variables/", `{"name": "v", "type": "String"}`, 201},
		{http.MethodDelete, "endpoints/e/", "", 204},
		{http.MethodDelete, "endpoints/e/", "", 404},
		{http.MethodPost, "query/", "{", 400},
	} {
		answer := w.Send(t, tt.method, "/api/projects/@current/"+tt.path, tt.body)
		h := answer.Header()
		if answer.Code != tt.status {
			t.Errorf("%s %s answers %d: %s", tt.method, tt.path, answer.Code, answer.Body)
		}
		if !regexp.MustCompile(`^total;dur=\d+\.\d{3}$`).MatchString(h.Get("Server-Timing")) {
			t.Errorf("%s %s: Server-Timing %q", tt.method, tt.path, h.Get("Server-Timing"))
		}
		if !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(h.Get("X-Request-Id")) || h.Get("Cache-Control") != "no-store" {
			t.Errorf("%s %s: X-Request-Id %q, Cache-Control %q", tt.method, tt.path, h.Get("X-Request-Id"), h.Get("Cache-Control"))
		}
		if length := h.Get("Content-Length"); tt.status != 204 && length != strconv.Itoa(answer.Body.Len()) {
			t.Errorf("%s %s: Content-Length %q of %d bytes", tt.method, tt.path, length, answer.Body.Len())
		}
	}
}
