package api

import (
	"context"
	"net/http"
	"slices"
	"strings"
)

// Route is one method of one address: what the caller needs, and the handler.
type Route struct {
	Method  string
	Pattern string // the path after the project, such as endpoints/:name/run
	Scope   string // what a key needs, such as endpoint:read; AnyScope if every personal key may call it
	// SecretKeys reports whether project secret keys may call it: contract api.md, section 6.3 allows them the run only.
	SecretKeys bool
	Handler    Handler
}

// AnyScope means that no scope is required.
const AnyScope = ""

// Methods are the routes of one address.
type Methods map[string]*Route

// Of returns the route of a method. HEAD is GET without a body, which net/http leaves out; OPTIONS requires the scope for reading the Address.
func (m Methods) Of(method string) (*Route, bool) {
	found, ok := m[method]
	switch {
	case ok:
		return found, true
	case method == http.MethodHead:
		found, ok = m[http.MethodGet]
		return found, ok
	case method == http.MethodOptions:
		return m.options(), true
	}
	return nil, false
}

// options returns the route that describes an Address.
func (m Methods) options() *Route {
	options := &Route{Handler: func(context.Context, *Caller, *Input) (*Response, error) {
		res := JSON(http.StatusOK, map[string][]string{"renders": {"application/json"}, "parses": {"application/json"}})
		res.Header = http.Header{"Allow": {m.Allow()}}
		return res, nil
	}}
	for _, r := range m {
		object, _, scoped := strings.Cut(r.Scope, ":")
		if !scoped {
			continue
		}
		options.Scope, options.SecretKeys = object+":read", options.SecretKeys || r.SecretKeys
	}
	return options
}

// Allow returns the value of the Allow header.
func (m Methods) Allow() string {
	names := []string{http.MethodOptions}
	for name := range m {
		names = append(names, name)
		if name == http.MethodGet {
			names = append(names, http.MethodHead)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// Address is the path after the project: a resource, perhaps a name below it, perhaps an action on that.
type Address struct {
	Resource, Name, Action string
	Item                   string // what follows the action, which can be anything; empty for most routes
}

// anyName is the name in the pattern of a route that serves all names.
const anyName = ":name"

// names are the routes of a resource: by name, then by action. Nested maps are faster to look up than one keyed by Address.
type names map[string]map[string]Methods

// Serve registers routes.
func (a *API) Serve(routes ...Route) {
	if a.routes == nil {
		a.routes = map[string]names{}
	}
	for i := range routes {
		at := addressOf(routes[i].Pattern)
		named := a.routes[at.Resource]
		if named == nil {
			named = names{}
			a.routes[at.Resource] = named
		}
		if named[at.Name] == nil {
			named[at.Name] = map[string]Methods{}
		}
		if named[at.Name][at.Action] == nil {
			named[at.Name][at.Action] = Methods{}
		}
		named[at.Name][at.Action][routes[i].Method] = &routes[i]
	}
}

// Routes returns all registered routes.
func (a *API) Routes() (all []Route) {
	for _, named := range a.routes {
		for _, actions := range named {
			for _, methods := range actions {
				for _, r := range methods {
					all = append(all, *r)
				}
			}
		}
	}
	return all
}

// Address returns the route's address; its name is :name if the route serves all names.
func (r *Route) Address() Address { return addressOf(r.Pattern) }

// addressOf parses a pattern. A resource that is not below a project begins with a slash.
func addressOf(pattern string) (at Address) {
	rest, beside := strings.CutPrefix(pattern, "/")
	at.Resource, rest, _ = strings.Cut(rest, "/")
	at.Name, at.Action, _ = strings.Cut(rest, "/")
	if beside {
		at.Resource = "/" + at.Resource
	}
	return at
}

// Methods returns the routes of an address, else those of the pattern that matches it; nil if nothing is served there.
func (a *API) Methods(at *Address) Methods {
	named := a.routes[at.Resource]
	if found := named[at.Name][at.Action]; found != nil || at.Name == "" {
		return found
	}
	return named[anyName][at.Action]
}

// pathPrefix begins all paths of the API but one; a site may serve other things beside it.
const pathPrefix = "/api/"

// flagDefinitions is the path at which newer SDKs request what older ones request below pathPrefix at FlagsResource.
const flagDefinitions = "/flags/definitions"

// Serves reports whether a path belongs to the API.
func Serves(path string) bool {
	return strings.HasPrefix(path, pathPrefix) || strings.TrimSuffix(path, "/") == flagDefinitions
}

// parsePath parses /api/{projects|environments}/{project}/{resource}[/{name}[/{action}]][/], and the paths of parseDiscovery.
func parsePath(path string) (project string, at Address, ok bool) {
	rest, ok := strings.CutPrefix(path, pathPrefix)
	if !ok {
		return CurrentAlias, Address{Resource: FlagsResource, Name: "local_evaluation"}, strings.TrimSuffix(path, "/") == flagDefinitions
	}
	prefix, rest, ok := strings.Cut(rest, "/")
	if !ok || prefix != "projects" && prefix != "environments" {
		return parseDiscovery(path[len(pathPrefix):])
	}
	rest = strings.TrimSuffix(rest, "/")
	project, rest, ok = strings.Cut(rest, "/")
	if !ok {
		return parseDiscovery(path[len(pathPrefix):])
	}
	at.Resource, rest, ok = strings.Cut(rest, "/")
	if !ok {
		return project, at, true
	}
	at.Name, at.Action, ok = strings.Cut(rest, "/")
	if at.Name == "" || ok && at.Action == "" {
		return "", at, false
	}
	return project, at, !strings.Contains(at.Action, "/")
}

// CurrentAlias in a path stands for what belongs to the key.
const CurrentAlias = "@current"

const (
	ProjectsResource      = "/projects"
	ProjectResource       = "/project"
	UsersResource         = "/users"
	KeysResource          = "/personal_api_keys"
	OrganizationsResource = "/organizations"
	FlagsResource         = "/feature_flag"
)

// parseDiscovery parses the paths that name no resource of a project: /api/projects/[7/], /api/users/@me/, /api/personal_api_keys/@current/,
// /api/feature_flag/local_evaluation/ and /api/organizations/[id/[projects/[7/]]] or [id/members/[uuid/]]. rest is what follows /api/.
func parseDiscovery(rest string) (project string, at Address, ok bool) {
	rest = strings.TrimSuffix(rest, "/")
	first, rest, _ := strings.Cut(rest, "/")
	name, action, more := strings.Cut(rest, "/")
	switch first {
	case "projects", "environments":
		if more {
			return "", at, false
		}
		if name == "" {
			return CurrentAlias, Address{Resource: ProjectsResource}, true
		}
		return name, Address{Resource: ProjectResource}, true
	case "users", "personal_api_keys", "feature_flag":
		return CurrentAlias, Address{Resource: "/" + first, Name: name}, name != "" && !more
	case "organizations":
		action, item, below := strings.Cut(action, "/")
		switch {
		case more && (name == "" || action != "projects" && action != "members") || below && (item == "" || strings.Contains(item, "/")):
			return "", at, false
		case below && action == "members":
			return CurrentAlias, Address{Resource: OrganizationsResource, Name: name, Action: "member", Item: item}, true
		case below:
			return item, Address{Resource: OrganizationsResource, Name: name, Action: "project"}, true
		}
		return CurrentAlias, Address{Resource: OrganizationsResource, Name: name, Action: action}, true
	}
	return "", at, false
}
