// Package routes puts the topics of the API together: it gives each of them the services that it works with, and serves the routes of all.
package routes

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/ingest"
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
	"github.com/caddy-analytics/caddy-analytics/module/api/references"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/api/status"
	"github.com/caddy-analytics/caddy-analytics/module/buildinfo"
	"github.com/caddy-analytics/caddy-analytics/module/deletions"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	importing "github.com/caddy-analytics/caddy-analytics/module/imports"
	"github.com/caddy-analytics/caddy-analytics/module/memory"
	"github.com/caddy-analytics/caddy-analytics/module/runlog"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Services are what the topics work with.
type Services struct {
	*execution.Executor

	Registry *registry.Registry
	Plans    *cache.Memo[*result.Plan] // plans of earlier requests
	Tokens   *api.Tokens
	Logs     *runlog.Logs // of the runs of endpoints
	// References knows what uses actions and cohorts.
	References *references.Index
	// Memory is shared by the large requests and responses of all projects.
	Memory *memory.Pool
	Logger *zap.Logger

	Deleter *deletions.Deleter
	// Change changes the properties of a person, so that the next response shows it.
	Change func(ctx context.Context, project int64, change ingest.Change) error
	// Calculate starts the calculation of a cohort that waits for one, and returns at once.
	Calculate func(project, cohort int64)
	// ForgetEndpoint drops the counters and the log of a deleted endpoint.
	ForgetEndpoint func(*registry.Endpoint)
	// Fill starts filling the tables of materialized endpoints that wait for it, and returns at once.
	Fill func()
	// Imports keeps files until they are imported. MaxImport is the largest file, in bytes as sent.
	Imports   *importing.Service
	MaxImport int64

	// Health checks the parts of the server, or returns the result of a moment ago.
	Health func(context.Context) status.Health
	// Captured returns the event counts of a project; nil for a server that receives no events.
	Captured func(project int64) *status.Capture
	Embedded bool // ClickHouse is the embedded engine

	// Origins says what links in responses begin with.
	Origins api.Origins
}

// NewAPI returns the API with the routes of all topics.
func (s *Services) NewAPI() *api.API {
	a := &api.API{Registry: s.Registry, Tokens: s.Tokens, Logger: s.Logger, Origins: s.Origins, Memory: s.Memory}
	a.Serve((&projects.Projects{Registry: s.Registry}).Routes()...)
	a.Serve(s.Queries().Routes()...)
	a.Serve((&actions.Actions{Executor: s.Executor, Registry: s.Registry, References: s.References}).Routes()...)
	a.Serve((&cohorts.Cohorts{Executor: s.Executor, Registry: s.Registry, References: s.References, Calculate: s.Calculate}).Routes()...)
	a.Serve((&definitions.Definitions{Executor: s.Executor, Registry: s.Registry}).Routes()...)
	a.Serve((&annotations.Annotations{Registry: s.Registry}).Routes()...)
	a.Serve((&people.People{Executor: s.Executor, Deleter: s.Deleter, Change: s.Change}).Routes()...)
	a.Serve(s.ImportRoutes().Routes()...)
	a.Serve(s.endpoints()...)
	a.Serve(s.insights()...)
	a.Serve((&alerts.Alerts{Registry: s.Registry, Insight: insights.Basic}).Routes()...)
	a.Serve(s.status().Routes()...)
	a.Serve((&mcp.Tools{Executor: s.Executor}).Routes()...)
	return a
}

// ImportRoutes returns what answers the routes of imports.
func (s *Services) ImportRoutes() *imports.Imports {
	return &imports.Imports{Service: s.Imports, Executor: s.Executor, MaxSize: s.MaxImport}
}

// started is approximately when the process started.
var started = time.Now()

// status returns what reports the state of the server and its projects.
func (s *Services) status() *status.Status {
	return &status.Status{
		Executor: s.Executor, Version: buildinfo.Read().Version, Started: started, Embedded: s.Embedded, Health: s.Health, Capture: s.Captured,
	}
}

// Queries returns what answers the query route.
func (s *Services) Queries() *queries.Queries {
	return &queries.Queries{Executor: s.Executor, Plans: s.Plans, Logger: s.Logger}
}

// EndpointRuns returns what runs endpoints.
func (s *Services) EndpointRuns() *endpoints.Runs {
	return &endpoints.Runs{Executor: s.Executor, Registry: s.Registry, Plans: s.Plans, Logs: s.Logs, Logger: s.Logger}
}

// endpoints returns the routes of endpoints, their runs and their documents.
func (s *Services) endpoints() []api.Route {
	runs := s.EndpointRuns()
	return slices.Concat(
		runs.Routes(),
		(&endpoints.Documents{Runs: runs}).Routes(),
		(&endpoints.Endpoints{
			Executor: s.Executor, Registry: s.Registry, Forget: s.ForgetEndpoint, References: s.References, Fill: s.Fill,
		}).Routes(),
	)
}

// Files returns what plans and applies endpoints that are kept as files.
func (s *Services) Files() *files.Files {
	return &files.Files{Executor: s.Executor, Registry: s.Registry, Forget: s.ForgetEndpoint, References: s.References}
}

// insights returns the routes of saved insights and dashboards.
func (s *Services) insights() []api.Route {
	results := &insights.Results{Executor: s.Executor, Registry: s.Registry, Plans: s.Plans, Alerts: alerts.Of, Logger: s.Logger}
	return slices.Concat(
		(&insights.Insights{Results: results, Registry: s.Registry}).Routes(),
		(&insights.Activity{Registry: s.Registry, Executor: s.Executor}).Routes(),
		(&insights.Dashboards{Results: results, Registry: s.Registry}).Routes(),
	)
}
