package admin

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-analytics/caddy-analytics/module/adminapi"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/signin"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

const (
	sessionLife    = 12 * time.Hour // unless the operator asks for another
	maxSessionLife = 30 * 24 * time.Hour
)

// signIn returns a link that opens the console, signed in.
func (s *Server) signIn(_ http.ResponseWriter, r *http.Request) (any, error) {
	body, err := readBody[adminapi.SignIn](r)
	if err != nil {
		return nil, err
	}
	site, err := s.consoleSite(body.Site)
	if err != nil {
		return nil, err
	}
	project, err := sessionProject(s.Registry.Snapshot(), body.Project)
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
	code, expires, err := s.Codes.Issue(r.Context(), grant, now)
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

// consoleSite returns the scheme and host of the site with the console: those given by the operator, or else those that the config gives.
func (s *Server) consoleSite(wanted string) (string, error) {
	site, found, err := s.Console()
	if err != nil {
		return "", err
	}
	if !found {
		return "", badRequest("no site of the running config has the console: add the option console to its analytics directive")
	}
	if wanted != "" {
		site, err := api.ParseOrigin(strings.TrimSuffix(wanted, "/"))
		if err != nil {
			return "", badRequest("--site: %w", err)
		}
		return site, nil
	}
	if site == "" {
		return "", badRequest("the config does not say what the site with the console is called: say it with --site, for example --site https://example.com")
	}
	return site, nil
}
