package module

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/cache"
	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/references"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/api/signin"
	"github.com/caddy-analytics/caddy-analytics/module/cohorts"
	"github.com/caddy-analytics/caddy-analytics/module/datafolder"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/module/intake"
	"github.com/caddy-analytics/caddy-analytics/module/materialize"
	"github.com/caddy-analytics/caddy-analytics/module/querylog"
	"github.com/caddy-analytics/caddy-analytics/module/runlog"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/registry"
	_ "github.com/caddy-analytics/caddy-analytics/registry/postgres" // the store of postgres://…
	_ "github.com/caddy-analytics/caddy-analytics/registry/sqlite"   // the store of sqlite:PATH
)

// stores hold the data that a config names, and share out the access to them.
type stores struct {
	folder   *datafolder.Folder
	engine   *engine // nil with a ClickHouse server
	registry *registry.Registry
	source   string // see execution.Peering
	fleet    *fleet // nil if the registry belongs to this server alone
	shards   *warehouse.Shards
	places   *admission.Scheduler
	log      *querylog.Log
	keys     *keys
}

// serving is what requests for results work with, besides the stores.
type serving struct {
	*results

	plans    *cache.Memo[*result.Plan]
	limits   *execution.Limiter
	tokens   *api.Tokens
	sessions *signin.State
	runs     *execution.Runs
	cohorts  *cohorts.Calculator
	tables   *materialize.Filler
	// kept are the keys of all that was opened before the runs. A background run takes shares of its own of that, but not of the runs.
	kept []string
}

// open takes a share of everything that the config names, from the bottom up.
func (a *App) open(ctx context.Context) (*runtime, error) {
	below, err := a.openStores(ctx)
	if err != nil {
		return nil, err
	}
	with, err := a.openServing(ctx, below)
	if err != nil {
		return nil, err
	}
	rt := a.newRuntime(below, with)
	if err := a.openServices(rt, below.keys); err != nil {
		return nil, err
	}
	rt.probe = rt.newProbe()
	rt.topics = rt.newTopics()
	rt.api = rt.topics.NewAPI()
	rt.signin = &signin.SignIn{State: with.sessions, Registry: rt.registry, ClientIP: clientIP, Origins: rt.api.Origins, Logger: a.logger.Named("console")}
	rt.capture = a.newCapture(rt)
	if err := a.upgraded(below.folder, below.engine); err != nil {
		return nil, err
	}
	if rt.backups, err = a.openBackups(rt, below.keys); err != nil {
		return nil, err
	}
	rt.admin = rt.newAdmin()
	return rt, nil
}

// openStores takes shares of what holds the data.
func (a *App) openStores(ctx context.Context) (*stores, error) {
	var (
		s    stores
		err  error
		base = a.baseKeys()
	)
	if s.folder, err = a.openFolder(ctx, base.folder); err != nil {
		return nil, err
	}
	if s.engine, err = a.startEngine(ctx, base.engine, s.folder); err != nil {
		return nil, err
	}
	dsn := a.ClickHouse
	if s.engine != nil {
		dsn = s.engine.DSN()
	}
	if s.registry, err = a.openRegistry(ctx, base.registry); err != nil {
		return nil, err
	}
	if s.source, err = a.source(); err != nil {
		return nil, err
	}
	s.keys = a.keys(dsn, s.source)
	if s.fleet, err = a.openFleet(s.registry, s.keys.fleet, s.source); err != nil {
		return nil, err
	}
	common, err := keep(a, s.keys.common, func() (*warehouse.Common, func() error, error) { return warehouse.NewCommon(), nil, nil })
	if err != nil {
		return nil, err
	}
	if s.shards, err = a.openShards(ctx, s.keys.warehouse, dsn, s.registry, common); err != nil {
		return nil, err
	}
	reg := s.registry // all that the places may hold on to: they survive reloads
	s.places, err = keep(a, s.keys.places, func() (*admission.Scheduler, func() error, error) {
		return admission.NewSharded(a.placeLimits(), func(project int64) string { return reg.Snapshot().ShardOf(project) }), nil, nil
	})
	if err != nil {
		return nil, err
	}
	s.log, err = keep(a, s.keys.log, func() (*querylog.Log, func() error, error) {
		l := querylog.New(querylog.Config{Shards: s.shards, Runs: runlog.New(time.Now()), Logger: a.logger.Named("querylog")})
		return l, l.Close, nil
	})
	if err != nil {
		return nil, err
	}
	return &s, nil
}

// openServing takes shares of what requests for results work with.
func (a *App) openServing(ctx context.Context, below *stores) (*serving, error) {
	var (
		s   serving
		err error
		k   = below.keys
	)
	s.results, err = keep(a, k.cache, func() (*results, func() error, error) { return openResults(ctx, a, below.shards, below.registry) })
	if err != nil {
		return nil, err
	}
	s.plans, err = keep(a, k.plans, func() (*cache.Memo[*result.Plan], func() error, error) {
		return result.NewPlans(), nil, nil
	})
	if err != nil {
		return nil, err
	}
	if s.limits, s.tokens, err = a.openRates(below.registry, below.fleet, k); err != nil {
		return nil, err
	}
	s.sessions, err = keep(a, k.signin, func() (*signin.State, func() error, error) { return signin.NewState(below.registry), nil, nil })
	if err != nil {
		return nil, err
	}
	if _, err := keep(a, k.gc, tuneGC); err != nil {
		return nil, err
	}
	s.kept = slices.Clone(a.kept)
	// After all that, so that they are closed first, while what they use still exists.
	s.runs, err = keep(a, k.runs, func() (*execution.Runs, func() error, error) {
		rs := execution.NewRuns()
		return rs, rs.Close, nil
	})
	if err != nil {
		return nil, err
	}
	if s.cohorts, err = a.openCohorts(below, k.cohorts); err != nil {
		return nil, err
	}
	if s.tables, err = a.openTables(below, s.cohorts, k.tables); err != nil {
		return nil, err
	}
	return &s, nil
}

