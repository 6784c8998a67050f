package module

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/runlog"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/registry"
	_ "github.com/caddy-analytics/caddy-analytics/registry/sqlite" // the store of sqlite:PATH
)

// runtime is what requests work with: the app's shares of what outlives a config, and the settings of this one.
type runtime struct {
	registry  *registry.Registry
	engine    *embedded.Engine // nil in front of a ClickHouse server
	warehouse *warehouse.Warehouse
	places    *admission.Scheduler
	cache     *cache.Cache
	plans     *cache.Memo[*plan]
	databases *databases
	names     *sightings
	limits    *limiter
	tokens    *tokens
	metrics   *metrics
	probe     *probe
	logs      *runlog.Logs
	runs      *runs
	logger    *zap.Logger

	// What the app holds shares of but the runs, by its keys: a background run holds shares of its own.
	kept       []string
	queryFresh time.Duration // how long an answer of the query route is fresh
	// What the runs of an endpoint may cause that has no rate of its own; zero: any number.
	endpointRate Rate
	publicURL    string // what links begin with; empty for the host of the request
}

// open takes a share of everything that the config names, from the bottom up.
func (a *App) open(ctx context.Context) (*runtime, error) {
	engine, err := a.startEngine(ctx)
	if err != nil {
		return nil, err
	}
	dsn := a.ClickHouse
	if engine != nil {
		dsn = engine.DSN()
	}
	warehouseKey := fmt.Sprintf("clickhouse %s %d %d %d", dsn, a.Limits.MaxExecutionTime, a.Limits.MaxMemory, a.placeLimits().Places)
	house, err := a.openWarehouse(ctx, warehouseKey, dsn)
	if err != nil {
		return nil, err
	}
	// Whatever the other limits are, so that a reload hands out no place twice.
	places, err := keep(a, "places "+dsn, func() (*admission.Scheduler, func() error, error) {
		return admission.New(a.placeLimits()), func() error { return nil }, nil
	})
	if err != nil {
		return nil, err
	}
	registryKey := fmt.Sprintf("registry %s %s", a.Registry, a.DataDir)
	reg, err := keep(a, registryKey, func() (*registry.Registry, func() error, error) {
		r, err := openRegistry(ctx, a.Registry, a.DataDir, a.logger.Named("registry"))
		if err != nil {
			return nil, nil, fmt.Errorf("opening the registry: %w", err)
		}
		return r, r.Close, nil
	})
	if err != nil {
		return nil, err
	}
	results, err := keep(a, fmt.Sprintf("cache %d %d %s %s", a.Cache.MaxSize, *a.Cache.Stale, warehouseKey, registryKey), func() (*results, func() error, error) {
		return openResults(a)
	})
	if err != nil {
		return nil, err
	}
	limits, err := keep(a, fmt.Sprintf("limits %s %s", a.Limits.Rate, registryKey), func() (*limiter, func() error, error) {
		return newLimiter(a.Limits.Rate), func() error { return nil }, nil
	})
	if err != nil {
		return nil, err
	}
	believed, err := keep(a, "tokens "+registryKey, func() (*tokens, func() error, error) {
		return newTokens(), func() error { return nil }, nil
	})
	if err != nil {
		return nil, err
	}
	kept := slices.Clone(a.kept)
	// Last, so that they are closed first: what they use is still there then.
	background, err := keep(a, "runs "+registryKey, func() (*runs, func() error, error) {
		rs := newRuns()
		return rs, rs.close, nil
	})
	if err != nil {
		return nil, err
	}
	background.budget.Store(int64(a.Cache.MaxSize) / runsShare)
	rt := &runtime{
		registry: reg, engine: engine, warehouse: house, places: places, cache: results.cache, plans: results.plans, databases: results.databases, names: results.names, limits: limits, tokens: believed,
		metrics: results.metrics, logs: results.logs, runs: background, kept: kept, logger: a.logger, queryFresh: time.Duration(a.Cache.TTL),
		endpointRate: a.Limits.EndpointRate, publicURL: a.PublicURL,
	}
	rt.probe = rt.newProbe()
	return rt, nil
}

// startEngine takes a share of the embedded engine, unless the config names a server.
func (a *App) startEngine(ctx context.Context) (*embedded.Engine, error) {
	if a.ClickHouse != "" {
		return nil, nil
	}
	return keep(a, fmt.Sprintf("engine %s %s", a.DataDir, a.EngineLibrary), func() (*embedded.Engine, func() error, error) {
		e, err := embedded.Start(ctx, embedded.Config{
			DataDir: filepath.Join(a.DataDir, "engine"), Library: a.EngineLibrary,
		}, a.logger.Named("engine"))
		if err != nil {
			return nil, nil, err
		}
		return e, e.Close, nil
	})
}

