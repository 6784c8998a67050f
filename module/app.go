// Package module puts the analytics API into Caddy: the app that owns connections, registry snapshot and cache, the
// handler that answers requests, the admin API and the commands that operators use. It holds no query logic.
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

// App is the Caddy app "analytics". It owns what the handlers of all sites share: the connection to ClickHouse or the
// embedded engine, the registry and the cache of results. All of them survive a reload of the config.
type App struct {
	// The ClickHouse server or cluster to ask, as a DSN: clickhouse:// and tcp:// speak the native protocol, http:// and
	// https:// HTTP. Default: the embedded engine.
	ClickHouse string `json:"clickhouse,omitempty"`
	// The ClickHouse cluster on whose servers the tables are made, as replicated ones. Default: tables are made on one server.
	Cluster string `json:"clickhouse_cluster,omitempty"`
	// Further ClickHouse servers, or groups of replicas, as DSNs by a name. All rows of a project are on one of them, or on the server of
	// clickhouse: a new project is on the one that has the fewest. Default: none.
	Shards map[string]string `json:"clickhouse_shards,omitempty"`
	// Where projects, keys and endpoints are kept, as a DSN: sqlite:PATH, or postgres://… for several nodes. Default: registry.db in the data folder.
	Registry string `json:"registry,omitempty"`
	// The folder of the embedded engine and the default registry. Default: analytics in Caddy's own data folder.
	DataDir string `json:"data_dir,omitempty"`
	// The libchdb.so of the embedded engine. Default: the one that `make engine` puts into the user's cache folder.
	EngineLibrary string `json:"engine_library,omitempty"`
	// What links in answers begin with, such as https://api.example.com. Default: the scheme and host of the request, or those that a proxy
	// of Caddy's trusted_proxies forwards.
	PublicURL string `json:"public_url,omitempty"`
	// The cache of results.
	Cache CacheConfig `json:"cache,omitzero"`
	// What a query, a project and a key may use.
	Limits Limits `json:"limits,omitzero"`
	// How events come in over HTTP.
	Capture CaptureConfig `json:"capture,omitzero"`
	// Where alerts are sent.
	Alerts AlertsConfig `json:"alerts,omitzero"`
	// How the servers that share the registry ask one another for results. Default: each computes all that it answers.
	Peers *PeersConfig `json:"peers,omitempty"`
	// Folders of endpoint files, one a project. Default: none.
	Endpoints []EndpointFolder `json:"endpoints,omitempty"`

	logger  *zap.Logger
	leases  []func() error
	kept    []string // the keys of what leases give back
	started chan struct{}
	held    chan struct{} // closed when the start waits for the registry in the background
	runtime atomic.Pointer[runtime]
	console atomic.Bool // a site has the console

	stopStart   func() // ends the start in the background; nil when there is none
	stopFolders func() // ends the task that waits to apply endpoint files; nil when there is none
}

// CaptureConfig bounds what comes in over HTTP. Events wait in a log on disk until they are in ClickHouse.
type CaptureConfig struct {
	// The most that the log may take on disk, in the data folder; that of each shard as much. Beyond it events are refused with 503. Default: 4GiB.
	Buffer Size `json:"buffer,omitempty"`
	// The most JSON of one event. Default: 1MiB.
	MaxEventSize Size `json:"max_event_size,omitempty"`
	// The most of a request's body, as it is sent. Default: 20MiB.
	MaxBatchSize Size `json:"max_batch_size,omitempty"`
	// How many events may come with one capture token, such as 1000/s. Default: any number.
	Rate Rate `json:"rate,omitzero"`
}

// AlertsConfig says where alerts are sent.
type AlertsConfig struct {
	// Where messages go of alerts without a webhook of their own: a URL. Default: none.
	Webhook string `json:"webhook,omitempty"`
	// The secret that signs these messages: 16 to 256 characters, or whsec_ and base64. Default: none, they are not signed.
	WebhookSecret string `json:"webhook_secret,omitempty"`
	// Lets alerts name webhooks at addresses that are not of the public internet. Default: they are not sent there.
	PrivateWebhooks bool `json:"private_webhooks,omitempty"`
}