// newRuntime returns a runtime with the settings of the config, without its services.
func (a *App) newRuntime(below *stores, with *serving) *runtime {
	rt := &runtime{
		Executor: &execution.Executor{
			Compiler: with.compiler, Peering: execution.Peering{Hops: with.hops, Source: below.source},
			Settings: execution.Settings{QueryFresh: time.Duration(a.Cache.TTL), EndpointRate: a.Limits.EndpointRate, WholeOnly: !*a.Cache.SettledPast},
			Cache:    with.cache, Places: below.places, Limits: with.limits, Runs: with.runs, Metrics: with.metrics, Names: with.names, Cohorts: with.cohorts,
			Log:     below.log,
			Retain:  func() (func(), bool) { return retain(with.kept) },
			Reports: execution.Reports{Run: a.reportRun, Table: a.reportTable, Pieces: a.reportPieces},
		},
		registry: below.registry, engine: below.engine, cohorts: with.cohorts, tables: with.tables, plans: with.plans, tokens: with.tokens,
		logs: below.log.Runs, logger: a.logger, publicURL: a.PublicURL, fleet: below.fleet,
		intake: &intake.Intake{
			Registry: below.registry, Shards: below.shards, Places: below.places, Cache: with.cache, Calculate: with.cohorts.Calculate, Logger: a.logger,
		},
	}
	if below.fleet != nil && below.fleet.peers != nil {
		rt.Peers = below.fleet
	}
	return rt
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

// results is the cache of answers, with the cached schemas of projects and the counters.
type results struct {
	cache    *cache.Cache
	compiler *execution.Compiler
	names    *execution.Sightings
	hops     *execution.Hops
	metrics  *execution.Metrics
}

func openResults(ctx context.Context, a *App, shards *warehouse.Shards, reg *registry.Registry) (*results, func() error, error) {
	c, err := cache.New(cache.Config{
		MaxBytes: int64(a.Cache.MaxSize), Stale: time.Duration(*a.Cache.Stale), IsOutage: execution.StaleIsBetter, IsRefusal: execution.IsRefusal,
		RefreshTimeout: time.Duration(a.Limits.MaxExecutionTime) + 10*time.Second, Report: a.reportLoad,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("setting up the cache: %w", err)
	}
	save := a.loadBuckets(ctx, c, shards)
	found := &results{
		cache: c, compiler: &execution.Compiler{Shards: shards, Registry: reg}, names: new(execution.Sightings), hops: execution.NewHops(), metrics: execution.NewMetrics(),
	}
	return found, func() error { save(); c.Close(); return nil }, nil
}

// openRates takes a share of the rate limiter and of the checked tokens.
func (a *App) openRates(reg *registry.Registry, others *fleet, k *keys) (limits *execution.Limiter, tokens *api.Tokens, err error) {
	sharing, err := a.openSharing(reg, others, k.sharing)
	if err != nil {
		return nil, nil, err
	}
	limits, err = keep(a, k.limits, func() (*execution.Limiter, func() error, error) {
		l := execution.NewLimiter(a.Limits.Rate)
		l.Sharing = sharing
		return l, nil, nil
	})
	if err != nil {
		return nil, nil, err
	}
	tokens, err = keep(a, k.tokens, func() (*api.Tokens, func() error, error) {
		t := api.NewTokens()
		t.Sharing = sharing
		return t, nil, nil
	})
	return limits, tokens, err
}

// openCohorts takes a share of what computes cohorts.
func (a *App) openCohorts(below *stores, key string) (*cohorts.Calculator, error) {
	return keep(a, key, func() (*cohorts.Calculator, func() error, error) {
		var uses references.Index
		c := cohorts.New(cohorts.Config{
			Registry: below.registry, Logger: a.logger.Named("cohorts"),
			Compiler: &execution.Compiler{Shards: below.shards}, Shards: below.shards, Places: below.places,
			InUse: func(snap *registry.Snapshot, project, cohort int64) bool {
				return len(uses.Of(snap, project).OfCohort(cohort)) > 0
			},
		})
		return c, c.Close, nil
	})
}

// openTables takes a share of what fills the tables of materialized endpoints.
func (a *App) openTables(below *stores, of *cohorts.Calculator, key string) (*materialize.Filler, error) {
	return keep(a, key, func() (*materialize.Filler, func() error, error) {
		f := materialize.New(materialize.Config{
			Registry: below.registry, Logger: a.logger.Named("materialized"),
			Compiler: &execution.Compiler{Shards: below.shards}, Shards: below.shards, Places: below.places, Cohorts: of,
		})
		return f, f.Close, nil
	})
}
