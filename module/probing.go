package module

import "github.com/caddy-analytics/caddy-analytics/module/values"

// openValues takes a share of what finds out which kinds of values properties had before they were noted.
func (a *App) openValues(rt *runtime, keys string) error {
	_, err := keep(a, "values "+keys+" "+a.DataDir, func() (*values.Prober, func() error, error) {
		p := values.New(values.Config{
			Registry: rt.registry, Shards: rt.Shards, Places: rt.Places, Logger: a.logger.Named("values"), Options: rt.ingestOptions,
		})
		return p, p.Close, nil
	})
	return err
}
