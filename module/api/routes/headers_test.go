package routes_test

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestHeadersAreItsOwn: a replacement by Caddy's header directive writes into the values of a response's headers, and must not change those of the next response.
func TestHeadersAreItsOwn(t *testing.T) {
	w := apitest.NewWithEndpoints(t)
	w.RememberRuns(t, "acme")
	_, secret := w.NewKey(t, w.Project.ID, registry.Secret, "endpoint:read")
	text := w.NewToken(t, secret, `{"endpoints": ["mine"], "variables": {"customer": "acme"}, "origins": ["https://app.example.com"]}`)
	token := []string{"Authorization", "Bearer " + text, "Origin", "https://app.example.com"}
	for _, tt := range []struct {
		name, method, path, body string
		header                   []string
		want                     int
	}{
		{"a hit", http.MethodPost, apitest.MinePath, "", token, http.StatusOK},
		{"a compressed hit", http.MethodGet, apitest.MinePath, "", append(token, "Accept-Encoding", "gzip"), http.StatusOK},
		{"rows as objects", http.MethodPost, "/api/projects/@current/endpoints/mine/run.objects", "", token, http.StatusOK},
		{"a preflight", http.MethodOptions, apitest.MinePath, "", []string{"Origin", "https://app.example.com", "Access-Control-Request-Method", "POST"}, http.StatusNoContent},
		{"another method", http.MethodDelete, apitest.MinePath, "", nil, http.StatusMethodNotAllowed},
		{"no such route", http.MethodGet, "/api/nothing", "", nil, http.StatusNotFound},
		{"an error", http.MethodPost, apitest.MinePath, `{`, token, http.StatusBadRequest},
	} {
		first := w.Send(t, tt.method, tt.path, tt.body, tt.header...)
		if first.Code != tt.want {
			t.Errorf("%s: %d %s", tt.name, first.Code, first.Body)
		}
		written := first.Header().Clone()
		for _, values := range first.Header() {
			for i := range values {
				values[i] += " replaced"
			}
		}
		changing := cmpopts.IgnoreMapEntries(func(name string, _ []string) bool {
			return name == "Server-Timing" || name == "Age" || name == "Ratelimit" || name == "X-Request-Id" || name == "Cache-Status"
		})
		if diff := cmp.Diff(written, w.Send(t, tt.method, tt.path, tt.body, tt.header...).Header(), changing); diff != "" {
			t.Errorf("%s: the headers of the next response (-want +got):\n%s", tt.name, diff)
		}
	}
}
