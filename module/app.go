// Package module adds the analytics API to Caddy: the app that owns the connections, the registry snapshot and the cache, the handler that answers
// requests, and the admin API. It contains no query logic.
package module

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/caddy-analytics/caddy-analytics/internal/startpages"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

func init() { caddy.RegisterModule(new(App)) }

// App is the Caddy app "analytics". It owns what the handlers of all sites share: the connection to ClickHouse or the embedded engine, the registry
// and the result cache. All of these survive config reloads.
type App struct {
	// The ClickHouse server or cluster to use, as a DSN: clickhouse:// and tcp:// speak the native protocol, http:// and https:// HTTP. Default: the
	// embedded engine.
	ClickHouse string `json:"clickhouse,omitempty"`
	// The ClickHouse cluster on whose servers the tables are created, as replicated tables. Default: tables are created on one server.
	Cluster string `json:"clickhouse_cluster,omitempty"`
	// Further ClickHouse servers, or groups of replicas: DSNs by name. All rows of a project are on one of them, or on the server of clickhouse; a
	// new project goes to the one with the fewest projects. Default: none.
	Shards map[string]string `json:"clickhouse_shards,omitempty"`
	// Where projects, keys and endpoints are stored, as a DSN: sqlite:PATH, or postgres://… for several nodes. Default: registry.db in the data folder.
	Registry string `json:"registry,omitempty"`
	// The folder of the embedded engine, the default registry, captured events that wait for ClickHouse, and files that are being imported. It must
	// outlive restarts, also with a ClickHouse server and PostgreSQL. Default: analytics in Caddy's own data folder.
	DataDir string `json:"data_dir,omitempty"`
	// The libchdb.so of the embedded engine. Default: the one that `make engine` puts into the user's cache folder.
	EngineLibrary string `json:"engine_library,omitempty"`
	// What links in answers begin with, such as https://api.example.com. Default: the scheme and host of the request, or those forwarded by one of
	// Caddy's trusted_proxies.
	PublicURL string `json:"public_url,omitempty"`
	// The result cache.
	Cache CacheConfig `json:"cache,omitzero"`
	// Limits for queries, projects and keys.
	Limits Limits `json:"limits,omitzero"`
	// How events come in over HTTP.
	Capture CaptureConfig `json:"capture,omitzero"`
	// Where alerts are sent.
	Alerts AlertsConfig `json:"alerts,omitzero"`
	// How the servers that share the registry ask one another for results. Default: each server computes its own.
	Peers *PeersConfig `json:"peers,omitempty"`
	// Folders of endpoint files, one per project. Default: none.
	Endpoints []EndpointFolder `json:"endpoints,omitempty"`

	own     *zap.Logger // of this config alone
	logger  *zap.Logger // once started, of the newest config: see sharedlog
	leases  []func() error
	kept    []string // the keys of the shares that leases give back
	started chan struct{}
	held    chan struct{} // closed if the start continues in the background, waiting for the registry
	runtime atomic.Pointer[runtime]
	console atomic.Bool // some site has the console

	stopStart   func() // ends the start in the background; nil if there is none
	stopFolders func() // ends the tasks that wait to apply endpoint files; nil if there are none
}

// CaptureConfig bounds what comes in over HTTP. Events wait in a log on disk until they are in ClickHouse.
type CaptureConfig struct {
	// How much of the disk the log may take, in the data folder; the log of each shard may take as much. Beyond that, events are refused with 503.
	// Default: 4GiB.
	Buffer Size `json:"buffer,omitempty"`
	// The largest event, as JSON. The routes for AI events accept at least 8 MiB. Default: 1MiB.
	MaxEventSize Size `json:"max_event_size,omitempty"`
	// The largest request body, as sent. Default: 20MiB.
	MaxBatchSize Size `json:"max_batch_size,omitempty"`
	// How many events may come in with one capture token, such as 1000/s. Default: unlimited.
	Rate Rate `json:"rate,omitzero"`
}

// AlertsConfig says where alerts are sent.
type AlertsConfig struct {
	// The URL for messages of alerts without a webhook of their own. Default: none.
	Webhook string `json:"webhook,omitempty"`
	// The secret that signs these messages: 16 to 256 characters, or whsec_ and base64. Default: none, they are not signed.
	WebhookSecret string `json:"webhook_secret,omitempty"`
	// Lets alerts name webhooks at addresses outside the public internet. Default: messages are not sent there.
	PrivateWebhooks bool `json:"private_webhooks,omitempty"`
}

