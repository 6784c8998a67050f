// Package caddyfile turns Caddyfile text into the config of package module: the global option "analytics" and the site
// directive "analytics". Package module validates values, for JSON configs too; this package adds the line to its errors.
package caddyfile

import (
	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"

	"github.com/caddy-analytics/caddy-analytics/module"
)

func init() { httpcaddyfile.RegisterGlobalOption("analytics", parseApp) }

// parseApp reads the global option:
//
//	analytics {
//		clickhouse     <dsn> {
//			cluster <name>
//			shard   <name> <dsn>
//		}
//		registry       <dsn>
//		data_dir       <folder>
//		engine_library <file>
//		public_url     <scheme>://<host>
//		endpoints      <folder> {
//			project <number>
//			prune
//		}
//		capture {
//			buffer         <size>
//			max_event_size <size>
//			max_batch_size <size>
//			rate           <number>/<s|m|h>
//		}
//		alerts {
//			webhook        <url>
//			webhook_secret <text>
//			private_webhooks
//		}
//		peers {
//			listen    <address>
//			advertise <host>:<port>
//		}
//		cache {
//			max_size     <size>
//			ttl          <duration>
//			stale        <duration>
//			settled_past <on|off>
//			settled_past_on_disk <on|off>
//		}
//		limits {
//			max_execution_time <duration>
//			max_memory         <size>
//			concurrency        <number>
//			places             <number>
//			rate               <number>/<s|m|h>
//			endpoint_rate      <number>/<s|m|h>
//			records            <number>
//			records_size       <size>
//			import_size        <size>
//		}
//	}
func parseApp(d *caddyfile.Dispenser, existing any) (any, error) {
	if existing != nil {
		return nil, d.Err("analytics is set twice")
	}
	d.Next() // the option's name
	if d.NextArg() {
		return nil, d.ArgErr()
	}
	app := new(module.App)
	err := block(d, map[string]func() error{
		"clickhouse":     func() error { return parseClickHouse(d, app) },
		"registry":       value(d, &app.Registry, unlessPlaceholder(module.CheckRegistryDSN)),
		"data_dir":       text(d, &app.DataDir),
		"engine_library": text(d, &app.EngineLibrary),
		"public_url":     value(d, &app.PublicURL, unlessPlaceholder(module.CheckPublicURL)),
		"endpoints":      func() error { return parseEndpoints(d, app) },
		"capture":        func() error { return parseCapture(d, &app.Capture) },
		"alerts":         func() error { return parseAlerts(d, &app.Alerts) },
		"peers":          func() error { return parsePeers(d, app) },
		"cache":          func() error { return parseCache(d, &app.Cache) },
		"limits":         func() error { return parseLimits(d, &app.Limits) },
	}, "endpoints")
	if err != nil {
		return nil, err
	}
	return httpcaddyfile.App{Name: "analytics", Value: caddyconfig.JSON(app, nil)}, nil
}

// parseClickHouse reads the DSN of ClickHouse and its options.
func parseClickHouse(d *caddyfile.Dispenser, app *module.App) error {
	if err := value(d, &app.ClickHouse, unlessPlaceholder(module.CheckClickHouseDSN))(); err != nil {
		return err
	}
	return block(d, map[string]func() error{
		"cluster": value(d, &app.Cluster, unlessPlaceholder(module.CheckCluster)),
		"shard":   func() error { return parseShard(d, app) },
	}, "shard")
}

// parseShard reads the name and the DSN of an additional shard. The option may be repeated.
func parseShard(d *caddyfile.Dispenser, app *module.App) error {
	if !d.NextArg() {
		return d.ArgErr()
	}
	name := d.Val()
	if err := module.CheckShardName(name); err != nil {
		return d.WrapErr(err)
	}
	if _, twice := app.Shards[name]; twice {
		return d.Errf("the shard %s is set twice", name)
	}
	var server string
	option := "shard " + name
	if err := argument(d, option, option+" is empty", &server, unlessPlaceholder(module.CheckClickHouseDSN)); err != nil {
		return err
	}
	if app.Shards == nil {
		app.Shards = map[string]string{}
	}
	app.Shards[name] = server
	return nil
}

