package module

import (
	"context"
	"time"

	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/module/alerts"
	"github.com/caddy-analytics/caddy-analytics/module/deletions"
	"github.com/caddy-analytics/caddy-analytics/module/upkeep"
	"github.com/caddy-analytics/caddy-analytics/module/values"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// openServices takes shares of what works beside the requests.
func (a *App) openServices(rt *runtime, k *keys) (err error) {
	if rt.alerts, err = a.openAlerts(rt, k.alerts); err != nil {
		return err
	}
	if rt.imports, err = a.openImports(rt, k.imports); err != nil {
		return err
	}
	if rt.capturing, err = a.openCapture(k.capture); err != nil {
		return err
	}
	if rt.deleter, err = a.openDeleter(rt, k.deletions); err != nil {
		return err
	}
	if rt.keeper, err = a.openKeeper(rt, k.upkeep); err != nil {
		return err
	}
	return a.openValues(rt, k.values)
}

// openAlerts takes a share of the checker of alerts, with the runtime's executor. The key holds the executor's settings, so a config with other settings gets
// another checker.
func (a *App) openAlerts(rt *runtime, key string) (*alerts.Checker, error) {
	executor := *rt.Executor
	executor.Retain = nil // what it uses exists for as long as the checker
	return keep(a, key, func() (*alerts.Checker, func() error, error) {
		c := alerts.New(alerts.Config{
			Registry: rt.registry, Executor: &executor, Logger: a.logger.Named("alerts"),
			Webhook:         registry.AlertWebhook{URL: a.Alerts.Webhook, Secret: a.Alerts.WebhookSecret},
			PrivateWebhooks: a.Alerts.PrivateWebhooks,
		})
		return c, c.Close, nil
	})
}

// openDeleter takes a share of the deleter of people.
func (a *App) openDeleter(rt *runtime, key string) (*deletions.Deleter, error) {
	dir := a.DataDir
	return keep(a, key, func() (*deletions.Deleter, func() error, error) {
		d := deletions.New(deletions.Config{
			Registry: rt.registry, Shards: rt.Shards, Logger: a.logger.Named("deletions"),
			Options: func(project int64) ingest.Options { return rt.intake.Options(rt.registry.Snapshot(), project) },
			Forget: func(project int64, before time.Time) {
				rt.Cache.Erase(project, before)
				rt.Runs.Erase(project, before)
			},
			Recount: rt.intake.Recount,
			EraseCaptured: func(ctx context.Context, shard string, gone func(int64, string) bool) error {
				if err := restored(dir); err != nil {
					return err
				}
				return rt.capturing.erase(ctx, shard, gone)
			},
			EraseImports: rt.imports.service.EraseReasons,
		})
		return d, d.Close, nil
	})
}

// openKeeper takes a share of what removes old events and deleted projects.
func (a *App) openKeeper(rt *runtime, key string) (*upkeep.Keeper, error) {
	dir := a.DataDir
	return keep(a, key, func() (*upkeep.Keeper, func() error, error) {
		k := upkeep.New(upkeep.Config{
			Registry: rt.registry, Shards: rt.Shards, Logger: a.logger.Named("upkeep"),
			Outdated: func(before time.Time, from map[int64]time.Time) {
				rt.Cache.EraseOutdated(before, from)
				for project := range from {
					rt.Runs.Erase(project, before)
				}
			},
			Forget: rt.forgetProject, ForgetEndpoint: rt.forget, EraseImports: rt.imports.service.Forget,
			EraseCaptured: func(ctx context.Context, shard string) error {
				if err := restored(dir); err != nil {
					return err
				}
				return rt.capturing.eraseProjects(ctx, shard, func(project int64) bool { return rt.registry.Snapshot().Removal(project) != nil })
			},
		})
		return k, k.Close, nil
	})
}

// openValues takes a share of the prober, which finds out the kinds of values that properties had before kinds were recorded.
func (a *App) openValues(rt *runtime, key string) error {
	_, err := keep(a, key, func() (*values.Prober, func() error, error) {
		p := values.New(values.Config{
			Registry: rt.registry, Shards: rt.Shards, Places: rt.Places, Logger: a.logger.Named("values"), Options: rt.intake.Options,
		})
		p.Begin()
		return p, p.Close, nil
	})
	return err
}
