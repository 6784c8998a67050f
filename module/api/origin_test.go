package api

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestOriginOfTrustedProxies: the headers of a proxy are used only if it is trusted, and only if they are fit for a link.
func TestOriginOfTrustedProxies(t *testing.T) {
	headers := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Add(pairs[i], pairs[i+1])
		}
		return h
	}
	const proto, host = "X-Forwarded-Proto", "X-Forwarded-Host"
	for _, tt := range []struct {
		name    string
		header  http.Header
		trusted bool
		public  string
		want    string
	}{
		{"no headers", nil, true, "", "http://inner:8080"},
		{"both", headers(proto, "https", host, "api.example.com"), true, "", "https://api.example.com"},
		{"the scheme alone", headers(proto, "https"), true, "", "https://inner:8080"},
		{"the host alone", headers(host, "api.example.com:444"), true, "", "http://api.example.com:444"},
		{"not trusted", headers(proto, "https", host, "api.example.com"), false, "", "http://inner:8080"},
		{"public_url", headers(proto, "https", host, "api.example.com"), true, "https://public.example", "https://public.example"},
		{"another scheme", headers(proto, "javascript", host, "api.example.com"), true, "", "http://api.example.com"},
		{"an odd host", headers(host, "evil.com/path?"), true, "", ""},
		{"the nearest of several proxies", headers(proto, "http, https", host, "evil.com, api.example.com"), true, "", "https://api.example.com"},
		{"the last line", headers(host, "evil.com", host, "api.example.com"), true, "", "http://api.example.com"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "http://inner:8080/", http.NoBody)
			if tt.header != nil {
				r.Header = tt.header
			}
			in := &Input{Request: r, Origins: Origins{PublicURL: tt.public, FromTrustedProxy: func(*http.Request) bool { return tt.trusted }}}
			if got := in.Origin(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
