package result

import (
	"encoding/json"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// QueryScope is what a key needs to run queries of its own. An insight and a dashboard that a key without it has written are kept
// as they are (contract api.md section 6.4), but the HogQL that the key put into them runs for nobody who could not have asked it.
const QueryScope = "query:read"

// MayOverride refuses a filters_override with HogQL to a key that may not run queries of its own. Its other mistakes are left to those
// who apply it.
func MayOverride(key *registry.Key, filters json.RawMessage) error {
	if len(filters) == 0 || api.IsNull(filters) || key.Allows(QueryScope) {
		return nil
	}
	if over, err := query.ParseOverrides(filters); err == nil && over.HogQL() {
		return api.MissingScope(QueryScope)
	}
	return nil
}
