package capture

import (
	"net/http"

	"github.com/caddy-analytics/caddy-analytics/module/api"
)

// allowOrigin lets pages of any site read the response: a token is not secret, and can only write.
func allowOrigin(h http.Header, r *http.Request) {
	h["Vary"] = []string{"Origin"}
	origin := r.Header["Origin"]
	if len(origin) != 1 {
		return
	}
	h["Access-Control-Allow-Origin"] = origin
	h["Access-Control-Allow-Credentials"] = []string{"true"}
	h["Access-Control-Expose-Headers"] = []string{"Retry-After"}
}

// preflight lets a browser send the request that it asks about.
func preflight(r *http.Request, methods []string) *api.Response {
	h := http.Header{
		"Allow":                        {allowed(methods)},
		"Access-Control-Allow-Methods": {"GET, POST, OPTIONS"},
		"Access-Control-Max-Age":       {"7200"}, // seconds; browsers take no more
	}
	if asked := r.Header["Access-Control-Request-Headers"]; len(asked) > 0 {
		h["Access-Control-Allow-Headers"] = asked
	}
	return &api.Response{Status: http.StatusNoContent, Cache: api.Unsaid, Header: h}
}
