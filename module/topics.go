package module

import (
	"slices"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/actions"
	"github.com/caddy-analytics/caddy-analytics/module/api/alerts"
	"github.com/caddy-analytics/caddy-analytics/module/api/annotations"
	"github.com/caddy-analytics/caddy-analytics/module/api/cohorts"
	"github.com/caddy-analytics/caddy-analytics/module/api/definitions"
	"github.com/caddy-analytics/caddy-analytics/module/api/endpoints"
	"github.com/caddy-analytics/caddy-analytics/module/api/endpoints/files"
	"github.com/caddy-analytics/caddy-analytics/module/api/insights"
	"github.com/caddy-analytics/caddy-analytics/module/api/mcp"
	"github.com/caddy-analytics/caddy-analytics/module/api/people"
	"github.com/caddy-analytics/caddy-analytics/module/api/projects"
	"github.com/caddy-analytics/caddy-analytics/module/api/queries"
)

// newAPI makes the API of a runtime.
func (rt *runtime) newAPI() *api.API {
	a := &api.API{
		Registry: rt.registry, Tokens: rt.tokens, Logger: rt.logger, Origins: api.Origins{PublicURL: rt.publicURL, FromTrustedProxy: fromTrustedProxy},
	}
	a.Serve((&projects.Projects{Registry: rt.registry}).Routes()...)
	a.Serve((&queries.Queries{Executor: rt.Executor, Plans: rt.plans, Logger: rt.logger}).Routes()...)
	a.Serve((&actions.Actions{Executor: rt.Executor, Registry: rt.registry, References: &rt.references}).Routes()...)
	a.Serve((&cohorts.Cohorts{
		Executor: rt.Executor, Registry: rt.registry, References: &rt.references, Calculate: rt.cohorts.Calculate,
	}).Routes()...)
	a.Serve((&definitions.Definitions{Executor: rt.Executor, Registry: rt.registry}).Routes()...)
	a.Serve((&annotations.Annotations{Registry: rt.registry}).Routes()...)
	a.Serve((&people.People{Executor: rt.Executor}).Routes()...)
	a.Serve(rt.endpoints()...)
	a.Serve(rt.insights()...)
	a.Serve((&alerts.Alerts{Registry: rt.registry, Insight: insights.Basic}).Routes()...)
	a.Serve((&mcp.Tools{Executor: rt.Executor}).Routes()...)
	return a
}

// endpoints are the routes of endpoints, their runs and their documents.
func (rt *runtime) endpoints() []api.Route {
	runs := &endpoints.Runs{Executor: rt.Executor, Registry: rt.registry, Plans: rt.plans, Logs: rt.logs, Logger: rt.logger}
	return slices.Concat(
		runs.Routes(),
		(&endpoints.Documents{Runs: runs}).Routes(),
		(&endpoints.Endpoints{
			Executor: rt.Executor, Registry: rt.registry, Forget: rt.forget, References: &rt.references, Fill: rt.tables.Wake,
		}).Routes(),
	)
}

// files plans and applies endpoints that are kept as files.
func (rt *runtime) files() *files.Files {
	return &files.Files{Executor: rt.Executor, Registry: rt.registry, Forget: rt.forget, References: &rt.references}
}

// insights are the routes of saved insights and dashboards.
func (rt *runtime) insights() []api.Route {
	results := &insights.Results{Executor: rt.Executor, Registry: rt.registry, Plans: rt.plans, Logger: rt.logger}
	return slices.Concat(
		(&insights.Insights{Results: results, Registry: rt.registry}).Routes(),
		(&insights.Activity{Registry: rt.registry, Runs: rt.Runs}).Routes(),
		(&insights.Dashboards{Results: results, Registry: rt.registry}).Routes(),
	)
}
