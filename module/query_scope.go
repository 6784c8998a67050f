package module

import (
	"encoding/json"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// queryScope is what a key needs to run queries of its own. An insight and a dashboard that a key without it has written are kept
// as they are (contract: api.md, section 6.4), but what the key put into them runs for nobody who could not have asked it.
const queryScope = "query:read"

func missingScope(scope string) *apiError {
	return forbidden("API key missing required scope '%s'", scope)
}

// mayQuery reports whether the key may run queries of its own.
func (rq *request) mayQuery() bool { return rq.key.Allows(queryScope) }

// mayOverride refuses a filters_override with HogQL to a key that may not run queries of its own. Its mistakes are for those who
// use it.
func (rq *request) mayOverride(filters json.RawMessage) error {
	if len(filters) == 0 || isNull(filters) || rq.mayQuery() {
		return nil
	}
	if over, err := query.ParseOverrides(filters); err == nil && over.HogQL() {
		return missingScope(queryScope)
	}
	return nil
}

// mayShow refuses a write of an insight whose answer would run a query that the key may not run. The insight is nil when it is new.
func (rq *request) mayShow(i *registry.Insight, f registry.InsightFields) error {
	params, err := rq.insightParams()
	if err != nil {
		return err
	}
	restricted := f.Query.Value != nil
	if i != nil && (!f.Query.Given || registry.SameQuery(i.Query, f.Query.Value)) {
		restricted = i.NeedsQueryScope
	}
	if restricted && f.NoQueryScope && params.mode != refreshForceCache {
		return missingScope(queryScope)
	}
	return nil
}
