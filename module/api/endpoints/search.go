package endpoints

import (
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// searchEndpoints returns the endpoints whose name or description contains each word of the parameter search. The result is a new slice.
func searchEndpoints(in *api.Input, all []*registry.Endpoint) ([]*registry.Endpoint, error) {
	words, err := api.SearchWords(in)
	if err != nil {
		return nil, err
	}
	found := make([]*registry.Endpoint, 0, len(all))
	for _, e := range all {
		if words.In(e.Name + "\n" + e.Current().Description) {
			found = append(found, e)
		}
	}
	return found, nil
}
