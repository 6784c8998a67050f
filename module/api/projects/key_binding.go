package projects

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// BindKey checks the variables and endpoints that a key is bound to, and returns the values of the variables in their types. Each endpoint must exist and
// use every variable; each variable must be defined in the project, or be one of an insight that is an endpoint. For a project that does not exist, it
// returns nil: creating the key then fails.
func BindKey(snap *registry.Snapshot, project int64, fix map[string]json.RawMessage, endpoints []string) (map[string]any, error) {
	if snap.Project(project) == nil {
		return nil, nil
	}
	fixed := make(map[string]any, len(fix))
	for _, name := range slices.Sorted(maps.Keys(fix)) {
		value, err := api.DecodeValue(fix[name])
		if err != nil {
			return nil, fmt.Errorf("variable %s: %w", name, err)
		}
		def := snap.VariableByCode(project, name)
		if value, err = api.CheckVariable(def, api.OnlyItem(def, listOf(def, value))); err != nil {
			return nil, fmt.Errorf("variable %s: %w", name, err)
		}
		if def == nil && !plain(value) {
			return nil, fmt.Errorf("variable %s: %s is not a plain value", name, api.ShowValue(value))
		}
		fixed[name] = value
	}
	for _, name := range endpoints {
		e := snap.Endpoint(project, name)
		if e == nil {
			return nil, fmt.Errorf("there is no endpoint %q", name)
		}
		if missing := missingVariables(e, fixed); len(missing) > 0 {
			return nil, fmt.Errorf("endpoint %s does not use the variable(s) %s: a key that fixes them could not run it", name, strings.Join(missing, ", "))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fixed)) {
		used := snap.VariableByCode(project, name) != nil || slices.ContainsFunc(snap.Endpoints(project), func(e *registry.Endpoint) bool {
			return len(missingVariables(e, map[string]any{name: nil})) == 0
		})
		if !used {
			return nil, fmt.Errorf("the project has no variable %s, and none of its endpoints takes one", name)
		}
	}
	return fixed, nil
}

// missingVariables returns the fixed variables that the current version of an endpoint does not use.
func missingVariables(e *registry.Endpoint, fixed map[string]any) []string {
	var missing []string
	node, err := api.StoredQuery(e, e.Current())
	for _, name := range slices.Sorted(maps.Keys(fixed)) {
		if err != nil || !api.UsesVariable(node, name) {
			missing = append(missing, name)
		}
	}
	return missing
}

// listOf parses the text ["a", "b"] for a variable that takes several values: a command line has no lists.
func listOf(def *registry.Variable, value any) any {
	text, isText := value.(string)
	if def == nil || !def.IsMulti || !isText || !strings.HasPrefix(text, "[") {
		return value
	}
	if list, err := api.DecodeValue(json.RawMessage(text)); err == nil {
		return list
	}
	return value
}

// plain reports whether a property can be compared with a value.
func plain(value any) bool {
	switch value.(type) {
	case string, json.Number, bool:
		return true
	}
	return false
}
