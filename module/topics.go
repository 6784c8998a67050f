package module

import (
	"context"
	"slices"
	"time"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/actions"
	"github.com/caddy-analytics/caddy-analytics/module/api/alerts"
	"github.com/caddy-analytics/caddy-analytics/module/api/annotations"
	"github.com/caddy-analytics/caddy-analytics/module/api/cohorts"
	"github.com/caddy-analytics/caddy-analytics/module/api/definitions"
	"github.com/caddy-analytics/caddy-analytics/module/api/endpoints"
	"github.com/caddy-analytics/caddy-analytics/module/api/endpoints/files"
	"github.com/caddy-analytics/caddy-analytics/module/api/imports"
	"github.com/caddy-analytics/caddy-analytics/module/api/insights"
	"github.com/caddy-analytics/caddy-analytics/module/api/mcp"
	"github.com/caddy-analytics/caddy-analytics/module/api/people"
	"github.com/caddy-analytics/caddy-analytics/module/api/projects"
	"github.com/caddy-analytics/caddy-analytics/module/api/queries"
	"github.com/caddy-analytics/caddy-analytics/module/api/status"
	"github.com/caddy-analytics/caddy-analytics/module/buildinfo"
	"github.com/caddy-analytics/caddy-analytics/module/memory"
)

// requestMemory is shared by the whole process, whatever its config, like its memory.
var requestMemory = memory.NewPool(memory.Default)

// newAPI returns the API of a runtime.
func (rt *runtime) newAPI() *api.API {
	a := &api.API{
		Registry: rt.registry, Tokens: rt.tokens, Logger: rt.logger, Origins: api.Origins{PublicURL: rt.publicURL, FromTrustedProxy: fromTrustedProxy},
		Memory: requestMemory,
	}
	a.Serve((&projects.Projects{Registry: rt.registry}).Routes()...)
	a.Serve(rt.queryRoute().Routes()...)
	a.Serve((&actions.Actions{Executor: rt.Executor, Registry: rt.registry, References: &rt.references}).Routes()...)
	a.Serve((&cohorts.Cohorts{
		Executor: rt.Executor, Registry: rt.registry, References: &rt.references, Calculate: rt.cohorts.Calculate,
	}).Routes()...)
	a.Serve((&definitions.Definitions{Executor: rt.Executor, Registry: rt.registry}).Routes()...)
	a.Serve((&annotations.Annotations{Registry: rt.registry}).Routes()...)
	a.Serve((&people.People{Executor: rt.Executor, Deleter: rt.deleter, Change: rt.intake.Change}).Routes()...)
	a.Serve(rt.importRoutes().Routes()...)
	a.Serve(rt.endpoints()...)
	a.Serve(rt.insights()...)
	a.Serve((&alerts.Alerts{Registry: rt.registry, Insight: insights.Basic}).Routes()...)
	a.Serve(rt.status().Routes()...)
	a.Serve((&mcp.Tools{Executor: rt.Executor}).Routes()...)
	return a
}

// importRoutes returns what answers the routes of imports.
func (rt *runtime) importRoutes() *imports.Imports {
	return &imports.Imports{Service: rt.imports.service, Executor: rt.Executor, MaxSize: rt.imports.maxSize}
}

// started is approximately when the process started.
var started = time.Now()

// status returns what reports the state of the server and its projects.
func (rt *runtime) status() *status.Status {
	return &status.Status{
		Executor: rt.Executor, Version: buildinfo.Read().Version, Started: started, Embedded: rt.engine != nil,
		Health:  func(ctx context.Context) status.Health { return rt.probe.health(ctx) },
		Capture: rt.captureOf,
	}
}

// captureOf returns the state of a project's event capture.
func (rt *runtime) captureOf(project int64) *status.Capture {
	c := rt.capturing
	if c == nil {
		return nil
	}
	counted, waiting, delivered := c.counters.Of(project), c.logs.Waiting(project), c.logs.StatusOf(project)
	out := &status.Capture{
		Accepted: counted.Events.Load(), Ignored: counted.Ignored.Load(), Dropped: counted.Dropped.Load(), Refused: map[string]int64{},
		Delivered: delivered.Delivered, SetAside: delivered.SetAside, Waiting: waiting.Events, Bytes: waiting.Bytes, Lag: delivered.Lag.Seconds(),
	}
	counted.Refused(func(reason string, requests int64) {
		if requests > 0 {
			out.Refused[reason] = requests
		}
	})
	return out
}

// queryRoute returns what answers the query route.
func (rt *runtime) queryRoute() *queries.Queries {
	return &queries.Queries{Executor: rt.Executor, Plans: rt.plans, Logger: rt.logger}
}

// endpointRuns returns what runs endpoints.
func (rt *runtime) endpointRuns() *endpoints.Runs {
	return &endpoints.Runs{Executor: rt.Executor, Registry: rt.registry, Plans: rt.plans, Logs: rt.logs, Logger: rt.logger}
}

// endpoints returns the routes of endpoints, their runs and their documents.
func (rt *runtime) endpoints() []api.Route {
	runs := rt.endpointRuns()
	return slices.Concat(
		runs.Routes(),
		(&endpoints.Documents{Runs: runs}).Routes(),
		(&endpoints.Endpoints{
			Executor: rt.Executor, Registry: rt.registry, Forget: rt.forget, References: &rt.references, Fill: rt.tables.Wake,
		}).Routes(),
	)
}

// files returns what plans and applies endpoints that are kept as files.
func (rt *runtime) files() *files.Files {
	return &files.Files{Executor: rt.Executor, Registry: rt.registry, Forget: rt.forget, References: &rt.references}
}

// insights returns the routes of saved insights and dashboards.
func (rt *runtime) insights() []api.Route {
	results := &insights.Results{Executor: rt.Executor, Registry: rt.registry, Plans: rt.plans, Alerts: alerts.Of, Logger: rt.logger}
	return slices.Concat(
		(&insights.Insights{Results: results, Registry: rt.registry}).Routes(),
		(&insights.Activity{Registry: rt.registry, Executor: rt.Executor}).Routes(),
		(&insights.Dashboards{Results: results, Registry: rt.registry}).Routes(),
	)
}
