package module

import (
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddytls"
)

// TestFindConsole: the command's link begins with the site that has the console, as the config describes it.
func TestFindConsole(t *testing.T) {
	hosts := func(names ...string) caddyhttp.MatcherSets {
		host := caddyhttp.MatchHost(names)
		return caddyhttp.MatcherSets{{&host}}
	}
	site := func(matchers caddyhttp.MatcherSets, handler caddyhttp.MiddlewareHandler) caddyhttp.RouteList {
		within := &caddyhttp.Subroute{Routes: caddyhttp.RouteList{{Handlers: []caddyhttp.MiddlewareHandler{handler}}}}
		return caddyhttp.RouteList{{MatcherSets: matchers, Handlers: []caddyhttp.MiddlewareHandler{within}}}
	}
	here, none := &Handler{Console: true}, new(Handler)
	secure := caddytls.ConnectionPolicies{new(caddytls.ConnectionPolicy)}
	tests := []struct {
		name    string
		servers map[string]*caddyhttp.Server
		want    string
	}{
		{"no site", nil, ""},
		{"no console", map[string]*caddyhttp.Server{"a": {Listen: []string{":80"}, Routes: site(hosts("example.com"), none)}}, ""},
		{"a host", map[string]*caddyhttp.Server{"a": {Listen: []string{":443"}, TLSConnPolicies: secure, Routes: site(hosts("example.com"), here)}}, "https://example.com"},
		{"a port", map[string]*caddyhttp.Server{"a": {Listen: []string{":8080"}, Routes: site(nil, here)}}, "http://localhost:8080"},
		{"a host and a port", map[string]*caddyhttp.Server{"a": {Listen: []string{":8443"}, TLSConnPolicies: secure, Routes: site(hosts("localhost"), here)}}, "https://localhost:8443"},
		{"an address that is listened on", map[string]*caddyhttp.Server{"a": {Listen: []string{"192.0.2.1:80"}, Routes: site(nil, here)}}, "http://192.0.2.1"},
		{"any address", map[string]*caddyhttp.Server{"a": {Listen: []string{"[::]:80"}, Routes: site(nil, here)}}, "http://localhost"},
		{"an IPv6 address", map[string]*caddyhttp.Server{"a": {Listen: []string{":81"}, Routes: site(hosts("::1"), here)}}, "http://[::1]:81"},
		{"the second site", map[string]*caddyhttp.Server{"a": {Listen: []string{":80"}, Routes: append(site(hosts("api.example.com"), none), site(hosts("www.example.com"), here)...)}}, "http://www.example.com"},
		{"a pattern", map[string]*caddyhttp.Server{"a": {Listen: []string{":80"}, Routes: site(hosts("*.example.com", "b.example.com"), here)}}, "http://b.example.com"},
		{"a socket first", map[string]*caddyhttp.Server{
			"a": {Listen: []string{"unix//run/caddy.sock"}, Routes: site(hosts("a.example.com"), here)},
			"b": {Listen: []string{":80"}, Routes: site(hosts("b.example.com"), here)},
		}, "http://b.example.com"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := findConsole(&caddyhttp.App{Servers: tt.servers}); got != tt.want {
				t.Errorf("findConsole = %q, want %q", got, tt.want)
			}
		})
	}
}
