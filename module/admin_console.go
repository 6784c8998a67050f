package module

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/signin"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

const (
	sessionLife    = 12 * time.Hour // unless the operator asks for another
	maxSessionLife = 30 * 24 * time.Hour
)

// adminSignIn returns a link that opens the console, signed in.
func adminSignIn(rt *runtime, _ http.ResponseWriter, r *http.Request) (any, error) {
	body, err := readAdmin[adminapi.SignIn](r)
	if err != nil {
		return nil, err
	}
	site, err := consoleSite(rt, body.Site)
	if err != nil {
		return nil, err
	}
	project, err := sessionProject(rt.registry.Snapshot(), body.Project)
	if err != nil {
		return nil, err
	}
	grant := signin.Grant{Project: project.ID, Scopes: body.Scopes, Life: sessionLife}
	if len(grant.Scopes) == 0 {
		grant.Scopes = []string{"*"}
	}
	if body.Expires != "" {
		if grant.Life, err = caddy.ParseDuration(body.Expires); err != nil || grant.Life <= 0 || grant.Life > maxSessionLife {
			return nil, badRequest("%q is not a valid time from now (want, for example, 12h; at most 30d)", body.Expires)
		}
	}
	now := time.Now()
	if err := (registry.NewKey{Scopes: grant.Scopes, ExpiresAt: now.Add(grant.Life), Session: true}).Validate(now); err != nil {
		return nil, err
	}
	code, expires, err := rt.signin.State.Codes.Issue(r.Context(), grant, now)
	if err != nil {
		return nil, err
	}
	return adminapi.SignInLink{
		Link: site + "/#code=" + code, ExpiresAt: expires.UTC(), Project: project.ID, Name: project.Name, Scopes: grant.Scopes,
	}, nil
}

// sessionProject returns the project to sign in to; without an id, the only one.
func sessionProject(snap *registry.Snapshot, id int64) (*registry.Project, error) {
	all := snap.Projects()
	switch {
	case id != 0:
		if p := snap.Project(id); p != nil {
			return p, nil
		}
		return nil, fmt.Errorf("project %d: %w", id, registry.ErrNotFound)
	case len(all) == 0:
		return nil, badRequest("there is no project yet: create one with caddy analytics project create")
	case len(all) > 1:
		return nil, badRequest("there are %d projects: say which with --project", len(all))
	}
	return all[0], nil
}

// consoleSite returns the scheme and host of the site with the console: those given by the operator, or else the app's public_url, or else those in
// the config of a site that has the console.
func consoleSite(rt *runtime, wanted string) (string, error) {
	app, err := activeApp()
	if err != nil {
		return "", err
	}
	if !app.console.Load() {
		return "", badRequest("no site of the running config has the console: add the option console to its analytics directive")
	}
	if wanted != "" {
		site, err := api.ParseOrigin(strings.TrimSuffix(wanted, "/"))
		if err != nil {
			return "", badRequest("--site: %w", err)
		}
		return site, nil
	}
	if rt.publicURL != "" {
		return rt.publicURL, nil
	}
	servers, err := caddy.ActiveContext().AppIfConfigured("http")
	if err != nil {
		return "", err // Caddy's own words
	}
	if site := findConsole(servers.(*caddyhttp.App)); site != "" {
		return site, nil
	}
	return "", badRequest("the config does not say what the site with the console is called: say it with --site, for example --site https://example.com")
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
