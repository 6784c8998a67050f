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

// maxFixed is the most variables that a request for a key or a token can fix.
const maxFixed = 200

// BindKey checks the variables and endpoints that a key is bound to, and returns the values of the variables in their types. Each endpoint must exist and
// use every variable; each variable must be defined in the project, or be one of an insight that is an endpoint. For a project that does not exist, it
// returns nil: creating the key then fails.
func BindKey(snap *registry.Snapshot, project int64, fix map[string]json.RawMessage, endpoints []string) (map[string]any, error) {
	if err := checkCount(fix); err != nil {
		return nil, err
	}
	return bindKey(snap, project, fix, endpoints)
}

// checkCount refuses to fix more variables than a request may.
func checkCount(fix map[string]json.RawMessage) error {
	if len(fix) > maxFixed {
		return fmt.Errorf("at most %d variables can be fixed, and these are %d", maxFixed, len(fix))
	}
	return nil
}

// bindKey is BindKey without a bound: a key from before there was one may fix more variables.
func bindKey(snap *registry.Snapshot, project int64, fix map[string]json.RawMessage, endpoints []string) (map[string]any, error) {
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
	return fixed, checkTaken(snap, project, fixed)
}

// checkTaken refuses a variable that the project does not have, and that none of its endpoints takes.
func checkTaken(snap *registry.Snapshot, project int64, fixed map[string]any) error {
	unknown := slices.DeleteFunc(slices.Sorted(maps.Keys(fixed)), func(name string) bool { return snap.VariableByCode(project, name) != nil })
	for _, e := range snap.Endpoints(project) {
		if len(unknown) == 0 {
			return nil
		}
		used := usedVariables(e)
		unknown = slices.DeleteFunc(unknown, func(name string) bool { return used[name] })
	}
	if len(unknown) > 0 {
		return fmt.Errorf("the project has no variable %s, and none of its endpoints takes one", unknown[0])
	}
	return nil
}

// missingVariables returns the fixed variables that the current version of an endpoint does not use.
func missingVariables(e *registry.Endpoint, fixed map[string]any) []string {
	used := usedVariables(e)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(fixed)), func(name string) bool { return used[name] })
}

// usedVariables returns the variables that the current version of an endpoint uses; none if its query cannot be read.
func usedVariables(e *registry.Endpoint) map[string]bool {
	node, err := api.StoredQuery(e, e.Current())
	if err != nil {
		return nil
	}
	return api.UsedVariables(node)
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