// CacheConfig bounds the result cache.
type CacheConfig struct {
	// The memory for results, as a size such as 512MiB. Default: 512MiB.
	MaxSize Size `json:"max_size,omitempty"`
	// How long an answer of the query route is fresh; each endpoint has a setting of its own. Default: 5m.
	TTL caddy.Duration `json:"ttl,omitempty"`
	// How long past its freshness an answer is served while a new one is computed, or while ClickHouse is down. Default: 1h.
	Stale *caddy.Duration `json:"stale,omitempty"`
	// Whether the buckets of time that answers consist of are kept, so that only buckets whose data changed are computed again. Default: true.
	SettledPast *bool `json:"settled_past,omitempty"`
	// Whether these buckets are written to the data folder when the server stops, and used again when it starts. Default: false.
	SettledPastOnDisk bool `json:"settled_past_on_disk,omitempty"`
}

// Limits bounds the work on ClickHouse, which excludes cached answers, and how much projects store.
type Limits struct {
	// The longest that a query may run. Default: 60s.
	MaxExecutionTime caddy.Duration `json:"max_execution_time,omitempty"`
	// The most memory that a query may use. Default: 4GiB.
	MaxMemory Size `json:"max_memory,omitempty"`
	// How many queries of one project run at a time; eight times as many may wait. Default: 10.
	Concurrency int `json:"concurrency,omitempty"`
	// How many queries of all projects together run at a time, on each shard. Projects share these places fairly, and a quarter of them, at least
	// one, is reserved for projects that run nothing. Default: four times the concurrency; with the embedded engine two per processor that the server
	// may use, at least 4, which is also the maximum.
	Places int `json:"places,omitempty"`
	// How many queries one key may run, such as 240/m or 20/s. Default: 240/m.
	Rate Rate `json:"rate,omitzero"`
	// How many queries the runs of one endpoint may cause, for all callers together, if the endpoint has no rate_limit of its own. Default: unlimited.
	EndpointRate Rate `json:"endpoint_rate,omitzero"`
	// How many insights a project may have, and likewise dashboards, endpoints, variables, cohorts, actions, alerts, annotations and keys; deleted
	// ones count until they are purged. Default: 10000.
	Records int `json:"records,omitempty"`
	// How many bytes all records of a project may take together, in memory as on disk. Default: 256MiB.
	RecordsSize Size `json:"records_size,omitempty"`
	// The largest file that may be imported over HTTP, as sent. The waiting files of a project may take twice as much of the data folder, those of
	// all projects four times as much. Default: 4GiB.
	ImportSize Size `json:"import_size,omitempty"`
}

// CaddyModule returns the Caddy module information.
func (*App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "analytics", New: func() caddy.Module { return new(App) }}
}

// Provision fills in placeholders and defaults. It opens nothing, because `caddy validate` calls it too.
func (a *App) Provision(ctx caddy.Context) error {
	a.own, a.logger = ctx.Logger(), ctx.Logger()
	a.started, a.held = make(chan struct{}), make(chan struct{})
	repl := caddy.NewReplacer()
	texts := map[string]*string{
		"clickhouse": &a.ClickHouse, "clickhouse cluster": &a.Cluster, "registry": &a.Registry, "data_dir": &a.DataDir, "engine_library": &a.EngineLibrary,
		"public_url": &a.PublicURL, "alerts webhook": &a.Alerts.Webhook, "alerts webhook_secret": &a.Alerts.WebhookSecret,
	}
	if a.Peers != nil {
		texts["peers listen"], texts["peers advertise"] = &a.Peers.Listen, &a.Peers.Advertise
	}
	for name, text := range texts {
		filled, err := repl.ReplaceOrErr(*text, true, true)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		*text = filled
	}
	for name, dsn := range a.Shards {
		filled, err := repl.ReplaceOrErr(dsn, true, true)
		if err != nil {
			return fmt.Errorf("clickhouse shard %s: %w", name, err)
		}
		a.Shards[name] = filled
	}
	if err := a.provisionFolders(repl); err != nil {
		return err
	}
	if a.DataDir == "" {
		a.DataDir = filepath.Join(caddy.AppDataDir(), "analytics")
	}
	dir, err := filepath.Abs(a.DataDir)
	if err != nil {
		return fmt.Errorf("data_dir: %w", err)
	}
	a.DataDir = dir
	a.setDefaults()
	if err := ctx.GetMetricsRegistry().Register(collector{a}); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	return nil
}

