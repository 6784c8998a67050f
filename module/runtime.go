package module

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/alerts"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/capture"
	"github.com/caddy-analytics/caddy-analytics/module/api/references"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/api/signin"
	"github.com/caddy-analytics/caddy-analytics/module/backups"
	"github.com/caddy-analytics/caddy-analytics/module/cohorts"
	"github.com/caddy-analytics/caddy-analytics/module/deletions"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/intake"
	"github.com/caddy-analytics/caddy-analytics/module/materialize"
	"github.com/caddy-analytics/caddy-analytics/module/querylog"
	"github.com/caddy-analytics/caddy-analytics/module/runlog"
	"github.com/caddy-analytics/caddy-analytics/module/upkeep"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/registry"
	_ "github.com/caddy-analytics/caddy-analytics/registry/postgres" // the store of postgres://…
	_ "github.com/caddy-analytics/caddy-analytics/registry/sqlite"   // the store of sqlite:PATH
)

// runtime is what requests work with: the app's shares of what outlives a config, and the settings of its config.
type runtime struct {
	*execution.Executor

	registry *registry.Registry
	engine   *embedded.Engine // nil with a ClickHouse server
	plans    *cache.Memo[*result.Plan]
	tokens   *api.Tokens
	probe    *probe
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

// open takes a share of everything that the config names, from the bottom up.
func (a *App) open(ctx context.Context) (*runtime, error) {
	folder, err := a.openFolder(ctx)
	if err != nil {
		return nil, err
	}
	engine, err := a.startEngine(ctx, folder)
	if err != nil {
		return nil, err
	}
	dsn := a.ClickHouse
	if engine != nil {
		dsn = engine.DSN()
	}
	registryKey := fmt.Sprintf("registry %s %s", a.Registry, a.DataDir)
	reg, err := a.openRegistry(ctx, registryKey)
	if err != nil {
		return nil, err
	}
	source, err := a.source()
	if err != nil {
		return nil, err
	}
	others, err := a.openFleet(reg, registryKey, source)
	if err != nil {
		return nil, err
	}
	// Independent of the limits: after a reload that changes one, requests in progress still write through the old connections.
	common, err := keep(a, "common "+registryKey, func() (*warehouse.Common, func() error, error) { return warehouse.NewCommon(), nil, nil })
	if err != nil {
		return nil, err
	}
	warehouseKey := fmt.Sprintf("clickhouse %s %q %s %d %d %d %s", dsn, a.Shards, a.Cluster, a.Limits.MaxExecutionTime, a.Limits.MaxMemory, a.placeLimits().Places, registryKey)
	shards, err := a.openShards(ctx, warehouseKey, dsn, reg, common)
	if err != nil {
		return nil, err
	}
	// Independent of the other limits, so that a reload does not hand out a place twice.
	places, err := keep(a, fmt.Sprintf("places %s %s", dsn, registryKey), func() (*admission.Scheduler, func() error, error) {
		return admission.NewSharded(a.placeLimits(), func(project int64) string { return reg.Snapshot().ShardOf(project) }), nil, nil
	})
	if err != nil {
		return nil, err
	}
	log, err := keep(a, "log "+warehouseKey, func() (*querylog.Log, func() error, error) {
		l := querylog.New(querylog.Config{Shards: shards, Runs: runlog.New(time.Now()), Logger: a.logger.Named("querylog")})
		return l, l.Close, nil
	})
	if err != nil {
		return nil, err
	}
	cacheKey := fmt.Sprintf("cache %d %d %t %s %s", a.Cache.MaxSize, *a.Cache.Stale, a.Cache.SettledPastOnDisk, warehouseKey, registryKey)
	results, err := keep(a, cacheKey, func() (*results, func() error, error) {
		return openResults(ctx, a, shards)
	})
	if err != nil {
		return nil, err
	}
	// A plan says how long its answer is fresh, and with peers how other servers plan it, so a config that differs in these has its own plans.
	plans, err := keep(a, fmt.Sprintf("plans %d %t %s", a.Cache.TTL, a.Peers != nil, cacheKey), func() (*cache.Memo[*result.Plan], func() error, error) {
		return cache.NewMemo(result.PlanMemory, (*result.Plan).Size), nil, nil
	})
	if err != nil {
		return nil, err
	}
	limits, believed, limitsKey, err := a.openRates(reg, others, a.fleetKey(registryKey, source))
	if err != nil {
		return nil, err
	}
	sessions, err := keep(a, "signin "+registryKey, func() (*signin.State, func() error, error) { return signin.NewState(reg), nil, nil })
	if err != nil {
		return nil, err
	}
	if _, err := keep(a, "collector", tuneCollector); err != nil {
		return nil, err
	}
	kept := slices.Clone(a.kept) // a background run holds its own shares of all this, but not of the runs
	// Last, so that they are closed first, while what they use still exists.
	background, err := keep(a, "runs "+registryKey, func() (*execution.Runs, func() error, error) {
		rs := execution.NewRuns()
		return rs, rs.Close, nil
	})
	if err != nil {
		return nil, err
	}
	calculator, err := a.openCohorts(reg, shards, places, warehouseKey)
	if err != nil {
		return nil, err
	}
	tables, err := a.openTables(reg, shards, places, calculator, warehouseKey)
	if err != nil {
		return nil, err
	}
	background.Budget.Store(int64(a.Cache.MaxSize) / runsShare)
	rt := &runtime{
		Executor: &execution.Executor{
			Cache: results.cache, Shards: shards, Places: places, Limits: limits, Runs: background, Metrics: results.metrics,
			Databases: results.databases, Names: results.names, Cohorts: calculator, Registry: reg, Log: log, QueryFresh: time.Duration(a.Cache.TTL), EndpointRate: a.Limits.EndpointRate,
			Retain: func() (func(), bool) { return retain(kept) }, Report: a.reportRun, ReportTable: a.reportTable,
			WholeOnly: !*a.Cache.SettledPast, ReportPieces: a.reportPieces, Hops: results.hops, Source: source,
		},
		registry: reg, engine: engine, cohorts: calculator, tables: tables, plans: plans, tokens: believed, logs: log.Runs, logger: a.logger, publicURL: a.PublicURL,
		fleet:  others,
		intake: &intake.Intake{Registry: reg, Shards: shards, Places: places, Cache: results.cache, Calculate: calculator.Calculate, Logger: a.logger},
	}
	if others != nil && others.peers != nil {
		rt.Peers = others
	}
	if rt.alerts, err = a.openAlerts(rt, cacheKey, limitsKey); err != nil {
		return nil, err
	}
	if rt.imports, err = a.openImports(rt, cacheKey); err != nil {
		return nil, err
	}
	if rt.capturing, err = a.openCapture(); err != nil {
		return nil, err
	}
	if rt.deleter, err = a.openDeleter(rt, cacheKey); err != nil {
		return nil, err
	}
	if rt.keeper, err = a.openKeeper(rt, cacheKey); err != nil {
		return nil, err
	}
	if err := a.openValues(rt, cacheKey); err != nil {
		return nil, err
	}
	rt.probe = rt.newProbe()
	rt.api = rt.newAPI()
	rt.signin = &signin.SignIn{State: sessions, Registry: reg, ClientIP: clientIP, Origins: rt.api.Origins, Logger: a.logger.Named("console")}
	rt.capture = a.newCapture(rt)
	if err := a.upgraded(folder, engine); err != nil {
		return nil, err
	}
	if rt.backups, err = a.openBackups(rt, cacheKey); err != nil {
		return nil, err
	}
	return rt, nil
}

// openRegistry takes a share of the registry.
func (a *App) openRegistry(ctx context.Context, key string) (*registry.Registry, error) {
	return keep(a, key, func() (*registry.Registry, func() error, error) {
		r, err := openRegistry(ctx, a.Registry, a.DataDir, a.logger.Named("registry"))
		if err != nil {
			return nil, nil, fmt.Errorf("opening the registry: %w", err)
		}
		return r, r.Close, nil
	})
}

// openShards takes a share of the connections to ClickHouse. A server that does not answer yet is not an error, and is not waited for.
func (a *App) openShards(ctx context.Context, key, dsn string, reg *registry.Registry, common *warehouse.Common) (*warehouse.Shards, error) {
	shards, err := keep(a, key, func() (*warehouse.Shards, func() error, error) {
		opened, err := warehouse.OpenShards(warehouse.ShardsConfig{
			Main: clickhouse.Config{
				DSN: dsn, Cluster: a.Cluster, MaxExecutionTime: time.Duration(a.Limits.MaxExecutionTime), MaxMemory: int64(a.Limits.MaxMemory), MaxResultBytes: execution.MaxResultBytes,
				MaxResultRows: execution.MaxResultRows,
				Concurrency:   a.placeLimits().Places + spareConnections,
				Embedded:      a.ClickHouse == "",
				Priorities:    a.ClickHouse == "" && embedded.MaySetPriorities(),
			},
			Others: a.Shards, Shared: reg, Common: common, Of: func(project int64) string { return reg.Snapshot().ShardOf(project) }, Logger: a.logger.Named("clickhouse"),
		})
		if err != nil {
			return nil, nil, err
		}
		return opened, opened.Close, nil
	})
	if err != nil || a.ClickHouse != "" {
		return shards, err
	}
	if _, err := shards.Main().Prepare(ctx); err != nil {
		return nil, fmt.Errorf("preparing the embedded engine: %w", err)
	}
	return shards, nil
}

// openRates takes a share of the rate limiter and of the checked tokens, and returns the key of the limiter.
func (a *App) openRates(reg *registry.Registry, others *fleet, fleetKey string) (limits *execution.Limiter, tokens *api.Tokens, limitsKey string, err error) {
	sharing, sharingKey, err := a.openSharing(reg, others, fleetKey)
	if err != nil {
		return nil, nil, "", err
	}
	limitsKey = fmt.Sprintf("limits %s %s", a.Limits.Rate, sharingKey)
	limits, err = keep(a, limitsKey, func() (*execution.Limiter, func() error, error) {
		l := execution.NewLimiter(a.Limits.Rate)
		l.Sharing = sharing
		return l, nil, nil
	})
	if err != nil {
		return nil, nil, "", err
	}
	tokens, err = keep(a, "tokens "+sharingKey, func() (*api.Tokens, func() error, error) {
		t := api.NewTokens()
		t.Sharing = sharing
		return t, nil, nil
	})
	return limits, tokens, limitsKey, err
}

// openCohorts takes a share of what computes cohorts.
func (a *App) openCohorts(reg *registry.Registry, shards *warehouse.Shards, places *admission.Scheduler, warehouseKey string) (*cohorts.Calculator, error) {
	return keep(a, "cohorts "+warehouseKey, func() (*cohorts.Calculator, func() error, error) {
		var uses references.Index
		c := cohorts.New(cohorts.Config{
			Registry: reg, Logger: a.logger.Named("cohorts"),
			Executor: &execution.Executor{Shards: shards, Places: places, Databases: new(execution.Databases)},
			InUse: func(snap *registry.Snapshot, project, cohort int64) bool {
				return len(uses.Of(snap, project).OfCohort(cohort)) > 0
			},
		})
		return c, c.Close, nil
	})
}

// openTables takes a share of what fills the tables of materialized endpoints.
func (a *App) openTables(reg *registry.Registry, shards *warehouse.Shards, places *admission.Scheduler, of *cohorts.Calculator, warehouseKey string) (*materialize.Filler, error) {
	return keep(a, "tables "+warehouseKey, func() (*materialize.Filler, func() error, error) {
		f := materialize.New(materialize.Config{
			Registry: reg, Logger: a.logger.Named("materialized"),
			Executor: &execution.Executor{Shards: shards, Places: places, Databases: new(execution.Databases), Cohorts: of},
		})
		return f, f.Close, nil
	})
}

// keep takes a share and records that Cleanup has to give it back.
func keep[T any](a *App, key string, open func() (T, func() error, error)) (T, error) {
	value, release, err := lease(key, open)
	if err == nil {
		a.leases, a.kept = append(a.leases, release), append(a.kept, key)
	}
	return value, err
}

// forget drops the counters and the log of a deleted endpoint.
func (rt *runtime) forget(e *registry.Endpoint) {
	rt.Forget(e)
	rt.logs.Forget(e.ID)
}

// placeLimits returns the limits of places. The embedded engine runs a fixed number of queries at a time, whatever the config says.
func (a *App) placeLimits() admission.Limits {
	l := admission.Limits{Places: a.Limits.Places, Project: a.Limits.Concurrency, Queue: execution.QueueFactor * a.Limits.Concurrency}
	switch most := embedded.DefaultMaxQueries(); {
	case a.ClickHouse != "" && l.Places == 0:
		l.Places = placesFactor * a.Limits.Concurrency
	case a.ClickHouse == "" && (l.Places == 0 || l.Places > most):
		l.Places = most
	}
	return l
}

// spareQueries run in the engine in addition to those with a place: discovery and the delivery of captured events, which slow queries must not hold up.
const spareQueries = 2

// placesFactor is how many projects may use their full concurrency at the same time on a ClickHouse server.
const placesFactor = 4

// spareConnections are for work without a place: pings, discovery, and the delivery of captured events.
const spareConnections = 4

// runsShare is the part of the cache's size that the answers of finished background runs may take in addition: one in runsShare.
const runsShare = 4

// results is the cache of answers, with the cached schemas of projects and the counters.
type results struct {
	cache     *cache.Cache
	databases *execution.Databases
	names     *execution.Sightings
	hops      *execution.Hops
	metrics   *execution.Metrics
}

func openResults(ctx context.Context, a *App, shards *warehouse.Shards) (*results, func() error, error) {
	c, err := cache.New(cache.Config{
		MaxBytes: int64(a.Cache.MaxSize), Stale: time.Duration(*a.Cache.Stale), IsOutage: execution.StaleIsBetter, IsRefusal: execution.IsRefusal,
		RefreshTimeout: time.Duration(a.Limits.MaxExecutionTime) + 10*time.Second, Report: a.reportLoad,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("setting up the cache: %w", err)
	}
	save := a.loadBuckets(ctx, c, shards)
	found := &results{cache: c, databases: new(execution.Databases), names: new(execution.Sightings), hops: execution.NewHops(), metrics: execution.NewMetrics()}
	return found, func() error { save(); c.Close(); return nil }, nil
}

// reportLoad logs failures that callers are not told of: a panic, with its stack, and a failed background refresh. A refresh that a limit refused is
// only counted.
func (a *App) reportLoad(key cache.Key, err error) {
	if crash, ok := errors.AsType[*cache.PanicError](err); ok {
		a.logger.Error("computing a result panicked", zap.Stringer("key", key), zap.Error(err), zap.ByteString("stack", crash.Stack))
	} else if !execution.IsRefusal(err) {
		a.logger.Warn("a background refresh failed", zap.Stringer("key", key), api.Logged(err))
	}
}

// reportRun logs the failure of a background run that is not its caller's fault.
func (a *App) reportRun(key cache.Key, err error) {
	if failure := api.ErrorOf(err); failure.Status >= http.StatusInternalServerError {
		fields := []zap.Field{zap.Int("status", failure.Status), zap.String("code", failure.Code), zap.Stringer("key", key), api.Logged(failure.Cause)}
		if crash, ok := errors.AsType[*cache.PanicError](err); ok {
			fields = append(fields, zap.ByteString("stack", crash.Stack))
		}
		a.logger.Error("a background run failed", fields...)
	}
}

// reportTable logs that a run could not read the table of its version, and ran the query instead.
func (a *App) reportTable(q *execution.Query, err error) {
	a.logger.Warn("the table of a materialized endpoint cannot be read; its query ran instead", zap.Int64("project", q.Key.Project()),
		zap.String("endpoint", q.Endpoint.Name), zap.Int("version", q.Version.Number), api.Logged(err))
}

// reportPieces logs that an answer could not be put together from buckets of time, and was computed in one piece.
func (a *App) reportPieces(q *execution.Query, err error) {
	a.logger.Warn("an answer cannot be put together from buckets of time; its query ran as a whole", zap.Int64("project", q.Key.Project()),
		zap.String("kind", q.Node.Kind()), api.Logged(err))
}

func openRegistry(ctx context.Context, dsn, dataDir string, logger *zap.Logger) (*registry.Registry, error) {
	store, err := registry.OpenStore(ctx, dsn, dataDir)
	if err != nil {
		return nil, err
	}
	r, err := registry.Open(ctx, store, registry.Options{Logger: logger})
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	if err := r.AddCaptureTokens(ctx, time.Now()); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}
