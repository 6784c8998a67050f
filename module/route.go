package module

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// route is one method of one address: what a caller must hold, and who answers.
type route struct {
	scope string // that a key needs, such as endpoint:read; anyScope for what every personal key may ask
	// secretKeys tells that project secret keys may call it: contract section 6.3 gives them the run alone.
	secretKeys bool
	serve      func(*request) error
}

// anyScope stands for no scope in particular.
const anyScope = ""

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
			object, _, scoped := strings.Cut(r.scope, ":")
			if !scoped {
				continue
			}
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
	rq.w.Header().Set("Allow", rq.at.methods().allow())
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

// methods are those of the address as it stands, else those of its pattern; nil when nothing is served there.
func (a address) methods() methods {
	if fixedNames[a.name] {
		if found := routes[a]; found != nil {
			return found
		}
	}
	return routes[a.pattern()]
}

// routes is every address that is served, and the methods of each. fixedNames are the names in it that stand for themselves.
var (
	routes     map[address]methods
	fixedNames = map[string]bool{}
)

func init() { // not a literal: serveOptions looks into it
	routes = map[address]methods{}
	for _, topic := range []map[address]methods{
		queryRoutes(), endpointRoutes(), runRoutes(), insightRoutes(), dashboardRoutes(), variableRoutes(), secretKeyRoutes(),
		discoveryRoutes(), definitionRoutes(), cohortRoutes(), toolRoutes(),
	} {
		maps.Copy(routes, topic)
	}
	for at := range routes {
		fixedNames[at.name] = true
	}
}

func queryRoutes() map[address]methods {
	return map[address]methods{
		{resource: "query"}: {
			http.MethodPost: {scope: "query:read", serve: (*request).runQuery},
		},
		{resource: "query", name: ":name"}: {
			http.MethodGet:    {scope: "query:read", serve: (*request).getRun},
			http.MethodPost:   {scope: "query:read", serve: (*request).postNamedQuery},
			http.MethodDelete: {scope: "query:read", serve: (*request).cancelRun},
		},
		{resource: "query", name: ":name", action: "log"}: {
			http.MethodGet: {scope: "query:read", serve: (*request).getQueryLog},
		},
	}
}

func endpointRoutes() map[address]methods {
	one := methods{
		http.MethodGet:    {scope: "endpoint:read", serve: (*request).getEndpoint},
		http.MethodPut:    {scope: "endpoint:write", serve: (*request).updateEndpoint},
		http.MethodPatch:  {scope: "endpoint:write", serve: (*request).updateEndpoint},
		http.MethodDelete: {scope: "endpoint:write", serve: (*request).deleteEndpoint},
	}
	// A name that stands for itself with POST; an endpoint may have it all the same.
	named := func(post func(*request) error) methods {
		all := maps.Clone(one)
		all[http.MethodPost] = route{scope: "endpoint:read", serve: post}
		return all
	}
	return map[address]methods{
		{resource: "endpoints"}: {
			http.MethodGet:  {scope: "endpoint:read", serve: (*request).listEndpoints},
			http.MethodPost: {scope: "endpoint:write", serve: (*request).createEndpoint},
		},
		{resource: "endpoints", name: ":name"}: one,
		{resource: "endpoints", name: ":name", action: "openapi.json"}: {
			http.MethodGet: {scope: "endpoint:read", serve: (*request).getOpenAPI},
		},
		{resource: "endpoints", name: everyEndpoint}: {
			http.MethodGet: {scope: "endpoint:read", serve: (*request).getOpenAPIOfAll},
		},
		{resource: "endpoints", name: ":name", action: "versions"}: {
			http.MethodGet: {scope: "endpoint:read", serve: (*request).listVersions},
		},
		{resource: "endpoints", name: ":name", action: "promote"}: {
			http.MethodPost: {scope: "endpoint:write", serve: (*request).promoteEndpoint},
		},
		{resource: "endpoints", name: ":name", action: "rollback"}: {
			http.MethodPost: {scope: "endpoint:write", serve: (*request).rollBackEndpoint},
		},
		{resource: "endpoints", name: ":name", action: "logs"}: {
			http.MethodGet: {scope: "endpoint:read", serve: (*request).listRuns},
		},
		{resource: "endpoints", name: ":name", action: "materialization_status"}: {
			http.MethodGet: {scope: "endpoint:read", serve: (*request).getMaterialization},
		},
		{resource: "endpoints", name: ":name", action: "materialization_preview"}: {
			http.MethodPost: {scope: "endpoint:read", serve: (*request).previewMaterialization},
		},
		{resource: "endpoints", name: "last_execution_times"}: named((*request).lastExecutions),
		{resource: "endpoints", name: "bulk_update_tags"}:     named((*request).refuseBulkTags),
		{resource: "endpoint_tokens"}: {
			http.MethodPost: {scope: "endpoint:read", secretKeys: true, serve: (*request).issueToken},
		},
	}
}

