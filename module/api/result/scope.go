package result

import (
	"encoding/json"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// QueryScope is the scope that a key needs to run its own queries. Insights and dashboards written by a key without it are stored unchanged (contract
// api.md section 6.4), but the HogQL in them runs only for callers who could have run it themselves.
const QueryScope = "query:read"

// MayOverride refuses a filters_override with HogQL to a key that may not run its own queries. It leaves other mistakes to the code that applies it.
func MayOverride(key *registry.Key, filters json.RawMessage) error {
	if len(filters) == 0 || api.IsNull(filters) || key.Allows(QueryScope) {
		return nil
	}
	if over, err := query.ParseOverrides(filters); err == nil && over.HogQL() {
		return api.MissingScope(QueryScope)
	}
	return nil
}
