package e2e_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBrowserTokens follows a token from issue to expiry, as a backend, a page and an operator see it.
func TestBrowserTokens(t *testing.T) {
	c := customers(t)
	backend := boundKey(t, c, "secret", "--label", "backend")
	const site, other = "https://app.example.com", "https://evil.example.com"
	issue := func() string {
		t.Helper()
		answer := must(t, backend, http.StatusCreated, http.MethodPost, "endpoint_tokens/", map[string]any{
			"endpoints": []string{"orders", "trend"}, "variables": map[string]any{"customer": "acme"}, "expires_in": 300, "origins": []string{site}, "rate": "60/m",
		})
		if expires, _ := answer["expires_at"].(string); !strings.HasSuffix(expires, "Z") {
			t.Errorf("expires_at: %v", answer["expires_at"])
		}
		return answer["token"].(string)
	}
	page := server.Client(c.Project, issue())
	page.Header = http.Header{"Origin": {site}}

	ask := server.Client(c.Project, "")
	ask.Header = http.Header{"Origin": {site}, "Access-Control-Request-Method": {"POST"}, "Access-Control-Request-Headers": {"authorization,content-type"}}
	if answer := ask.Do(t, http.MethodOptions, "endpoints/orders/run", nil); answer.Status != http.StatusNoContent || answer.Header.Get("Access-Control-Allow-Origin") != site {
		t.Errorf("a preflight is answered %d %v", answer.Status, answer.Header)
	}
	for _, want := range []string{"fwd=miss", "hit"} {
		answer := page.Do(t, http.MethodPost, "endpoints/orders/run", map[string]any{})
		if diff := cmp.Diff([]any{[]any{"acme-1", "note of acme"}, []any{"acme-3", "note of acme"}}, answer.Body["results"]); diff != "" {
			t.Fatalf("%d %s: rows (-want +got):\n%s", answer.Status, answer.Raw, diff)
		}
		if got := answer.Header.Get("Access-Control-Allow-Origin"); got != site || !strings.Contains(answer.Header.Get("Cache-Status"), want) {
			t.Errorf("Access-Control-Allow-Origin: %q, Cache-Status: %q", got, answer.Header.Get("Cache-Status"))
		}
	}
	for _, format := range []string{"run.csv", "run.ndjson", "run.objects"} {
		answer := page.Do(t, http.MethodPost, "endpoints/orders/"+format, nil)
		if answer.Status != http.StatusOK || strings.Contains(string(answer.Raw), "globex") || answer.Header.Get("Access-Control-Allow-Origin") != site {
			t.Errorf("%s: %d %s", format, answer.Status, answer.Raw)
		}
	}
	for _, tt := range []struct {
		method, path, body, origin string
		status                     int
	}{
		{"POST", "endpoints/trend/run", `{}`, site, 200},
		{"POST", "endpoints/orders/run", `{"variables": {"customer": "globex"}}`, site, 403},
		{"POST", "endpoints/fails/run", `{}`, site, 403},
		{"POST", "endpoints/orders/run", `{}`, other, 403},
		{"GET", "endpoints/", ``, site, 403},
		{"GET", "endpoints/orders/openapi.json", ``, site, 403},
		{"POST", "query/", `{"query": {"kind": "HogQLQuery", "query": "select 1"}}`, site, 401},
		{"POST", "endpoint_tokens/", `{"endpoints": ["orders"]}`, site, 403},
	} {
		page.Header.Set("Origin", tt.origin)
		answer := page.Do(t, tt.method, tt.path, tt.body)
		if allowed := answer.Header.Get("Access-Control-Allow-Origin"); answer.Status != tt.status || (allowed == site) != (tt.origin == site) || allowed == other {
			t.Errorf("%s from %s: %d %s, Access-Control-Allow-Origin: %q", tt.path, tt.origin, answer.Status, answer.Raw, allowed)
		}
	}
	page.Header.Set("Origin", site)
	works := func(want bool) {
		t.Helper()
		if answer := page.Do(t, http.MethodPost, "endpoints/orders/run", "{}"); (answer.Status == http.StatusOK) != want || !want && answer.Status != http.StatusUnauthorized {
			t.Errorf("%d %s", answer.Status, answer.Raw)
		}
	}
	project := strconv.FormatInt(c.Project, 10)
	c.Server.MustCommand(t, nil, nil, "token", "rotate", "--project", project)
	works(true)
	c.Server.MustCommand(t, nil, nil, "token", "rotate", "--project", project, "--revoke")
	works(false)
	page.Key = issue()
	works(true)
	var keys struct {
		Keys []struct{ ID, Label string }
	}
	c.Server.MustCommand(t, &keys, nil, "key", "list", "--project", project)
	for _, key := range keys.Keys {
		if key.Label == "backend" {
			c.Server.MustCommand(t, nil, nil, "key", "revoke", key.ID)
		}
	}
	works(false)
	if log := c.Server.Log(); strings.Contains(log, page.Key) {
		t.Error("the log holds a token")
	}
}
