package module

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/caddyserver/caddy/v2"

	"github.com/caddy-analytics/caddy-analytics/module/admin"
)

func init() { caddy.RegisterModule(adminAPI{}) }

// adminAPI serves the operator's commands below /analytics/ on Caddy's admin address, and the health paths.
type adminAPI struct{}

// CaddyModule returns the Caddy module information.
func (adminAPI) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "admin.api.analytics", New: func() caddy.Module { return new(adminAPI) }}
}

// Routes returns the admin routes.
func (adminAPI) Routes() []caddy.AdminRoute {
	routes := []caddy.AdminRoute{
		{Pattern: livePath, Handler: caddy.AdminHandlerFunc(adminHealth)},
		{Pattern: readyPath, Handler: caddy.AdminHandlerFunc(adminHealth)},
	}
	for _, route := range admin.Routes() {
		routes = append(routes, caddy.AdminRoute{Pattern: route.Pattern, Handler: caddy.AdminHandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
			return route.Serve(w, r, func() (*admin.Server, func(), error) { return enterAdmin(r.Context(), route.Streamed) })
		})})
	}
	return routes
}

// enterAdmin returns what answers the admin requests of the running config, and keeps what that uses until leave is called: an ordinary request counts as one
// in progress, and one that may take hours takes shares of its own.
func enterAdmin(ctx context.Context, long bool) (s *admin.Server, leave func(), err error) {
	app, err := activeApp()
	if err != nil {
		return nil, nil, caddy.APIError{HTTPStatus: http.StatusConflict, Err: fmt.Errorf("the running config has no analytics app: %w", err)}
	}
	rt, err := app.wait(ctx)
	switch {
	case errors.Is(err, errStarting):
		return nil, nil, caddy.APIError{HTTPStatus: http.StatusServiceUnavailable, Err: err}
	case err != nil:
		return nil, nil, err
	case !long:
		rt.inProgress.Add(1)
		return rt.admin, func() { rt.inProgress.Add(-1) }, nil
	}
	release, ok := rt.Retain()
	if !ok {
		return nil, nil, caddy.APIError{HTTPStatus: http.StatusServiceUnavailable, Err: errClosed}
	}
	return rt.admin, release, nil
}

// newAdmin returns what answers the operator's commands, with everything that was opened.
func (rt *runtime) newAdmin() *admin.Server {
	return &admin.Server{
		Registry: rt.registry, Shards: rt.Shards, References: &rt.references, Files: rt.topics.Files(),
		Cohorts: rt.cohorts, Alerts: rt.alerts, Keeper: rt.keeper, Deleter: rt.deleter, Backups: rt.backups,
		Import: rt.imports.run, ImportRuns: &rt.imports.runs,
		Captured: rt.capturing.logs, Counters: rt.capturing.counters,
		Codes: rt.signin.State.Codes, Console: rt.consoleSite,
	}
}

// Interface guard.
var _ caddy.AdminRouter = adminAPI{}