// openWarehouse takes a share of the connection to ClickHouse. A server that does not answer yet is no error, and is not waited for.
func (a *App) openWarehouse(ctx context.Context, key, dsn string) (*warehouse.Warehouse, error) {
	house, err := keep(a, key, func() (*warehouse.Warehouse, func() error, error) {
		opened, err := warehouse.Open(clickhouse.Config{
			DSN: dsn, MaxExecutionTime: time.Duration(a.Limits.MaxExecutionTime), MaxMemory: int64(a.Limits.MaxMemory), MaxResultBytes: maxResultBytes,
			MaxResultRows: maxResultRows,
			Concurrency:   a.placeLimits().Places + spareConnections,
			Embedded:      a.ClickHouse == "",
			Priorities:    a.ClickHouse == "" && embedded.MaySetPriorities(),
		}, a.logger.Named("clickhouse"))
		if err != nil {
			return nil, nil, err
		}
		return opened, opened.Close, nil
	})
	if err != nil || a.ClickHouse != "" {
		return house, err
	}
	if _, err := house.Prepare(ctx); err != nil {
		return nil, fmt.Errorf("preparing the embedded engine: %w", err)
	}
	return house, nil
}

// keep takes a share and notes that Cleanup has to give it back.
func keep[T any](a *App, key string, open func() (T, func() error, error)) (T, error) {
	value, release, err := lease(key, open)
	if err == nil {
		a.leases, a.kept = append(a.leases, release), append(a.kept, key)
	}
	return value, err
}

// retain takes shares of all that the runtime works with, for a run that may outlive its config.
func (rt *runtime) retain() (release func(), ok bool) { return retain(rt.kept) }

// forget drops what was counted and noted of an endpoint that was deleted.
func (rt *runtime) forget(e *registry.Endpoint) {
	rt.metrics.forget(e.Project, e.Name)
	rt.logs.Forget(e.ID)
	rt.limits.forget(e.ID)
}

// placeLimits are the limits of places. The embedded engine runs a number of queries at a time, whatever the config says.
func (a *App) placeLimits() admission.Limits {
	l := admission.Limits{Places: a.Limits.Places, Project: a.Limits.Concurrency, Queue: queueFactor * a.Limits.Concurrency}
	switch most := embedded.DefaultMaxQueries(); {
	case a.ClickHouse != "" && l.Places == 0:
		l.Places = placesFactor * a.Limits.Concurrency
	case a.ClickHouse == "" && (l.Places == 0 || l.Places > most):
		l.Places = most
	}
	return l
}

// placesFactor is how many projects may run all that they may at once on a ClickHouse server.
const placesFactor = 4

// spareConnections are for what needs no place: pings and discovery.
const spareConnections = 2

// runsShare is the part of the cache's size that the answers of ended background runs may take beside it.
const runsShare = 4

// The most that one result may hold in memory; larger ones are refused. On its way a result is there several times: as rows, as a page,
// and as what has yet to be collected as garbage. Only insights come near the rows: other queries have a LIMIT.
const (
	maxResultBytes = 64 << 20
	maxResultRows  = 1_000_000
)

// results is the cache of answers beside what was understood before, requests and the schemas of projects, and what was counted.
type results struct {
	cache     *cache.Cache
	plans     *cache.Memo[*plan]
	databases *databases
	names     *sightings
	metrics   *metrics
	logs      *runlog.Logs
}

func openResults(a *App) (*results, func() error, error) {
	c, err := cache.New(cache.Config{
		MaxBytes: int64(a.Cache.MaxSize), Stale: time.Duration(*a.Cache.Stale), IsOutage: isOutage, IsRefusal: isRefusal,
		RefreshTimeout: time.Duration(a.Limits.MaxExecutionTime) + 10*time.Second, Report: a.reportLoad,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("setting up the cache: %w", err)
	}
	found := &results{cache: c, plans: cache.NewMemo(planMemory, (*plan).size), databases: new(databases), names: new(sightings), metrics: newMetrics(), logs: new(runlog.Logs)}
	return found, func() error { c.Close(); return nil }, nil
}

// reportLoad logs what callers are not told of: a panic, with the place where it happened, and a background refresh that failed.
// One that a limit refused is counted instead.
func (a *App) reportLoad(key cache.Key, err error) {
	if crash, ok := errors.AsType[*cache.PanicError](err); ok {
		a.logger.Error("computing a result panicked", zap.Stringer("key", key), zap.Error(err), zap.ByteString("stack", crash.Stack))
	} else if !isRefusal(err) {
		a.logger.Warn("a background refresh failed", zap.Stringer("key", key), logged(err))
	}
}

// isRefusal tells the refusals of limits.
func isRefusal(err error) bool {
	_, refused := refusedBy(err)
	return refused
}

// isOutage tells the failures that are no fault of the query: a stale answer is better than these.
func isOutage(err error) bool {
	var e *clickhouse.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Kind {
	case clickhouse.Unavailable, clickhouse.Busy, clickhouse.Timeout, clickhouse.Memory, clickhouse.Internal:
		return true
	case clickhouse.UserError, clickhouse.Unrunnable, clickhouse.TooSlow, clickhouse.TooLarge:
	}
	return false
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
	return r, nil
}

// CheckClickHouseDSN tells what is wrong with the DSN of a ClickHouse server. Its error holds no password.
func CheckClickHouseDSN(dsn string) error { return clickhouse.Config{DSN: dsn}.Validate() }

// CheckRegistryDSN tells what is wrong with the DSN of a registry.
func CheckRegistryDSN(dsn string) error { return registry.CheckDSN(dsn) }
