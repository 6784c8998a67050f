package e2e_test

import (
	"encoding/json"
	"fmt"
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

	if err := os.WriteFile(dir+"/index.html", []byte("the app"), 0o600); err != nil {
		t.Fatal(err)
	}
	site("handle {\n\t\troot " + dir + "\n\t\ttry_files {path} /index.html\n\t\tfile_server\n\t}")
	get("/", http.StatusOK, "the app")
	get("/page.html", http.StatusOK, "a page")
	get("/some/route", http.StatusOK, "the app")
	get("/api/nothing/", http.StatusNotFound, `"not_found"`)
	api(http.StatusOK)

	site("redir https://example.com{uri}")
	get("/anything", http.StatusFound, "https://example.com/anything")
	api(http.StatusFound)
}

// TestBelowAPath: below a path of its own, the API and capture work, and links stay below the path.
func TestBelowAPath(t *testing.T) {
	s := harness.Start(t)
	if err := os.WriteFile(s.Caddyfile(), []byte(s.Config("handle_path /analytics/* {\n\t\tanalytics\n\t}")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	c := s.Client(s.Project(t, "below"))
	below := fmt.Sprintf("/analytics/api/projects/%d/", c.Project)
	page := mustDo(t, c, http.StatusOK, http.MethodGet, below+"insights/?limit=1&offset=1", nil)
	if want := s.URL + below + "insights/?limit=1"; page["previous"] != want {
		t.Errorf("previous is %v, want %s", page["previous"], want)
	}
	made := mustDo(t, c, http.StatusCreated, http.MethodPost, below+"endpoints/", map[string]any{"name": "one", "query": hogQL("select 1 as n")})
	url, _ := made["url"].(string)
	path, found := strings.CutPrefix(url, s.URL)
	if !found || !strings.HasPrefix(path, "/analytics/api/") {
		t.Errorf("the URL of an endpoint is %s", url)
	}
	mustDo(t, c, http.StatusOK, http.MethodPost, path, nil)
	token, err := s.CaptureToken(c.Project)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/analytics/i/v0/e/", "/analytics/flags/?v=2"} {
		if answer := c.Do(t, http.MethodPost, path, map[string]any{"api_key": token, "event": "seen", "distinct_id": "a"}); answer.Status != http.StatusOK {
			t.Errorf("%s answers %d %s", path, answer.Status, answer.Raw)
		}
	}
}

// TestKnownUnderEncode: with Caddy's encode on the site, a client that sends the tag of a compressed response gets a 304.
func TestKnownUnderEncode(t *testing.T) {
	s := harness.Start(t)
	if err := os.WriteFile(s.Caddyfile(), []byte(s.Config("encode zstd gzip")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Reload(); err != nil {
		t.Fatal(err)
	}
	c := s.Client(s.Project(t, "encode"))
	query := hogQL("select number from numbers(100, 900)")
	insight, _ := saveInsight(t, c, map[string]any{"name": "numbers", "query": query})
	mustDo(t, c, http.StatusOK, http.MethodGet, insight+"?refresh=blocking", nil)
	mustDo(t, c, http.StatusCreated, http.MethodPost, "endpoints/", map[string]any{"name": "numbers", "query": query})
	mustDo(t, c, http.StatusOK, http.MethodPost, "endpoints/numbers/run", nil)
	for _, route := range []struct{ method, path string }{
		{http.MethodGet, insight},
		{http.MethodGet, "endpoints/numbers/run"},
		{http.MethodPost, "endpoints/numbers/run"},
		{http.MethodGet, "endpoints/numbers/openapi.json"},
	} {
		for _, encoding := range []string{"identity", "gzip", "zstd"} {
			c.Header = http.Header{"Accept-Encoding": {encoding}}
			first := c.Do(t, route.method, route.path, nil)
			if got := first.Header.Get("Content-Encoding"); first.Status != http.StatusOK || got != strings.TrimPrefix(encoding, "identity") {
				t.Errorf("%s %s as %s answers %d in %q", route.method, route.path, encoding, first.Status, got)
			}
			c.Header.Set("If-None-Match", first.Header.Get("Etag"))
			if again := c.Do(t, route.method, route.path, nil); again.Status != http.StatusNotModified {
				t.Errorf("%s %s as %s with the tag %s answers %d", route.method, route.path, encoding, first.Header.Get("Etag"), again.Status)
			}
		}
	}
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
