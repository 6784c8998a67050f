package endpoints

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
)

// binding is a stored query with the variables and overrides of a run.
type binding struct {
	node  query.Node
	marks string                     // differ between runs with different variables or overrides
	given map[string]json.RawMessage // the variables that the caller gave
	// values holds the variables given by the caller or the key, or by overrides that are equivalent to a variable.
	values map[string]any
	// overridden reports whether the overrides do something that no variable does.
	overridden bool
}

// bind binds the variables and overrides of a run to the stored query.
func (p *planner) bind(node query.Node) (binding, error) {
	given, err := api.VariablesField(p.fields)
	if err != nil {
		return binding{}, err
	}
	if _, isInsight := node.(query.Insight); isInsight && p.Version.Table != nil {
		if dates := slices.DeleteFunc(slices.Collect(maps.Keys(given)), func(name string) bool { return !isDate(name) }); len(dates) > 0 {
			return binding{}, unknownVariables(dates) // a table has a fixed date range
		}
	}
	return bind(p.c, node, given, p.fields["filters_override"])
}

// bind binds variables, including those that the key fixes, and overrides to a stored query. Overrides take precedence over variables.
func bind(c *api.Caller, node query.Node, given map[string]json.RawMessage, overrides json.RawMessage) (binding, error) {
	values, err := fence(c, node, given, overrides)
	if err != nil {
		return binding{}, err
	}
	bound, marks, decoded, err := bindVariables(c, node, values)
	if err != nil {
		return binding{}, err
	}
	if err := result.MayOverride(c.Key, overrides); err != nil {
		return binding{}, err
	}
	bound, overridden, err := override(bound, overrides)
	if err != nil {
		return binding{}, err
	}
	out := binding{node: bound, marks: marks + overridden, given: given, values: decoded, overridden: overridden != ""}
	if insight, ok := node.(query.Insight); ok && out.overridden {
		if name, value, same := breakdownOf(insight, overrides); name != "" && value != nil {
			_, both := out.values[name]
			out.values = maps.Clone(out.values)
			if out.values == nil {
				out.values = make(map[string]any)
			}
			out.values[name], out.overridden = value, both || !same
		}
	}
	return out, nil
}

// bindVariables binds the variables of a run to a stored query: contract api.md, section 5.5. Runs with different values have different marks.
func bindVariables(
	c *api.Caller, node query.Node, given map[string]json.RawMessage,
) (bound query.Node, marks string, values map[string]any, err error) {
	switch n := node.(type) {
	case query.Insight:
		return bindInsight(n, given)
	case *query.HogQL:
		return bindHogQL(c, n, given)
	}
	if len(given) > 0 {
		return nil, "", nil, unknownVariables(slices.Collect(maps.Keys(given)))
	}
	return node, "", nil, nil
}

// bindHogQL binds the variables of a run to SQL.
func bindHogQL(c *api.Caller, stored *query.HogQL, given map[string]json.RawMessage) (query.Node, string, map[string]any, error) {
	bound, values := *stored, make(map[string]any, len(given))
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
			return nil, "", nil, api.Invalid("variables", "invalid_input", "Variable %s: %s", v.CodeName, err)
		}
		if value == nil {
			v.Value, v.HasValue, v.IsNull = nil, false, true
		} else {
			def := c.Snapshot.VariableByCode(c.Project.ID, v.CodeName)
			if value, err = api.CheckVariable(def, api.OnlyItem(def, value)); err != nil {
				return nil, "", nil, api.Invalid("variables", "invalid_input", "Variable %s: %s", v.CodeName, err)
			}
			v.Value, v.HasValue, v.IsNull = value, true, false
		}
		values[v.CodeName] = value
		bound.Variables[id] = v
	}
	if len(left) > 0 {
		return nil, "", nil, unknownVariables(slices.Collect(maps.Keys(left)))
	}
	return &bound, result.VariableMarks(&c.Caller, &bound), values, nil
}

// bindInsight binds the variables of a run to an insight.
func bindInsight(n query.Insight, given map[string]json.RawMessage) (query.Node, string, map[string]any, error) {
	if len(given) == 0 {
		return n, "", nil, nil
	}
	names := query.VariableNames(n)
	unknown := slices.DeleteFunc(slices.Collect(maps.Keys(given)), func(name string) bool { return slices.Contains(names, name) })
	if len(unknown) > 0 {
		return nil, "", nil, unknownVariables(unknown)
	}
	values := make(map[string]any, len(given))
	for name, raw := range given {
		value, err := api.DecodeValue(raw)
		if err != nil {
			return nil, "", nil, api.Invalid("variables", "invalid_input", "Variable %s: %s", name, err)
		}
		values[name] = value
	}
	bound, err := query.Bind(n, values)
	if err != nil {
		return nil, "", nil, err // a mistake in the request, which it names
	}
	return bound, string(jsontext.Append(nil, values)), values, nil
}

func unknownVariables(names []string) error {
	slices.Sort(names)
	return api.Invalid("variables", "invalid_input", "Unknown variable(s): %s", strings.Join(names, ", "))
}

// override applies the filters_override of a run to its query: contract api.md, sections 5.4 and 5.7. Runs with different overrides have different marks.
func override(node query.Node, raw json.RawMessage) (out query.Node, mark string, err error) {
	if len(raw) == 0 || api.IsNull(raw) {
		return node, "", nil
	}
	n, ok := node.(query.Insight)
	if !ok {
		return nil, "", api.Invalid("filters_override", "invalid_input", "Not allowed for HogQL endpoints. Use variables instead.")
	}
	overrides, err := query.ParseRunOverrides(raw)
	if err != nil {
		return nil, "", err // a mistake in the request, which it names
	}
	applied := overrides.Apply(n)
	return applied, string(applied.Canonical()), nil
}
