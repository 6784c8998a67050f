package module

import (
	"fmt"

	"github.com/caddy-analytics/caddy-analytics/module/alerts"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

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
