package console_test

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/console"
)

const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'none'"

// dist is a console as npm builds it.
var dist = fstest.MapFS{
	"other.txt":                 {Data: []byte("not of the console")},
	".gitignore":                {Data: []byte("*")},
	"index.html":                {Data: []byte("<!doctype html>page")},
	"index.html.br":             {Data: []byte("page as br")},
	"index.html.gz":             {Data: []byte("page as gzip")},
	"console/main-ABC.js":       {Data: []byte("script")},
	"console/main-ABC.js.gz":    {Data: []byte("script as gzip")},
	"console/chunks/big-DEF.js": {Data: []byte("chunk")},
	"console/icon-GHI.svg":      {Data: []byte("<svg/>")},
}

func open(t *testing.T, files fs.FS) *console.Console {
	t.Helper()
	c, err := console.New(files)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func ask(c http.Handler, method, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, http.NoBody)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	return w
}

func TestServes(t *testing.T) {
	for path, want := range map[string]bool{
		"/": true, "/project/1/insights/new": true, "/project/": true, "/console/main-ABC.js": true,
		"/project": false, "/projects/1": false, "/index.html": false, "/api/projects/": false, "/consoles": false, "": false,
	} {
		if got := console.Serves(path); got != want {
			t.Errorf("Serves(%q) = %v", path, got)
		}
	}
}

func TestFiles(t *testing.T) {
	const forever, html = "public, max-age=31536000, immutable", "text/html; charset=utf-8"
	for _, tt := range []struct {
		name, path, accept string
		want               string // status, type, caching, encoding, body
	}{
		{"the page", "/", "", "200|" + html + "|no-cache||<!doctype html>page"},
		{"the page of a path", "/project/7/dashboard/3", "gzip, br", "200|" + html + "|no-cache|br|page as br"},
		{"a path that climbs", "/project/../../etc/passwd", "", "200|" + html + "|no-cache||<!doctype html>page"},
		{"gzip before brotli", "/", "br;q=0.5, gzip;q=0.8", "200|" + html + "|no-cache|gzip|page as gzip"},
		{"no brotli", "/", "br;q=0, *;q=0.1", "200|" + html + "|no-cache|gzip|page as gzip"},
		{"neither", "/", "zstd, identity", "200|" + html + "|no-cache||<!doctype html>page"},
		{"a script", "/console/main-ABC.js", "br", "200|text/javascript; charset=utf-8|" + forever + "||script"},
		{"a compressed script", "/console/main-ABC.js", "br, gzip;q=0.1", "200|text/javascript; charset=utf-8|" + forever + "|gzip|script as gzip"},
		{"a chunk", "/console/chunks/big-DEF.js", "", "200|text/javascript; charset=utf-8|" + forever + "||chunk"},
		{"a picture", "/console/icon-GHI.svg", "", "200|image/svg+xml|" + forever + "||<svg/>"},
		{"no such file", "/console/main-OLD.js", "", "404|text/plain; charset=utf-8|no-store||Not found.\n"},
		{"the compressed file as such", "/console/main-ABC.js.gz", "", "404|text/plain; charset=utf-8|no-store||Not found.\n"},
		{"the page as a file", "/console/index.html", "", "404|text/plain; charset=utf-8|no-store||Not found.\n"},
		{"a file of the repository", "/console/.gitignore", "", "404|text/plain; charset=utf-8|no-store||Not found.\n"},
		{"a file beside", "/console/other.txt", "", "404|text/plain; charset=utf-8|no-store||Not found.\n"},
		{"a folder", "/console/chunks/", "", "404|text/plain; charset=utf-8|no-store||Not found.\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := open(t, dist)
			got := ask(c, http.MethodGet, tt.path, "Accept-Encoding", tt.accept)
			h := got.Header()
			answer := strings.Join([]string{
				strings.Fields(got.Result().Status)[0], h.Get("Content-Type"), h.Get("Cache-Control"), h.Get("Content-Encoding"), got.Body.String(),
			}, "|")
			if diff := cmp.Diff(tt.want, answer); diff != "" {
				t.Errorf("GET %s (-want +got):\n%s", tt.path, diff)
			}
			head := ask(c, http.MethodHead, tt.path, "Accept-Encoding", tt.accept)
			if head.Code != got.Code || head.Header().Get("Content-Length") != h.Get("Content-Length") || head.Header().Get("Etag") != h.Get("Etag") {
				t.Errorf("HEAD %s answers %d %v, GET %v", tt.path, head.Code, head.Header(), h)
			}
		})
	}
}

