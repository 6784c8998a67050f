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
