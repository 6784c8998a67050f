package module

import "net/http"

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
