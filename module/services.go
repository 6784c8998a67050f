package module

import (
	"context"
	"fmt"
	"time"

	"github.com/caddy-analytics/caddy-analytics/ingest"
	"github.com/caddy-analytics/caddy-analytics/module/alerts"
	"github.com/caddy-analytics/caddy-analytics/module/deletions"
	"github.com/caddy-analytics/caddy-analytics/module/upkeep"
	"github.com/caddy-analytics/caddy-analytics/module/values"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// openServices takes shares of what works beside the requests. cacheKey and limitsKey identify what the services work with.
func (a *App) openServices(rt *runtime, cacheKey, limitsKey string) (err error) {
	if rt.alerts, err = a.openAlerts(rt, cacheKey, limitsKey); err != nil {
		return err
	}
	if rt.imports, err = a.openImports(rt, cacheKey); err != nil {
		return err
	}
	if rt.capturing, err = a.openCapture(); err != nil {
		return err
	}
	if rt.deleter, err = a.openDeleter(rt, cacheKey); err != nil {
		return err
	}
	if rt.keeper, err = a.openKeeper(rt, cacheKey); err != nil {
		return err
	}
	return a.openValues(rt, cacheKey)
}

// openAlerts takes a share of the checker of alerts, with the runtime's executor. keys identify what the executor works with. The executor's settings
// are part of the checker's own key, so a config with other settings gets another checker.
func (a *App) openAlerts(rt *runtime, keys ...string) (*alerts.Checker, error) {
	executor := *rt.Executor
	executor.Retain = nil // what it uses exists for as long as the checker
	key := fmt.Sprintf("alerts %q %v whole %t fresh %s rate %v", keys, a.Alerts, executor.WholeOnly, executor.QueryFresh, executor.EndpointRate)
	return keep(a, key, func() (*alerts.Checker, func() error, error) {
		c := alerts.New(alerts.Config{
			Registry: rt.registry, Executor: &executor, Logger: a.logger.Named("alerts"),
			Webhook:         registry.AlertWebhook{URL: a.Alerts.Webhook, Secret: a.Alerts.WebhookSecret},
			PrivateWebhooks: a.Alerts.PrivateWebhooks,
		})
		return c, c.Close, nil
	})
}

// openDeleter takes a share of the deleter of people. keys identify what it uses that a config may change.
func (a *App) openDeleter(rt *runtime, keys string) (*deletions.Deleter, error) {
	return keep(a, "deletions "+keys+" "+a.DataDir, func() (*deletions.Deleter, func() error, error) {
		d := deletions.New(deletions.Config{
			Registry: rt.registry, Shards: rt.Shards, Logger: a.logger.Named("deletions"),
			Options: func(project int64) ingest.Options { return rt.intake.Options(rt.registry.Snapshot(), project) },
			Forget: func(project int64, before time.Time) {
				rt.Cache.Erase(project, before)
				rt.Runs.Erase(project, before)
			},
			Recount:       rt.intake.Recount,
			EraseCaptured: rt.capturing.erase,
			EraseImports:  rt.imports.service.EraseReasons,
		})
		return d, d.Close, nil
	})
}

// openKeeper takes a share of what removes old events and deleted projects. keys identify what it uses that a config may change.
func (a *App) openKeeper(rt *runtime, keys string) (*upkeep.Keeper, error) {
	return keep(a, "upkeep "+keys+" "+a.DataDir, func() (*upkeep.Keeper, func() error, error) {
		k := upkeep.New(upkeep.Config{
			Registry: rt.registry, Shards: rt.Shards, Logger: a.logger.Named("upkeep"),
			Outdated: func(project int64, before, from time.Time) {
				rt.Cache.EraseOutdated(project, before, from)
				rt.Runs.Erase(project, before)
			},
			Forget: rt.forgetProject, ForgetEndpoint: rt.forget, EraseImports: rt.imports.service.Forget,
			EraseCaptured: func(ctx context.Context, shard string) error {
				return rt.capturing.eraseProjects(ctx, shard, func(project int64) bool { return rt.registry.Snapshot().Removal(project) != nil })
			},
		})
		return k, k.Close, nil
	})
}

// openValues takes a share of the prober, which finds out the kinds of values that properties had before kinds were recorded.
func (a *App) openValues(rt *runtime, keys string) error {
	_, err := keep(a, "values "+keys+" "+a.DataDir, func() (*values.Prober, func() error, error) {
		p := values.New(values.Config{
			Registry: rt.registry, Shards: rt.Shards, Places: rt.Places, Logger: a.logger.Named("values"), Options: rt.intake.Options,
		})
		p.Begin()
		return p, p.Close, nil
	})
	return err
}
