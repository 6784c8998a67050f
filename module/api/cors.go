package api

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
)

// Header values of responses to pages of other sites.
const (
	preflightMethods = "GET, HEAD, POST"
	preflightHeaders = "Authorization, Content-Type, Accept, If-None-Match, X-Request-Id"
	preflightAge     = "7200" // seconds; browsers take no more
	exposedHeaders   = "Age, Cache-Status, Content-Disposition, Deprecation, ETag, Next-Cursor, RateLimit, RateLimit-Policy, Retry-After, Server-Timing, Sunset, X-Request-Id"
)

// isPreflight reports whether a browser asks if a page of another site may run an endpoint. Such a request carries no token.
func isPreflight(in *Input, m Methods) bool {
	return in.Method == http.MethodOptions && in.At.Resource == "endpoints" && m[http.MethodPost] != nil && m[http.MethodPost].SecretKeys &&
		in.Header.Get("Origin") != "" && in.Header.Get("Access-Control-Request-Method") != ""
}

// preflight lets the browser send its request from any site: the token in that request decides which sites may read the response. The response to the
// preflight reveals nothing.
func preflight(_ context.Context, _ *Caller, in *Input) (*Response, error) {
	return &Response{Status: http.StatusNoContent, Cache: Unsaid, Header: http.Header{
		"Access-Control-Allow-Origin":  {in.Header.Get("Origin")},
		"Access-Control-Allow-Methods": {preflightMethods},
		"Access-Control-Allow-Headers": {preflightHeaders},
		"Access-Control-Max-Age":       {preflightAge},
		"Vary":                         {"Origin"},
	}}, nil
}

// allowOrigin lets pages of a token's origins read the response, and refuses all others. A token without origins is not meant for pages of other sites: its
// responses allow no origin.
func allowOrigin(h http.Header, r *http.Request, origins []string) error {
	if len(origins) == 0 {
		return nil
	}
	values := &[...]string{Vary, exposedHeaders}
	h["Vary"] = values[0:1:1]
	origin := r.Header["Origin"]
	if len(origin) != 1 || !slices.Contains(origins, origin[0]) {
		return Forbidden("This token cannot be used from this origin.")
	}
	h["Access-Control-Allow-Origin"] = origin
	h["Access-Control-Expose-Headers"] = values[1:2:2]
	return nil
}

// ParseOrigin parses an origin and returns it as browsers write it: in lower case, a name with other characters than ASCII in Punycode.
func ParseOrigin(text string) (string, error) {
	mistake := func() error {
		return fmt.Errorf("%q is not a valid origin (want, for example, https://app.example.com)", text)
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Hostname() == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" ||
		strings.ContainsAny(text, "*# ") || u.Scheme != "http" && u.Scheme != "https" {
		return "", mistake()
	}
	host, port := strings.ToLower(u.Hostname()), u.Port()
	if strings.ContainsFunc(host, func(c rune) bool { return c > unicode.MaxASCII }) {
		if host, err = idna.Lookup.ToASCII(host); err != nil {
			return "", mistake()
		}
	}
	if port == "80" && u.Scheme == "http" || port == "443" && u.Scheme == "https" {
		port = ""
	}
	if port != "" {
		return u.Scheme + "://" + net.JoinHostPort(host, port), nil
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return u.Scheme + "://" + host, nil
}
