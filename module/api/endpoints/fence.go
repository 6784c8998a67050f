package endpoints

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/execution"
)

// fence replaces the caller's variables with those that the key fixes. It refuses a caller that gives another value for one, and a query that does not use all
// of them. A key that is limited to endpoints or by fixed variables may use no overrides: a breakdown or a filter by any property would reveal what the
// endpoint does not.
func fence(c *api.Caller, node query.Node, given map[string]json.RawMessage, overrides json.RawMessage) (map[string]json.RawMessage, error) {
	if c.Key.Bound() && len(overrides) > 0 && !api.IsNull(overrides) {
		return nil, api.OutsideFence("filters_override", "This key is limited to endpoints as they are, so filters_override cannot be used with it.")
	}
	if c.Key.Fixed == "" {
		return given, nil
	}
	fixed, err := api.FixedValues(c.Key)
	if err != nil {
		return nil, err
	}
	out := maps.Clone(given)
	if out == nil {
		out = make(map[string]json.RawMessage, len(fixed))
	}
	used := api.UsedVariables(node)
	for _, name := range slices.Sorted(maps.Keys(fixed)) {
		if !used[name] {
			return nil, api.ErrNoAccess
		}
		if raw, ok := given[name]; ok && !c.SameValue(name, raw, fixed[name]) {
			return nil, api.OutsideFence("variables", fmt.Sprintf("Variable %s: this key fixes its value.", name))
		}
		out[name] = fixed[name]
	}
	return out, nil
}

// fenceError removes from an error what browsers, and callers of a key with fixed variables, must not see: ClickHouse quotes values of rows that the query
// read before it filtered them out, and mistakes in a query quote its text.
func fenceError(c *api.Caller, err error) error {
	if c.Key.Fixed == "" && c.Token == nil {
		return err
	}
	if engine, ok := errors.AsType[*clickhouse.Error](err); ok {
		if engine.ByQuery() {
			return api.Invalid("", engine.Name, failedForValues)
		}
		return err
	}
	answer := *api.ErrorOf(err)
	answer.Extra = nil
	attr, _ := answer.Attr.(string)
	if errors.As(err, new(*execution.QueryError)) && len(compiler.Mistakes(err)) > 0 && !strings.HasPrefix(attr, "variables") {
		answer.Detail, answer.Attr = failedForValues, nil
	}
	return &answer
}

// failedForValues is all that such callers learn about a mistake in the text of a query.
const failedForValues = "The query of this endpoint failed for these values."