func (a *App) setDefaults() {
	if a.Capture.Buffer == 0 {
		a.Capture.Buffer = 4 << 30
	}
	if a.Capture.MaxEventSize == 0 {
		a.Capture.MaxEventSize = 1 << 20
	}
	if a.Capture.MaxBatchSize == 0 {
		a.Capture.MaxBatchSize = 20 << 20
	}
	if a.Cache.MaxSize == 0 {
		a.Cache.MaxSize = 512 << 20
	}
	if a.Cache.TTL == 0 {
		a.Cache.TTL = caddy.Duration(5 * time.Minute)
	}
	if a.Cache.Stale == nil {
		hour := caddy.Duration(time.Hour)
		a.Cache.Stale = &hour
	}
	if a.Cache.SettledPast == nil {
		on := true
		a.Cache.SettledPast = &on
	}
	if a.Limits.MaxExecutionTime == 0 {
		a.Limits.MaxExecutionTime = caddy.Duration(time.Minute)
	}
	if a.Limits.MaxMemory == 0 {
		a.Limits.MaxMemory = 4 << 30
	}
	if a.Limits.Concurrency == 0 {
		a.Limits.Concurrency = 10
	}
	if a.Limits.Records == 0 {
		a.Limits.Records = registry.DefaultRecords
	}
	if a.Limits.RecordsSize == 0 {
		a.Limits.RecordsSize = registry.DefaultRecordsBytes
	}
	if a.Limits.ImportSize == 0 {
		a.Limits.ImportSize = 4 << 30
	}
	if a.Limits.Rate == (Rate{}) {
		a.Limits.Rate = Rate{Queries: 240, Per: time.Minute}
	}
}

// Start takes a share of the engine, the registry and the cache, opening those that no running config has. If it has to open a registry that is away,
// it continues in the background, unless the previous config answers requests: then that one stays.
func (a *App) Start() error {
	err := a.start(context.Background())
	if !errors.Is(err, registry.ErrUnavailable) || answering() {
		return err
	}
	if err := a.giveBack(); err != nil {
		return err
	}
	a.startLater(err)
	return nil
}

func (a *App) start(ctx context.Context) error {
	if err := a.joinLog(); err != nil {
		return err
	}
	rt, err := a.open(ctx)
	if err != nil {
		return err
	}
	if err := a.applyFolders(ctx, rt); err != nil {
		return err
	}
	a.applyLimits(rt)
	// These are given back first, while what they use still exists.
	a.leases = append(a.leases, a.deliver(rt), rt.servePeers())
	a.runtime.Store(rt)
	close(a.started)
	startpages.TrimLater()
	return nil
}

// runsShare is the part of the cache's size that the answers of finished background runs may take in addition: one in runsShare.
const runsShare = 4

// applyLimits makes the shares that were taken over from another config follow the limits of this one.
func (a *App) applyLimits(rt *runtime) {
	rt.registry.SetLimits(registry.Limits{Records: a.Limits.Records, Bytes: int64(a.Limits.RecordsSize)})
	rt.Places.SetLimits(a.placeLimits())
	rt.Runs.Budget.Store(int64(a.Cache.MaxSize) / runsShare)
	rt.capturing.logs.SetMaxBytes(int64(a.Capture.Buffer))
	rt.imports.spool.Store(int64(a.Limits.ImportSize))
}

// Stop ends background tasks of the start.
func (a *App) Stop() error {
	a.endStart()
	a.endFolders()
	return nil
}

// Cleanup gives back what Start took, if anything: Caddy also calls it after a failed Provision.
func (a *App) Cleanup() error {
	a.endStart()
	a.endFolders()
	if rt := a.runtime.Load(); rt != nil && !caddy.Exiting() { // Caddy waits for requests when it exits, but not after a reload
		rt.keepForRequests()
	}
	if stays, err := activeApp(); err == nil && stays != a { // its limits were replaced if another app of this config could not start
		if rt := stays.runtime.Load(); rt != nil {
			stays.applyLimits(rt)
		}
	}
	return a.giveBack()
}

// giveBack gives back what start took.
func (a *App) giveBack() error {
	var errs []error
	for _, release := range slices.Backward(a.leases) {
		errs = append(errs, release())
	}
	a.leases, a.kept = nil, nil
	return errors.Join(errs...)
}

// wait returns the runtime once Start is done: Caddy may open a site's listener before it starts this app. While the registry is unavailable, the error is
// errStarting.
func (a *App) wait(ctx context.Context) (*runtime, error) {
	if rt := a.runtime.Load(); rt != nil {
		return rt, nil
	}
	select {
	case <-a.started:
		return a.runtime.Load(), nil
	case <-a.held:
		return nil, errStarting
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Interface guards.
var (
	_ caddy.App          = (*App)(nil)
	_ caddy.Provisioner  = (*App)(nil)
	_ caddy.Validator    = (*App)(nil)
	_ caddy.CleanerUpper = (*App)(nil)
)
