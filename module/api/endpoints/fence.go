package endpoints

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
)

// fence puts the variables that the key fixes in the place of those that the caller gave. It refuses a caller that wants another
// value, a query that does not use each of them, and overrides that could widen what they keep.
func fence(c *api.Caller, node query.Node, given map[string]json.RawMessage, overrides json.RawMessage) (map[string]json.RawMessage, error) {
	if c.Key.Fixed == "" {
		return given, nil
	}
	fixed, err := api.FixedValues(c.Key)
	if err != nil {
		return nil, err
	}
	if len(overrides) > 0 && !api.IsNull(overrides) {
		return nil, api.OutsideFence("filters_override", "This key fixes variables, so filters_override cannot be used with it.")
	}
	out := maps.Clone(given)
	if out == nil {
		out = make(map[string]json.RawMessage, len(fixed))
	}
	for _, name := range slices.Sorted(maps.Keys(fixed)) {
		if !api.UsesVariable(node, name) {
			return nil, api.ErrNoAccess
		}
		if raw, ok := given[name]; ok && !c.SameValue(name, raw, fixed[name]) {
			return nil, api.OutsideFence("variables", fmt.Sprintf("Variable %s: this key fixes its value.", name))
		}
		out[name] = fixed[name]
	}
	return out, nil
}

// fenceError keeps from browsers, and from the caller of a key with fixed variables, what an error may reveal: ClickHouse quotes values
// of rows that the query read before it filtered them out, and the mistakes of a query quote its text.
func fenceError(c *api.Caller, err error) error {
	if c.Key.Fixed == "" && c.Token == nil {
		return err
	}
	if engine, ok := errors.AsType[*clickhouse.Error](err); ok {
		if engine.ByQuery() {
			return api.Invalid("", engine.Name, "The query of this endpoint failed for these values.")
		}
		return err
	}
	answer := *api.ErrorOf(err)
	answer.Extra = nil
	return &answer
}