func TestSecurityHeaders(t *testing.T) {
	for name, files := range map[string]fs.FS{"built": dist, "not built": fstest.MapFS{}} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			for _, path := range []string{"/", "/project/1", "/console/main-ABC.js", "/console/nothing"} {
				h := ask(open(t, files), method, path).Header()
				got := map[string]string{}
				for _, header := range []string{
					"Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy", "Cross-Origin-Opener-Policy", "Cross-Origin-Resource-Policy",
				} {
					got[header] = h.Get(header)
				}
				want := map[string]string{
					"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
					"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s: %s %s (-want +got):\n%s", name, method, path, diff)
				}
			}
		}
	}
}

// TestHeadersAreItsOwn: a handler around the console may write into the headers of an answer.
func TestHeadersAreItsOwn(t *testing.T) {
	c := open(t, dist)
	ask(c, http.MethodGet, "/").Header()["Content-Security-Policy"][0] = "none"
	if got := ask(c, http.MethodGet, "/").Header().Get("Content-Security-Policy"); got != policy {
		t.Errorf("the next answer has the policy %q", got)
	}
}

func TestETag(t *testing.T) {
	c := open(t, dist)
	plain := ask(c, http.MethodGet, "/").Header().Get("Etag")
	small := ask(c, http.MethodGet, "/", "Accept-Encoding", "br")
	if plain == "" || plain == small.Header().Get("Etag") {
		t.Errorf("the tags are %s and %s", plain, small.Header().Get("Etag"))
	}
	if got := small.Header().Get("Content-Length"); got != "10" {
		t.Errorf("Content-Length %q", got)
	}
	if got := ask(c, http.MethodGet, "/project/1", "If-None-Match", plain); got.Code != http.StatusNotModified || got.Body.Len() > 0 {
		t.Errorf("with its tag: %d %q", got.Code, got.Body)
	}
	if got := ask(c, http.MethodGet, "/", "If-None-Match", plain, "Accept-Encoding", "br"); got.Code != http.StatusOK {
		t.Errorf("with the tag of another encoding: %d", got.Code)
	}
}

func TestMethods(t *testing.T) {
	for _, path := range []string{"/", "/project/1", "/console/main-ABC.js", "/console/nothing"} {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions} {
			if got := ask(open(t, dist), method, path); got.Code != http.StatusMethodNotAllowed || got.Header().Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s answers %d, Allow: %q", method, path, got.Code, got.Header().Get("Allow"))
			}
		}
	}
}

func TestWithoutConsole(t *testing.T) {
	c := open(t, fstest.MapFS{".gitignore": {Data: []byte("*")}})
	for _, path := range []string{"/", "/project/1/sql"} {
		got := ask(c, http.MethodGet, path)
		if got.Code != http.StatusNotImplemented || got.Header().Get("Content-Type") != "text/html; charset=utf-8" || !strings.Contains(got.Body.String(), "make build") {
			t.Errorf("%s answers %d %s: %s", path, got.Code, got.Header().Get("Content-Type"), got.Body)
		}
		for _, inline := range []string{"<style", "style=", "<script", "onload"} {
			if strings.Contains(got.Body.String(), inline) {
				t.Errorf("the page has %s, which its policy stops", inline)
			}
		}
	}
}

// TestEmbedded opens what this binary was built with, whether npm was there or not.
func TestEmbedded(t *testing.T) {
	c, err := console.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(c, http.MethodGet, "/"); got.Code != http.StatusOK && got.Code != http.StatusNotImplemented {
		t.Errorf("the page answers %d", got.Code)
	}
}
