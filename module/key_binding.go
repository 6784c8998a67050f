package module

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// bindKey checks what a key is to be bound to, and gives the values of its variables in their types. Each endpoint that is named must
// be there and use every variable; each variable must be defined, or one of an insight that is an endpoint.
func bindKey(snap *registry.Snapshot, project int64, fix map[string]json.RawMessage, endpoints []string) (map[string]any, error) {
	if snap.Project(project) == nil {
		return nil, nil // who asked says so
	}
	fixed := make(map[string]any, len(fix))
	for _, name := range slices.Sorted(maps.Keys(fix)) {
		value, err := api.DecodeValue(fix[name])
		if err != nil {
			return nil, fmt.Errorf("variable %s: %w", name, err)
		}
		def := snap.VariableByCode(project, name)
		if value, err = checkVariable(def, onlyItem(def, listOf(def, value))); err != nil {
			return nil, fmt.Errorf("variable %s: %w", name, err)
		}
		if def == nil && !plain(value) {
			return nil, fmt.Errorf("variable %s: %s is not a plain value", name, showValue(value))
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

// missingVariables are the fixed variables that the current version of an endpoint does not use.
func missingVariables(e *registry.Endpoint, fixed map[string]any) []string {
	var missing []string
	node, err := storedQuery(e, e.Current())
	for _, name := range slices.Sorted(maps.Keys(fixed)) {
		if err != nil || !usesVariable(node, name) {
			missing = append(missing, name)
		}
	}
	return missing
}

// listOf reads the text ["a", "b"] for a variable that takes several values: a command line has no lists.
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

// plain tells the values that a property can be compared with.
func plain(value any) bool {
	switch value.(type) {
	case string, json.Number, bool:
		return true
	}
	return false
}

// orNone makes an empty text no JSON at all.
func orNone(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}
