package api

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Where a key was found, as named in contract api.md section 6.5.
const (
	inHeader = "Authorization header"
	inBody   = "body"
)

// identify finds the caller's key, or the token that stands for one: contract api.md, section 6.1. It looks in the Authorization header and, without one, for a
// personal key in the body. Query strings are ignored: a key in one would end up in access logs.
func (a *API) identify(h http.Header, r *http.Request, c *Caller) (err error) {
	secret, ok := strings.CutPrefix(Header(r, "Authorization"), "Bearer ")
	if !ok {
		return c.identifyByBody(r)
	}
	secret = strings.TrimLeft(secret, " ")
	if isToken(secret) {
		return a.Tokens.believe(h, r, secret, c)
	}
	c.Key, err = authenticate(c.Snapshot, secret, c.Start, inHeader)
	return err
}

// identifyByBody finds the personal key in the body. Secret keys are accepted in the header only.
func (c *Caller) identifyByBody(r *http.Request) error {
	secret, ok := takeKey(r)
	if !ok {
		return unauthenticated("not_authenticated", "Authentication credentials were not provided.")
	}
	key, err := authenticate(c.Snapshot, secret, c.Start, inBody)
	if err != nil {
		return err
	}
	if key.Kind != registry.Personal {
		return invalidKey(inBody)
	}
	c.Key = key
	return nil
}

// authenticate finds the key with this secret. place is where the caller sent it.
func authenticate(snap *registry.Snapshot, secret string, now time.Time, place string) (*registry.Key, error) {
	key := snap.KeyByHash(registry.HashKey(secret))
	switch {
	case key == nil && strings.HasPrefix(secret, registry.CaptureTokenPrefix):
		return nil, errCaptureToken
	case key == nil, key.Expired(now):
		return nil, invalidKey(place)
	}
	return key, nil
}

// errCaptureToken tells the holder of a capture token what it is for.
var errCaptureToken = Unauthenticated("This is a capture token, which sends events and does nothing else. Use a personal API key.")

func invalidKey(place string) *Error {
	return Unauthenticated("Personal API key found in request " + place + " is invalid.")
}

// errSecretKeyQueries tells the holder of a project secret key what it is for.
var errSecretKeyQueries = Forbidden("This is a project secret API key, which runs endpoints and does nothing else. Use a personal API key with the scope query:read.")

// ErrNoAccess refuses a key that is not meant for the endpoint: contract api.md, section 5.7.
var ErrNoAccess = Forbidden("You do not have access to this endpoint.")

// Authorize checks that key may call the route for the project named in the path, and returns that project. It checks in the order of contract api.md
// section 6.4.
func Authorize(snap *registry.Snapshot, key *registry.Key, project string, at *Address, rt *Route) (*registry.Project, error) {
	if key.Kind == registry.Secret && !rt.SecretKeys {
		switch at.Resource {
		case "endpoints":
			return nil, Forbidden("This action does not support project secret API key access")
		case "query": // where people try it first
			return nil, errSecretKeyQueries
		}
		return nil, invalidKey(inHeader) // only endpoint routes accept secret keys
	}
	id := key.Project
	if project != CurrentAlias {
		var err error
		if id, err = strconv.ParseInt(project, 10, 64); err != nil || project[0] == '+' {
			return nil, NotFound("Project not found.")
		}
	}
	found := snap.Project(id)
	if found == nil {
		return nil, NotFound("Project not found.")
	}
	if id != key.Project {
		return nil, Forbidden("API key does not have access to the requested project: ID %d.", id)
	}
	if rt.Scope != AnyScope && !key.Allows(rt.Scope) {
		return nil, MissingScope(rt.Scope)
	}
	switch {
	case key.Bound() && !rt.SecretKeys:
		return nil, Forbidden("This key can only run endpoints.")
	case at.Resource == "endpoints" && !key.MayRun(at.Name):
		return nil, ErrNoAccess
	}
	return found, nil
}

// MissingScope refuses a key that lacks a scope.
func MissingScope(scope string) *Error {
	return Forbidden("API key missing required scope '%s'", scope)
}
