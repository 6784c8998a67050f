package module

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
)

// overrideRun puts the filters_override of a run over its query: contract sections 5.4 and 5.7. The mark tells runs with different overrides apart.
func overrideRun(node query.Node, raw json.RawMessage) (out query.Node, mark string, err error) {
	if len(raw) == 0 || api.IsNull(raw) {
		return node, "", nil
	}
	n, ok := node.(query.Insight)
	if !ok {
		return nil, "", api.Invalid("filters_override", "invalid_input", "Not allowed for HogQL endpoints. Use variables instead.")
	}
	overrides, err := query.ParseRunOverrides(raw)
	if err != nil {
		return nil, "", err // a mistake of the request, told as it is
	}
	applied := overrides.Apply(n)
	return applied, string(applied.Canonical()), nil
}

// bindInsight puts the variables of a run into an insight: contract section 5.5.
func bindInsight(n query.Insight, given map[string]json.RawMessage) (query.Node, string, error) {
	if len(given) == 0 {
		return n, "", nil
	}
	names := query.VariableNames(n)
	unknown := slices.DeleteFunc(slices.Collect(maps.Keys(given)), func(name string) bool { return slices.Contains(names, name) })
	if len(unknown) > 0 {
		return nil, "", unknownVariables(unknown)
	}
	values := make(map[string]any, len(given))
	for name, raw := range given {
		value, err := api.DecodeValue(raw)
		if err != nil {
			return nil, "", api.Invalid("variables", "invalid_input", "Variable %s: %s", name, err)
		}
		values[name] = value
	}
	bound, err := query.Bind(n, values)
	if err != nil {
		return nil, "", err // a mistake of the request, told as it is
	}
	return bound, string(jsontext.Append(nil, values)), nil
}
