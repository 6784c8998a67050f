package insights

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// holdsHogQL reports whether a query contains HogQL of its author: it is not an insight, or an insight with an expression in a field. In doubt, it returns
// true.
func holdsHogQL(raw json.RawMessage) bool {
	if len(raw) == 0 || api.IsNull(raw) {
		return false
	}
	node, err := compiler.Parse(raw)
	if err != nil {
		return true
	}
	if !compiler.KindOf(node).Insight {
		return true
	}
	var value any
	return json.Unmarshal(raw, &value) != nil || namesHogQL(value)
}

// hogqlKinds are the kinds of queries written in HogQL.
var hogqlKinds = compiler.KindNames(func(k *compiler.Kind) bool { return k.HogQL })

// namesHogQL reports whether a value is a kind or type named HogQL, or contains one, or has a field so named that is set.
func namesHogQL(value any) bool {
	switch v := value.(type) {
	case string:
		return strings.EqualFold(v, "hogql") || slices.ContainsFunc(hogqlKinds, func(kind string) bool { return strings.EqualFold(v, kind) })
	case []any:
		return slices.ContainsFunc(v, namesHogQL)
	case map[string]any:
		for name, member := range v {
			isSet := member != nil && member != ""
			if isSet && strings.Contains(strings.ToLower(name), "hogql") || namesHogQL(member) {
				return true
			}
		}
	}
	return false
}

// showable reads the parameters for the response to a write of an insight. It refuses a result that could not be shown: of a query that the key may not
// run, or with overrides that don't fit the query. i is nil for a new insight.
func showable(c *api.Caller, in *api.Input, i *registry.Insight, f registry.InsightFields) (resultParams, error) {
	params, err := readParams(c, in)
	if err != nil {
		return params, err
	}
	restricted := f.Query.Value != nil
	if i != nil && (!f.Query.Given || registry.SameQuery(i.Query, f.Query.Value)) {
		restricted = i.NeedsQueryScope
	}
	if restricted && f.NoQueryScope && params.mode != execution.RefreshForceCache {
		return params, api.MissingScope(result.QueryScope)
	}
	raw := f.Query.Value
	if i != nil && !f.Query.Given {
		raw = i.Query
	}
	if raw == nil {
		return params, nil
	}
	node, err := compiler.Parse(raw)
	if err != nil { // saved by a version that could read it; it stays
		return params, nil //nolint:nilerr // not a mistake of this request
	}
	return params, params.over.Fit(node)
}
