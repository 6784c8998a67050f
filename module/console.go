package module

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-analytics/caddy-analytics/module/api"
)

// consoleSite reports whether a site of the running config has the console, and returns its scheme and host: the app's public_url, or else those in the
// config of the site; empty if they are not there.
func (rt *runtime) consoleSite() (site string, found bool, err error) {
	app, err := activeApp()
	if err != nil || !app.console.Load() {
		return "", false, err
	}
	if rt.publicURL != "" {
		return rt.publicURL, true, nil
	}
	servers, err := caddy.ActiveContext().AppIfConfigured("http")
	if err != nil {
		return "", true, err // Caddy's own words
	}
	return findConsole(servers.(*caddyhttp.App)), true, nil
}

// findConsole returns the scheme and host of a site with the console; empty if the config does not give them.
func findConsole(app *caddyhttp.App) string {
	names := make([]string, 0, len(app.Servers))
	for name := range app.Servers {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		server := app.Servers[name]
		host, found := consoleHost(server.Routes, "")
		if !found || len(server.Listen) == 0 {
			continue
		}
		address, err := caddy.ParseNetworkAddress(server.Listen[0])
		if err != nil || address.IsUnixNetwork() {
			continue
		}
		scheme, usual := "http", uint(80)
		if len(server.TLSConnPolicies) > 0 {
			scheme, usual = "https", 443
		}
		if host == "" {
			host = address.Host
		}
		if host == "" || host == "0.0.0.0" || host == "::" {
			host = "localhost"
		}
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		if address.StartPort != usual {
			host = fmt.Sprintf("%s:%d", host, address.StartPort)
		}
		if site, err := api.ParseOrigin(scheme + "://" + host); err == nil {
			return site
		}
	}
	return ""
}

// consoleHost looks for a handler with the console, and returns the host that a request needs to reach it: that of the nearest matcher; empty for any.
func consoleHost(routes caddyhttp.RouteList, outer string) (host string, found bool) {
	for _, route := range routes {
		host := outer
		for _, matchers := range route.MatcherSets {
			for _, matcher := range matchers {
				if names := hostNames(matcher); len(names) > 0 {
					host = names[0]
				}
			}
		}
		for _, handler := range route.Handlers {
			switch h := handler.(type) {
			case *Handler:
				if h.Console {
					return host, true
				}
			case *caddyhttp.Subroute:
				if host, found := consoleHost(h.Routes, host); found {
					return host, true
				}
			}
		}
	}
	return "", false
}

// hostNames returns the hosts that a matcher names, except patterns.
func hostNames(matcher any) []string {
	var names []string
	switch m := matcher.(type) {
	case *caddyhttp.MatchHost:
		names = slices.Clone(*m)
	case caddyhttp.MatchHost:
		names = slices.Clone(m)
	}
	return slices.DeleteFunc(names, func(name string) bool { return strings.ContainsAny(name, "*{") })
}
