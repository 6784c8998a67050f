package e2e_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// TestNeighbors: a site's other directives answer requests that the API has no route for, redirects and authentication come before it, and a request
// that nothing answers gets a 404 instead of an empty 200.
func TestNeighbors(t *testing.T) {
	s := harness.Start(t)
	id, key := s.Project(t, "neighbors")
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/page.html", []byte("a page"), 0o600); err != nil {
		t.Fatal(err)
	}
	site := func(lines string) {
		t.Helper()
		if err := os.WriteFile(s.Caddyfile(), []byte(s.Config(lines)), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := s.Reload(); err != nil {
			t.Fatal(err)
		}
	}
	get := func(path string, status int, part string) {
		t.Helper()
		client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		answer, err := client.Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode != status || !strings.Contains(string(body)+answer.Header.Get("Location"), part) {
			t.Errorf("%s answers %d %q, want %d with %q", path, answer.StatusCode, body, status, part)
		}
		if status == http.StatusNotFound && !json.Valid(body) {
			t.Errorf("%s answers %q, which is not JSON", path, body)
		}
	}
	api := func(status int) {
		t.Helper()
		if answer := s.Client(id, key).HogQL(t, "select 1"); answer.Status != status {
			t.Errorf("the API answers %d %s, want %d", answer.Status, answer.Raw, status)
		}
	}

	for _, path := range []string{"/", "/healthz", "/readyz", "/index.html", "/apis/", "/favicon.ico"} {
		get(path, http.StatusNotFound, `"not_found"`)
	}
	get("/plain", http.StatusOK, "plain")
	get("/api/nothing/", http.StatusNotFound, `"not_found"`)
	api(http.StatusOK)

	site("respond \"the rest\"\n\tredir /old /new\n\thandle /app/* {\n\t\trespond \"app\"\n\t}\n\thandle_path /files/* {\n\t\troot " + dir + "\n\t\tfile_server\n\t}\n\trespond /nothing 200")
	get("/", http.StatusOK, "the rest")
	get("/app/x", http.StatusOK, "app")
	get("/old", http.StatusFound, "/new")
	get("/files/page.html", http.StatusOK, "a page")
	get("/api/nothing/", http.StatusNotFound, `"not_found"`)
	api(http.StatusOK)

	site("@none path /none\n\trespond @none 200\n\terror /broken 500\n\thandle /caught {\n\t\terror 418\n\t}\n\thandle_errors {\n\t\trespond \"caught {err.status_code}\"\n\t}")
	get("/none", http.StatusOK, "")
	get("/broken", http.StatusInternalServerError, "caught 500")
	get("/caught", http.StatusTeapot, "caught 418")
	get("/other", http.StatusNotFound, `"not_found"`)
	api(http.StatusOK)

	site("redir https://example.com{uri}")
	get("/anything", http.StatusFound, "https://example.com/anything")
	api(http.StatusFound)
}

// TestLinksBehindProxies: links start with the URL that the client used at a trusted proxy. Headers from anyone else are ignored.
func TestLinksBehindProxies(t *testing.T) {
	s := harness.Start(t)
	_, key := s.Project(t, "behind a proxy")
	previous := func() string {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/api/projects/@current/insights/?limit=1&offset=1", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+key)
		request.Header.Set("X-Forwarded-Proto", "https")
		request.Header.Set("X-Forwarded-Host", "api.example.com")
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		var page struct{ Previous string }
		if err := json.NewDecoder(answer.Body).Decode(&page); err != nil {
			t.Fatal(err)
		}
		return page.Previous
	}
	const path = "/api/projects/@current/insights/?limit=1"
	if got, want := previous(), s.URL+path; got != want {
		t.Errorf("without trusted_proxies: got %q, want %q", got, want)
	}
	config := strings.Replace(s.Config(""), "auto_https off", "auto_https off\n\tservers {\n\t\ttrusted_proxies static private_ranges\n\t}", 1)
	if err := os.WriteFile(s.Caddyfile(), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	if got, want := previous(), "https://api.example.com"+path; got != want {
		t.Errorf("with trusted_proxies: got %q, want %q", got, want)
	}
}
