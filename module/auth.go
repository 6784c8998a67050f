package module

import (
	"strconv"
	"strings"
	"time"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Where keys are found, in the contract's words (section 6.5).
const (
	inHeader = "Authorization header"
	inBody   = "body"
)

// identify finds the caller's key, or the token that stands for one: contract section 6.1. It is the one in the Authorization
// header; without one, a personal key in the body. Query strings are not looked at: a key in one would end in access logs.
func (rq *request) identify() (err error) {
	secret, ok := strings.CutPrefix(header(rq.r, "Authorization"), "Bearer ")
	if !ok {
		return rq.identifyByBody()
	}
	secret = strings.TrimLeft(secret, " ")
	if isToken(secret) {
		return rq.believe(secret)
	}
	rq.Key, err = authenticate(rq.Snapshot, secret, rq.Start, inHeader)
	return err
}

// identifyByBody finds the personal key that the body brings. Secret keys are for headers alone.
func (rq *request) identifyByBody() error {
	secret, ok := takeKey(rq.r)
	if !ok {
		return unauthenticated("not_authenticated", "Authentication credentials were not provided.")
	}
	key, err := authenticate(rq.Snapshot, secret, rq.Start, inBody)
	if err != nil {
		return err
	}
	if key.Kind != registry.Personal {
		return invalidKey(inBody)
	}
	rq.Key = key
	return nil
}

// authenticate finds the key that a caller brings in a place.
func authenticate(snap *registry.Snapshot, secret string, now time.Time, place string) (*registry.Key, error) {
	key := snap.KeyByHash(registry.HashKey(secret))
	if key == nil || key.Expired(now) {
		return nil, invalidKey(place)
	}
	return key, nil
}

func invalidKey(place string) *apiError {
	return unauthenticated("authentication_failed", "Personal API key found in request "+place+" is invalid.")
}

// errSecretKeyQueries tells the holder of a project secret key what it is.
var errSecretKeyQueries = forbidden("This is a project secret API key, which runs endpoints and does nothing else. Use a personal API key with the scope query:read.")

// errNoAccess is the refusal of an endpoint that the key is not meant for: contract section 5.7.
var errNoAccess = forbidden("You do not have access to this endpoint.")

// authorize checks that key may call the route for the project that the address names, and returns that project. The
// order of the checks is the contract's (section 6.4).
func authorize(snap *registry.Snapshot, key *registry.Key, project string, at address, rt *route) (*registry.Project, error) {
	if key.Kind == registry.Secret && !rt.secretKeys {
		switch at.resource {
		case "endpoints":
			return nil, forbidden("This action does not support project secret API key access")
		case "query": // where people try it first
			return nil, errSecretKeyQueries
		}
		return nil, invalidKey(inHeader) // only endpoint routes know this kind of key
	}
	id := key.Project
	if project != currentAlias {
		var err error
		if id, err = strconv.ParseInt(project, 10, 64); err != nil || project[0] == '+' {
			return nil, notFound("Project not found.")
		}
	}
	found := snap.Project(id)
	if found == nil {
		return nil, notFound("Project not found.")
	}
	if id != key.Project {
		return nil, forbidden("API key does not have access to the requested project: ID %d.", id)
	}
	if rt.scope != anyScope && !key.Allows(rt.scope) {
		return nil, missingScope(rt.scope)
	}
	switch {
	case key.Bound() && !rt.secretKeys:
		return nil, forbidden("This key can only run endpoints.")
	case at.resource == "endpoints" && !key.MayRun(at.name):
		return nil, errNoAccess
	}
	return found, nil
}