func insightRoutes() map[address]methods {
	return map[address]methods{
		{resource: "insights"}: {
			http.MethodGet:  {scope: "insight:read", serve: (*request).listInsights},
			http.MethodPost: {scope: "insight:write", serve: (*request).createInsight},
		},
		{resource: "insights", name: ":name"}: {
			http.MethodGet:    {scope: "insight:read", serve: (*request).getInsight},
			http.MethodPut:    {scope: "insight:write", serve: (*request).updateInsight},
			http.MethodPatch:  {scope: "insight:write", serve: (*request).updateInsight},
			http.MethodDelete: {scope: "insight:write", serve: (*request).deleteInsight},
		},
		{resource: "insights", name: ":name", action: "activity"}: {
			http.MethodGet: {scope: "insight:read", serve: (*request).insightActivity},
		},
		{resource: "insights", name: "activity"}: {
			http.MethodGet: {scope: "insight:read", serve: (*request).allActivity},
		},
		{resource: "insights", name: "viewed"}: {
			http.MethodPost: {scope: "insight:read", serve: (*request).viewedInsights},
		},
		{resource: "insights", name: "my_last_viewed"}: {
			http.MethodGet: {scope: "insight:read", serve: (*request).myLastViewed},
		},
		{resource: "insights", name: "trending"}: {
			http.MethodGet: {scope: "insight:read", serve: (*request).trending},
		},
		{resource: "insights", name: "cancel"}: {
			http.MethodPost: {scope: "insight:read", serve: (*request).cancelInsight},
		},
	}
}

func dashboardRoutes() map[address]methods {
	return map[address]methods{
		{resource: "dashboards"}: {
			http.MethodGet:  {scope: "dashboard:read", serve: (*request).listDashboards},
			http.MethodPost: {scope: "dashboard:write", serve: (*request).createDashboard},
		},
		{resource: "dashboards", name: ":name"}: {
			http.MethodGet:    {scope: "dashboard:read", serve: (*request).getDashboard},
			http.MethodPut:    {scope: "dashboard:write", serve: (*request).updateDashboard},
			http.MethodPatch:  {scope: "dashboard:write", serve: (*request).updateDashboard},
			http.MethodDelete: {scope: "dashboard:write", serve: (*request).deleteDashboard},
		},
		{resource: "dashboards", name: ":name", action: "run_insights"}: {
			http.MethodGet: {scope: "dashboard:read", serve: (*request).runInsights},
		},
		{resource: "dashboards", name: ":name", action: "reorder_tiles"}: {
			http.MethodPost: {scope: "dashboard:write", serve: (*request).reorderTiles},
		},
	}
}

func variableRoutes() map[address]methods {
	return map[address]methods{
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

// parsePath takes /api/{projects|environments}/{project}/{resource}[/{name}[/{action}]][/] apart, and what parseDiscovery knows.
func parsePath(path string) (project string, at address, ok bool) {
	rest, ok := strings.CutPrefix(path, apiPrefix)
	if !ok {
		return "", at, false
	}
	prefix, rest, ok := strings.Cut(rest, "/")
	if !ok || prefix != "projects" && prefix != "environments" {
		return parseDiscovery(path[len(apiPrefix):])
	}
	rest = strings.TrimSuffix(rest, "/")
	project, rest, ok = strings.Cut(rest, "/")
	if !ok {
		return parseDiscovery(path[len(apiPrefix):])
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
