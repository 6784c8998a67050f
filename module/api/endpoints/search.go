package endpoints

import (
	"strings"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// searchEndpoints returns the endpoints whose name or description contains each word of the parameter search. The result is a new slice.
func searchEndpoints(in *api.Input, all []*registry.Endpoint) []*registry.Endpoint {
	words := strings.Fields(strings.ToLower(in.URL.Query().Get("search")))
	found := make([]*registry.Endpoint, 0, len(all))
	for _, e := range all {
		if hasWords(e, words) {
			found = append(found, e)
		}
	}
	return found
}

func hasWords(e *registry.Endpoint, words []string) bool {
	if len(words) == 0 {
		return true
	}
	text := strings.ToLower(e.Name + "\n" + e.Current().Description)
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}
