package module

import (
	"fmt"

	"github.com/caddy-analytics/caddy-analytics/module/alerts"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// openAlerts takes a share of what checks alerts, with the executor of the runtime. The keys are those of what the executor has that a
// config may change.
func (a *App) openAlerts(rt *runtime, keys ...string) (*alerts.Checker, error) {
	executor := *rt.Executor
	executor.Retain = nil // what it has is there for as long as the checker is
	return keep(a, fmt.Sprintf("alerts %q %v", keys, a.Alerts), func() (*alerts.Checker, func() error, error) {
		c := alerts.New(alerts.Config{
			Registry: rt.registry, Executor: &executor, Logger: a.logger.Named("alerts"),
			Webhook:         registry.AlertWebhook{URL: a.Alerts.Webhook, Secret: a.Alerts.WebhookSecret},
			PrivateWebhooks: a.Alerts.PrivateWebhooks,
		})
		return c, c.Close, nil
	})
}
