package module

import (
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/module/admin"
	"github.com/caddy-analytics/caddy-analytics/module/alerts"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/capture"
	"github.com/caddy-analytics/caddy-analytics/module/api/references"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/api/routes"
	"github.com/caddy-analytics/caddy-analytics/module/api/signin"
	"github.com/caddy-analytics/caddy-analytics/module/backups"
	"github.com/caddy-analytics/caddy-analytics/module/cohorts"
	"github.com/caddy-analytics/caddy-analytics/module/deletions"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/intake"
	"github.com/caddy-analytics/caddy-analytics/module/materialize"
	"github.com/caddy-analytics/caddy-analytics/module/runlog"
	"github.com/caddy-analytics/caddy-analytics/module/upkeep"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// runtime is what requests work with: the app's shares of what outlives a config, and the settings of its config.
type runtime struct {
	*execution.Executor

	registry *registry.Registry
	engine   *engine // nil with a ClickHouse server
	plans    *cache.Memo[*result.Plan]
	tokens   *api.Tokens
	probe    *probe
	topics   *routes.Services // what the API's topics work with
	api      *api.API
	signin   *signin.SignIn // for sites with the console
	logs     *runlog.Logs
	logger   *zap.Logger
	// references tracks what uses actions and cohorts.
	references references.Index

	cohorts *cohorts.Calculator
	tables  *materialize.Filler
	alerts  *alerts.Checker
	keeper  *upkeep.Keeper
	deleter *deletions.Deleter
	intake  *intake.Intake
	imports *importing
	fleet   *fleet // nil if the registry belongs to this server alone

	backups   *backups.Backups
	admin     *admin.Server
	capturing *capturing
	capture   *capture.Capture // the routes of SDKs

	publicURL string // what links begin with; empty for the host of the request

	inProgress atomic.Int64 // requests, including those of the admin API
}

// checkRequests is how often keepForRequests checks whether requests are in progress.
const checkRequests = 100 * time.Millisecond

// keepForRequests keeps what requests in progress use until the last of them has ended.
func (rt *runtime) keepForRequests() {
	if rt.inProgress.Load() == 0 {
		return
	}
	release, ok := rt.Retain()
	if !ok {
		return
	}
	go func() {
		defer release()
		for tick := time.Tick(checkRequests); rt.inProgress.Load() > 0; {
			<-tick
		}
	}()
}

// forget drops the counters and the log of a deleted endpoint.
func (rt *runtime) forget(e *registry.Endpoint) {
	rt.Forget(e)
	rt.logs.Forget(e.ID)
}

// forgetProject makes this server forget everything about a deleted project.
func (rt *runtime) forgetProject(project int64) {
	now := time.Now()
	rt.Cache.Erase(project, now)
	rt.Runs.Erase(project, now)
	rt.ForgetProject(project)
	rt.cohorts.Compiler.ForgetProject(project)
	rt.tables.Compiler.ForgetProject(project)
	rt.Log.Forget(project)
	rt.capturing.counters.Forget(project)
	rt.capturing.logs.Forget(project)
	rt.references.Forget(project)
	rt.Places.Forget(project)
}
