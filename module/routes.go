package module

import (
	"maps"
	"net/http"
)

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
	}
}
