package module

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/rewrite"
)

// TestLinksNameNoOddHost: the request's host is used in links only if it is valid, and never if the config gives one.
func TestLinksNameNoOddHost(t *testing.T) {
	w := newWorld(t)
	for range 3 {
		w.NewEndpoint(t, "e"+strings.Repeat("x", len(w.Registry.Snapshot().Endpoints(w.Project.ID))), "select 1")
	}
	const path = "/api/projects/@current/endpoints/?limit=1&offset=1"
	for _, tt := range []struct{ public, host, want string }{
		{"", "example.com", "http://example.com"},
		{"", "127.0.0.1:8080", "http://127.0.0.1:8080"},
		{"", "[::1]:8080", "http://[::1]:8080"},
		{"", "my_host.internal", "http://my_host.internal"},
		{"", "", ""},
		{"", "evil.com/path?", ""},
		{"", "user@evil.com", ""},
		{"", `a"b`, ""},
		{"", "<script>", ""},
		{"", "a:b", ""},
		{"", "a:123456", ""},
		{"", "évil.com", ""},
		{"", strings.Repeat("a", 300), ""},
		{"https://api.example.com", "evil.com", "https://api.example.com"},
		{"https://api.example.com", "<script>", "https://api.example.com"},
	} {
		w.Origins.PublicURL = tt.public
		r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
		r.Host = tt.host
		r.Header.Set("Authorization", "Bearer "+w.Secret)
		answer := httptest.NewRecorder()
		w.NewAPI().ServeHTTP(answer, r)
		var list struct {
			Next    string
			Results []struct{ URL string }
		}
		if err := json.Unmarshal(answer.Body.Bytes(), &list); err != nil || len(list.Results) != 1 {
			t.Fatalf("%d %s", answer.Code, answer.Body)
		}
		if want := tt.want + "/api/projects/@current/endpoints/?limit=1&offset=2"; list.Next != want {
			t.Errorf("%q, host %q: next is %q, want %q", tt.public, tt.host, list.Next, want)
		}
		if url := list.Results[0].URL; !strings.HasPrefix(url, tt.want+"/api/environments/") {
			t.Errorf("%q, host %q: url is %q", tt.public, tt.host, url)
		}
	}
	for text, good := range map[string]bool{
		"https://api.example.com": true, "http://[::1]:8080": true, "https://api.example.com/": false, "https://a.b/c": false, "ftp://a.b": false,
		"api.example.com": false, "https://u@a.b": false, "https://": false, "https://a b": false,
	} {
		if err := CheckPublicURL(text); (err == nil) != good {
			t.Errorf("CheckPublicURL(%q) = %v", text, err)
		}
	}
}

// TestLinksStayBelowAPrefix: links begin with what Caddy cut off the path of the request.
func TestLinksStayBelowAPrefix(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"one", "two", "three"} {
		w.NewEndpoint(t, name, "select 1")
	}
	w.Origins.CutPrefix = cutPrefix
	for _, tt := range []struct {
		name, public, host, path string
		rewrite                  rewrite.Rewrite
		want                     string
	}{
		{"no prefix", "", "a.example", "", rewrite.Rewrite{}, "http://a.example"},
		{"a prefix", "", "a.example", "/analytics", rewrite.Rewrite{StripPathPrefix: "/analytics"}, "http://a.example/analytics"},
		{"a prefix of two parts", "", "a.example", "/x/y", rewrite.Rewrite{StripPathPrefix: "/x/y"}, "http://a.example/x/y"},
		{"one to escape", "", "a.example", "/x%20%22y", rewrite.Rewrite{StripPathPrefix: `/x "y`}, "http://a.example/x%20%22y"},
		{"with a public URL", "https://b.example", "a.example", "/analytics", rewrite.Rewrite{StripPathPrefix: "/analytics"}, "https://b.example"},
		{"without a valid host", "", "<script>", "/analytics", rewrite.Rewrite{StripPathPrefix: "/analytics"}, "/analytics"},
		{"another site", "", "<script>", "//evil.example", rewrite.Rewrite{StripPathPrefix: "//evil.example"}, ""},
		{"a rewritten path", "", "a.example", "/old", rewrite.Rewrite{URI: "/api/projects/@current/endpoints/"}, "http://a.example"},
	} {
		w.Origins.PublicURL = tt.public
		path := "/api/projects/@current/endpoints/"
		if tt.rewrite.URI != "" {
			path = ""
		}
		r := httptest.NewRequest(http.MethodGet, "http://a.example"+tt.path+path+"?limit=1&offset=1", http.NoBody)
		r.Host = tt.host
		r.Header.Set("Authorization", "Bearer "+w.Secret)
		answer := httptest.NewRecorder()
		repl := caddy.NewReplacer()
		r = caddyhttp.PrepareRequest(r, repl, answer, nil)
		tt.rewrite.Rewrite(r, repl)
		w.NewAPI().ServeHTTP(answer, r)
		var list struct {
			Next    string
			Results []struct{ URL string }
		}
		if err := json.Unmarshal(answer.Body.Bytes(), &list); err != nil || len(list.Results) != 1 {
			t.Fatalf("%s: %d %s", tt.name, answer.Code, answer.Body)
		}
		if want := tt.want + "/api/projects/@current/endpoints/?limit=1&offset=2"; list.Next != want {
			t.Errorf("%s: next is %q, want %q", tt.name, list.Next, want)
		}
		if url := list.Results[0].URL; !strings.HasPrefix(url, tt.want+"/api/environments/") {
			t.Errorf("%s: url is %q", tt.name, url)
		}
	}
}
