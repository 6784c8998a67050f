package module

import (
	"fmt"
	"time"

	"github.com/caddy-analytics/caddy-analytics/clickhouse/embedded"
)

// A share is kept over a reload if its key stays the same, and replaced otherwise. The first word of a key names the share in logs. Each comment lists the
// options in the key. "+ x" means that the key also contains key x, so that the share is replaced whenever x is.

// baseKeys are the keys of shares that do not depend on where the rows are.
type baseKeys struct {
	sharedlog, folder, capture, gate string // data_dir
	engine                           string // data_dir, engine_library
	registry                         string // registry, data_dir
	signin, runs                     string // + registry
	// + registry. Not the limits: after a reload that changes one, requests in progress still write through the old connections.
	common string
	gc     string // none
}

// keys are the keys of all shares of a config.
type keys struct {
	baseKeys

	// peers, and with an address to listen on the source, which is made of clickhouse, clickhouse_cluster and the shards; + registry
	fleet string
	// clickhouse, clickhouse_cluster, the shards, and of limits max_execution_time, max_memory and what decides the number of places; + registry
	warehouse string
	// clickhouse; + registry. Not the limits, so that a reload does not hand out a place twice.
	places string
	// + warehouse
	log, cohorts, tables string
	// of cache max_size, stale and settled_past_on_disk; + warehouse + registry
	cache string
	// of cache ttl, and whether there are peers; + cache. A plan says how long its answer is fresh, and with peers how other servers plan it.
	plans string
	// + fleet, which counts the nodes
	sharing, tokens string
	// of limits rate; + sharing
	limits string
	// alerts, of cache ttl and settled_past, of limits endpoint_rate; + cache + limits
	alerts string
	// + cache
	imports, backups string
	// data_dir; + cache
	deletions, values string
	// data_dir; + cache + limits
	upkeep string
}

func (a *App) baseKeys() baseKeys {
	registry := fmt.Sprintf("registry %s %s", a.Registry, a.DataDir)
	library, err := embedded.LibraryPath(a.EngineLibrary)
	if err != nil {
		library = a.EngineLibrary // starting the engine reports the error
	}
	return baseKeys{
		sharedlog: "sharedlog " + a.DataDir,
		folder:    "folder " + a.DataDir,
		capture:   "capture " + a.DataDir,
		gate:      "gate " + a.DataDir,
		engine:    fmt.Sprintf("engine %s %s", a.DataDir, library),
		registry:  registry,
		common:    "common " + registry,
		signin:    "signin " + registry,
		runs:      "runs " + registry,
		gc:        "gc",
	}
}

// keys returns the keys of the shares of a config. dsn is that of the main shard, which the embedded engine chooses; source is that of App.source.
func (a *App) keys(dsn, source string) *keys {
	k := &keys{baseKeys: a.baseKeys()}
	peers := a.peersConfig()
	if peers.Listen == "" {
		source = "" // nobody asks this server
	}
	k.fleet = fmt.Sprintf("fleet %s %q %q %s", k.registry, peers.Listen, peers.Advertise, source)
	k.warehouse = fmt.Sprintf("clickhouse %s %q %s %d %d %d %s",
		dsn, a.Shards, a.Cluster, a.Limits.MaxExecutionTime, a.Limits.MaxMemory, a.placeLimits().Places, k.registry)
	k.places = fmt.Sprintf("places %s %s", dsn, k.registry)
	k.log = "log " + k.warehouse
	k.cohorts = "cohorts " + k.warehouse
	k.tables = "tables " + k.warehouse
	k.cache = fmt.Sprintf("cache %d %d %t %s %s", a.Cache.MaxSize, *a.Cache.Stale, a.Cache.SettledPastOnDisk, k.warehouse, k.registry)
	k.plans = fmt.Sprintf("plans %d %t %s", a.Cache.TTL, a.Peers != nil, k.cache)
	k.sharing = "sharing " + k.fleet
	k.tokens = "tokens " + k.sharing
	k.limits = fmt.Sprintf("limits %s %s", a.Limits.Rate, k.sharing)
	k.alerts = fmt.Sprintf("alerts %q %v whole %t fresh %s rate %v",
		[]string{k.cache, k.limits}, a.Alerts, !*a.Cache.SettledPast, time.Duration(a.Cache.TTL), a.Limits.EndpointRate)
	k.imports = "imports " + k.cache
	k.backups = "backups " + k.cache
	k.deletions = "deletions " + k.cache + " " + a.DataDir
	k.upkeep = fmt.Sprintf("upkeep %q %s", []string{k.cache, k.limits}, a.DataDir)
	k.values = "values " + k.cache + " " + a.DataDir
	return k
}
