package module

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
)

// fence puts the variables that the key fixes in the place of those that the caller gave. It refuses a caller that wants another
// value, a query that does not use each of them, and overrides that could widen what they keep.
func (rq *request) fence(node query.Node, given map[string]json.RawMessage, overrides json.RawMessage) (map[string]json.RawMessage, error) {
	if rq.Key.Fixed == "" {
		return given, nil
	}
	fixed, err := api.FixedValues(rq.Key)
	if err != nil {
		return nil, err
	}
	if len(overrides) > 0 && !api.IsNull(overrides) {
		return nil, outsideFence("filters_override", "This key fixes variables, so filters_override cannot be used with it.")
	}
	out := maps.Clone(given)
	if out == nil {
		out = make(map[string]json.RawMessage, len(fixed))
	}
	for _, name := range slices.Sorted(maps.Keys(fixed)) {
		if !usesVariable(node, name) {
			return nil, api.ErrNoAccess
		}
		if raw, ok := given[name]; ok && !rq.sameValue(name, raw, fixed[name]) {
			return nil, outsideFence("variables", fmt.Sprintf("Variable %s: this key fixes its value.", name))
		}
		out[name] = fixed[name]
	}
	return out, nil
}

// usesVariable reports whether a query depends on a variable: a condition of an insight, or a placeholder in SQL. That one is
// declared is not enough.
func usesVariable(node query.Node, name string) bool {
	if n, ok := node.(query.Insight); ok {
		return slices.Contains(query.VariableNames(n), name)
	}
	n, ok := node.(*query.HogQL)
	if !ok {
		return false
	}
	used, err := compiler.Variables(n.Text())
	return err == nil && slices.Contains(used, name) &&
		slices.ContainsFunc(slices.Collect(maps.Values(n.Variables)), func(v query.Variable) bool { return v.CodeName == name })
}

// sameValue reports whether a caller's value for a variable is the one that its key fixes.
func (rq *request) sameValue(name string, given, fixed json.RawMessage) bool {
	value, err := api.DecodeValue(given)
	if err != nil || value == nil {
		return false
	}
	if def := rq.Snapshot.VariableByCode(rq.Project.ID, name); def != nil {
		if typed, err := checkVariable(def, onlyItem(def, value)); err == nil {
			value = typed
		}
	}
	return bytes.Equal(jsontext.Append(nil, value), api.CompactJSON(fixed))
}

// fenceError keeps from browsers, and from the caller of a key with fixed variables, what an error may tell: ClickHouse quotes values of
// rows that the query looked at before it passed over them, and the mistakes of a query quote its text.
func (rq *request) fenceError(err error) error {
	if rq.Key.Fixed == "" && rq.Token == nil {
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

// outsideFence refuses what a key's fixed variables rule out.
func outsideFence(attr, detail string) *api.Error {
	refused := api.Forbidden("%s", detail)
	refused.Attr = attr
	return refused
}
