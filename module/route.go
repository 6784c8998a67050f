package module

import (
	"net/http"
	"slices"
	"strings"
)

// route is one method of one address: what a caller must hold, and who answers.
type route struct {
	scope string // that a key needs, such as endpoint:read
	// secretKeys tells that project secret keys may call it: contract section 6.3 gives them the run alone.
	secretKeys bool
	serve      func(*request) error
}

// methods are the routes of one address.
type methods map[string]route

// of returns the route of a method. HEAD is GET without a body, which the server leaves out; OPTIONS needs what reading the
// address needs.
func (m methods) of(method string) (route, bool) {
	found, ok := m[method]
	switch {
	case ok:
		return found, true
	case method == http.MethodHead:
		found, ok = m[http.MethodGet]
		return found, ok
	case method == http.MethodOptions:
		options := route{serve: (*request).serveOptions}
		for _, r := range m {
			object, _, _ := strings.Cut(r.scope, ":")
			options.scope, options.secretKeys = object+":read", options.secretKeys || r.secretKeys
		}
		return options, true
	}
	return route{}, false
}

// allow is the value of the Allow header.
func (m methods) allow() string {
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

// serveOptions tells what an address takes and gives.
func (rq *request) serveOptions() error {
	rq.w.Header().Set("Allow", routes[rq.at.pattern()].allow())
	rq.reply(http.StatusOK, map[string][]string{"renders": {"application/json"}, "parses": {"application/json"}})
	return nil
}

// address is the part of a path behind the project: a resource, perhaps a name below it, perhaps an action on that.
type address struct{ resource, name, action string }

// pattern is the address with its name left out: the key of the table of routes.
func (a address) pattern() address {
	if a.name != "" {
		a.name = ":name"
	}
	return a
}

// routes is every address that is served, and the methods of each.
var routes map[address]methods

func init() { routes = allRoutes() } // not a literal: serveOptions looks into it

func allRoutes() map[address]methods {
	return map[address]methods{
		{resource: "query"}: {
			http.MethodPost: {scope: "query:read", serve: (*request).runQuery},
		},
		{resource: "query", name: ":name"}: {
			http.MethodPost: {scope: "query:read", serve: (*request).runQueryOfKind},
		},
		{resource: "endpoints"}: {
			http.MethodGet:  {scope: "endpoint:read", serve: (*request).listEndpoints},
			http.MethodPost: {scope: "endpoint:write", serve: (*request).createEndpoint},
		},
		{resource: "endpoints", name: ":name"}: {
			http.MethodGet:    {scope: "endpoint:read", serve: (*request).getEndpoint},
			http.MethodPut:    {scope: "endpoint:write", serve: (*request).updateEndpoint},
			http.MethodPatch:  {scope: "endpoint:write", serve: (*request).updateEndpoint},
			http.MethodDelete: {scope: "endpoint:write", serve: (*request).deleteEndpoint},
		},
		{resource: "endpoints", name: ":name", action: "run"}: {
			http.MethodGet:  {scope: "endpoint:read", secretKeys: true, serve: (*request).runEndpoint},
			http.MethodPost: {scope: "endpoint:read", secretKeys: true, serve: (*request).runEndpoint},
		},
		{resource: "endpoints", name: ":name", action: "versions"}: {
			http.MethodGet: {scope: "endpoint:read", serve: (*request).listVersions},
		},
		{resource: "insight_variables"}: {
			http.MethodGet:  {scope: "insight_variable:read", serve: (*request).listVariables},
			http.MethodPost: {scope: "insight_variable:write", serve: (*request).createVariable},
		},
		{resource: "insight_variables", name: ":name"}: {
			http.MethodGet:    {scope: "insight_variable:read", serve: (*request).getVariable},
			http.MethodPut:    {scope: "insight_variable:write", serve: (*request).updateVariable},
			http.MethodPatch:  {scope: "insight_variable:write", serve: (*request).updateVariable},
			http.MethodDelete: {scope: "insight_variable:write", serve: (*request).deleteVariable},
		},
	}
}

// apiPrefix leads every path that is ours; a site may serve other things beside it.
const apiPrefix = "/api/"

// parsePath takes /api/{projects|environments}/{project}/{resource}[/{name}[/{action}]][/] apart.
func parsePath(path string) (project string, at address, ok bool) {
	rest, ok := strings.CutPrefix(path, apiPrefix)
	if !ok {
		return "", at, false
	}
	prefix, rest, ok := strings.Cut(rest, "/")
	if !ok || prefix != "projects" && prefix != "environments" {
		return "", at, false
	}
	rest = strings.TrimSuffix(rest, "/")
	project, rest, ok = strings.Cut(rest, "/")
	if !ok {
		return "", at, false
	}
	at.resource, rest, ok = strings.Cut(rest, "/")
	if !ok {
		return project, at, true
	}
	at.name, at.action, ok = strings.Cut(rest, "/")
	if at.name == "" || ok && at.action == "" {
		return "", at, false
	}
	return project, at, !strings.Contains(at.action, "/")
}
