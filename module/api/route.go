package api

import (
	"context"
	"net/http"
	"slices"
	"strings"
)

// Route is one method of one address: what a caller must hold, and who answers.
type Route struct {
	Method  string
	Pattern string // what follows the project in a path, such as endpoints/:name/run
	Scope   string // that a key needs, such as endpoint:read; AnyScope for what every personal key may ask
	// SecretKeys reports that project secret keys may call it: contract section 6.3 gives them the run alone.
	SecretKeys bool
	Handler    Handler
}

// AnyScope stands for no scope in particular.
const AnyScope = ""

// Methods are the routes of one address.
type Methods map[string]*Route

// Of returns the route of a method. HEAD is GET without a body, which the server leaves out; OPTIONS needs what reading the
// Address needs.
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

// options says what an Address takes and gives.
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

// Allow is the value of the Allow header.
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

// Address is the part of a path after the project: a resource, perhaps a name below it, perhaps an action on that.
type Address struct {
	Resource, Name, Action string
	Item                   string // what follows the action, of which a route serves any; empty for most
}

// anyName is the name in a pattern of a route that serves all names.
const anyName = ":name"

// names are what is served of a resource: by name, then by action. Maps in maps are faster to look up than one by Address.
type names map[string]map[string]Methods

// Serve adds routes to those that are served.
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

// Routes are those that are served.
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

// Address is that of the route, with the name :name where it serves any.
func (r *Route) Address() Address { return addressOf(r.Pattern) }

// addressOf reads a pattern. A resource beside the projects begins with a slash.
func addressOf(pattern string) (at Address) {
	rest, beside := strings.CutPrefix(pattern, "/")
	at.Resource, rest, _ = strings.Cut(rest, "/")
	at.Name, at.Action, _ = strings.Cut(rest, "/")
	if beside {
		at.Resource = "/" + at.Resource
	}
	return at
}

// Methods are those of the Address as it stands, else those of its pattern; nil when nothing is served there.
func (a *API) Methods(at *Address) Methods {
	named := a.routes[at.Resource]
	if found := named[at.Name][at.Action]; found != nil || at.Name == "" {
		return found
	}
	return named[anyName][at.Action]
}

// ApiPrefix leads every path that is ours but one; a site may serve other things beside it.
const ApiPrefix = "/api/"

// flagDefinitions is the path at which newer SDKs ask for what older ones ask below ApiPrefix, FlagsResource.
const flagDefinitions = "/flags/definitions"

// Serves reports whether a path is one of the API's.
func Serves(path string) bool {
	return strings.HasPrefix(path, ApiPrefix) || strings.TrimSuffix(path, "/") == flagDefinitions
}

// parsePath takes /api/{projects|environments}/{project}/{resource}[/{name}[/{action}]][/] apart, and what parseDiscovery knows.
func parsePath(path string) (project string, at Address, ok bool) {
	rest, ok := strings.CutPrefix(path, ApiPrefix)
	if !ok {
		return CurrentAlias, Address{Resource: FlagsResource, Name: "local_evaluation"}, strings.TrimSuffix(path, "/") == flagDefinitions
	}
	prefix, rest, ok := strings.Cut(rest, "/")
	if !ok || prefix != "projects" && prefix != "environments" {
		return parseDiscovery(path[len(ApiPrefix):])
	}
	rest = strings.TrimSuffix(rest, "/")
	project, rest, ok = strings.Cut(rest, "/")
	if !ok {
		return parseDiscovery(path[len(ApiPrefix):])
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

// CurrentAlias stands in a path for what belongs to the key.
const CurrentAlias = "@current"

const (
	ProjectsResource      = "/projects"
	ProjectResource       = "/project"
	UsersResource         = "/users"
	KeysResource          = "/personal_api_keys"
	OrganizationsResource = "/organizations"
	FlagsResource         = "/feature_flag"
)

// parseDiscovery takes the paths apart that name no resource of a project: /api/projects/[7/], /api/users/@me/,
// /api/personal_api_keys/@current/, /api/feature_flag/local_evaluation/ and /api/organizations/[id/[projects/[7/]]] or [id/members/[uuid/]]. rest is what follows /api/.
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