// parseEndpoints reads a folder of endpoint files. The option may be repeated, once per project.
func parseEndpoints(d *caddyfile.Dispenser, app *module.App) error {
	var folder module.EndpointFolder
	if err := text(d, &folder.Folder)(); err != nil {
		return err
	}
	err := block(d, map[string]func() error{
		"project": value(d, &folder.Project, func(s string) (int64, error) {
			n, err := positive(s)
			return int64(n), err
		}),
		"prune": flag(d, &folder.Prune),
	})
	if err != nil {
		return err
	}
	if folder.Project == 0 {
		return d.Errf("endpoints %s needs a project, such as project 1", folder.Folder)
	}
	folder.Digest = module.EndpointsDigest(folder.Folder)
	app.Endpoints = append(app.Endpoints, folder)
	return nil
}

func parseCapture(d *caddyfile.Dispenser, c *module.CaptureConfig) error {
	return onlyBlock(d, map[string]func() error{
		"buffer":         value(d, &c.Buffer, within(module.ParseSize, module.CheckBuffer)),
		"max_event_size": value(d, &c.MaxEventSize, within(module.ParseSize, module.CheckMaxEventSize)),
		"max_batch_size": value(d, &c.MaxBatchSize, within(module.ParseSize, module.CheckMaxBatchSize)),
		"rate":           value(d, &c.Rate, module.ParseRate),
	})
}

func parseAlerts(d *caddyfile.Dispenser, a *module.AlertsConfig) error {
	return onlyBlock(d, map[string]func() error{
		"webhook":          value(d, &a.Webhook, unlessPlaceholder(module.CheckWebhook)),
		"webhook_secret":   value(d, &a.WebhookSecret, unlessPlaceholder(module.CheckWebhookSecret)),
		"private_webhooks": flag(d, &a.PrivateWebhooks),
	})
}

func parsePeers(d *caddyfile.Dispenser, app *module.App) error {
	app.Peers = new(module.PeersConfig)
	err := onlyBlock(d, map[string]func() error{
		"listen":    value(d, &app.Peers.Listen, unlessPlaceholder(module.CheckPeersListen)),
		"advertise": value(d, &app.Peers.Advertise, unlessPlaceholder(module.CheckPeersAdvertise)),
	})
	if err == nil && app.Peers.Listen == "" {
		err = d.Err("peers needs an address to listen on, such as listen :9443")
	}
	return err
}

func parseCache(d *caddyfile.Dispenser, c *module.CacheConfig) error {
	return onlyBlock(d, map[string]func() error{
		"max_size": value(d, &c.MaxSize, within(module.ParseSize, module.CheckMaxSize)),
		"ttl":      value(d, &c.TTL, within(duration, module.CheckTTL)),
		"stale": value(d, &c.Stale, func(s string) (*caddy.Duration, error) {
			stale, err := within(duration, module.CheckStale)(s)
			return &stale, err
		}),
		"settled_past": value(d, &c.SettledPast, func(s string) (*bool, error) {
			on, err := onOrOff(s)
			return &on, err
		}),
		"settled_past_on_disk": value(d, &c.SettledPastOnDisk, onOrOff),
	})
}

func parseLimits(d *caddyfile.Dispenser, l *module.Limits) error {
	return onlyBlock(d, map[string]func() error{
		"max_execution_time": value(d, &l.MaxExecutionTime, within(duration, module.CheckMaxExecutionTime)),
		"max_memory":         value(d, &l.MaxMemory, within(module.ParseSize, module.CheckMaxMemory)),
		"concurrency":        value(d, &l.Concurrency, positive),
		"places":             value(d, &l.Places, positive),
		"rate":               value(d, &l.Rate, module.ParseRate),
		"endpoint_rate":      value(d, &l.EndpointRate, module.ParseRate),
		"records":            value(d, &l.Records, positive),
		"records_size":       value(d, &l.RecordsSize, within(module.ParseSize, module.CheckRecordsSize)),
		"import_size":        value(d, &l.ImportSize, within(module.ParseSize, module.CheckImportSize)),
	})
}
