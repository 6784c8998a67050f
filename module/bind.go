package module

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
)

// bindVariables puts the variables of a run into a stored query: contract section 5.5. The second result tells runs with
// different values apart.
func (rq *request) bindVariables(node query.Node, given map[string]json.RawMessage) (query.Node, string, error) {
	if n, ok := node.(query.Insight); ok {
		return bindInsight(n, given)
	}
	stored, ok := node.(*query.HogQL)
	if !ok {
		if len(given) > 0 {
			return nil, "", unknownVariables(slices.Collect(maps.Keys(given)))
		}
		return node, "", nil
	}
	bound := *stored
	bound.Variables = maps.Clone(stored.Variables)
	left := maps.Clone(given)
	for id, v := range bound.Variables {
		raw, ok := left[v.CodeName]
		if !ok {
			continue
		}
		delete(left, v.CodeName)
		value, err := api.DecodeValue(raw)
		if err != nil {
			return nil, "", api.Invalid("variables", "invalid_input", "Variable %s: %s", v.CodeName, err)
		}
		if value == nil {
			v.Value, v.HasValue, v.IsNull = nil, false, true
		} else {
			def := rq.Snapshot.VariableByCode(rq.Project.ID, v.CodeName)
			if value, err = api.CheckVariable(def, api.OnlyItem(def, value)); err != nil {
				return nil, "", api.Invalid("variables", "invalid_input", "Variable %s: %s", v.CodeName, err)
			}
			v.Value, v.HasValue, v.IsNull = value, true, false
		}
		bound.Variables[id] = v
	}
	if len(left) > 0 {
		return nil, "", unknownVariables(slices.Collect(maps.Keys(left)))
	}
	return &bound, result.VariableMarks(&rq.Caller.Caller, &bound), nil
}

func unknownVariables(names []string) error {
	slices.Sort(names)
	return api.Invalid("variables", "invalid_input", "Unknown variable(s): %s", strings.Join(names, ", "))
}
