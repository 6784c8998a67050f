package module

import "github.com/caddy-analytics/caddy-analytics/module/values"

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