// CacheConfig bounds the cache of results.
type CacheConfig struct {
	// The memory for results, as a size such as 512MiB. Default: 512MiB.
	MaxSize Size `json:"max_size,omitempty"`
	// How long an answer of the query route is fresh; an endpoint says so itself. Default: 5m.
	TTL caddy.Duration `json:"ttl,omitempty"`
	// How long past its freshness an answer is served while a new one is computed, or while ClickHouse is down. Default: 1h.
	Stale *caddy.Duration `json:"stale,omitempty"`
	// Whether the buckets of time that answers consist of are kept, so that only those are computed again whose data changed. Default: true.
	SettledPast *bool `json:"settled_past,omitempty"`
	// Whether these buckets are written to the data folder when the server ends, and used again when it starts. Default: false.
	SettledPastOnDisk bool `json:"settled_past_on_disk,omitempty"`
}

// Limits bounds the work on ClickHouse, where cached answers do not count, and what projects keep.
type Limits struct {
	// The longest that a query may run. Default: 60s.
	MaxExecutionTime caddy.Duration `json:"max_execution_time,omitempty"`
	// The most memory that a query may use. Default: 4GiB.
	MaxMemory Size `json:"max_memory,omitempty"`
	// How many queries of one project run at once; eight times as many may wait. Default: 10.
	Concurrency int `json:"concurrency,omitempty"`
	// How many queries of all projects together run at once, on each shard. Projects share them fairly, and a quarter of them, at least one, is kept
	// for projects that run nothing. Default: four times the concurrency; with the embedded engine two for each processor, at least
	// 4, which is also the most.
	Places int `json:"places,omitempty"`
	// How many queries one key may run, such as 240/m or 20/s. Default: 240/m.
	Rate Rate `json:"rate,omitzero"`
	// How many queries the runs of one endpoint may cause, all callers together, where the endpoint has no rate_limit of its own.
	// Default: any number.
	EndpointRate Rate `json:"endpoint_rate,omitzero"`
	// How many insights a project may save, and as many dashboards, endpoints, variables, cohorts, actions, alerts, annotations and keys each; deleted
	// ones count until they are purged. Default: 10000.
	Records int `json:"records,omitempty"`
	// What all records of a project may take together, in memory as on disk. Default: 256MiB.
	RecordsSize Size `json:"records_size,omitempty"`
	// The largest file that may be imported over HTTP, as it is sent. The files of a project that wait may take twice as much of the data
	// folder, those of all projects four times as much. Default: 4GiB.
	ImportSize Size `json:"import_size,omitempty"`
}

// CaddyModule returns the Caddy module information.
func (*App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "analytics", New: func() caddy.Module { return new(App) }}
}

// Provision puts in placeholders and defaults. It opens nothing: `caddy validate` comes here too.
func (a *App) Provision(ctx caddy.Context) error {
	a.logger = ctx.Logger()
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

// Start takes a share of the engine, the registry and the cache, opening those that no running config has. While a registry that it has to
// open is away, it goes on in the background, unless the config before this one answers requests: that one then stays.
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
	rt, err := a.open(ctx)
	if err != nil {
		return err
	}
	if err := a.applyFolders(ctx, rt); err != nil {
		return err
	}
	rt.registry.SetLimits(registry.Limits{Records: a.Limits.Records, Bytes: int64(a.Limits.RecordsSize)})
	rt.Places.SetLimits(a.placeLimits()) // what is shared with the config that this one replaces follows this one's
	rt.capturing.logs.SetMaxBytes(int64(a.Capture.Buffer))
	// These are the first to be given back, while what they use is there.
	a.leases = append(a.leases, a.deliver(rt), rt.servePeers())
	a.runtime.Store(rt)
	close(a.started)
	startpages.TrimLater()
	return nil
}

// Stop ends what still waits to be done. Requests that are under way still need what Cleanup gives back.
func (a *App) Stop() error {
	a.endStart()
	a.endFolders()
	return nil
}

// Cleanup gives back what Start took, if anything: Caddy also calls it after a Provision that failed.
func (a *App) Cleanup() error {
	a.endStart()
	a.endFolders()
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

// wait returns the runtime once Start is through: Caddy may open a site's listener before it starts this app. While the registry is away, the
// error is errStarting.
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
