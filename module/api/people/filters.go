package people

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/result"
)

// maxFilterDepth is the maximum nesting of filter groups.
const maxFilterDepth = 20

// filters reads the parameter properties: a JSON list of property filters, or a group of them. A filter without a type gets the type plain. It returns nil
// if there are none.
func filters(in *api.Input, plain string) (any, error) {
	text := in.URL.Query().Get("properties")
	if text == "" {
		return nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.UseNumber()
	var given any
	if err := decoder.Decode(&given); err != nil || decoder.More() {
		return nil, api.Invalid("properties", "invalid_input", "The parameter properties must be JSON.")
	}
	switch given := given.(type) {
	case nil:
		return nil, nil
	case []any:
		return given, typed(given, plain, 0)
	case map[string]any:
		if _, isGroup := given["values"]; isGroup || len(given) == 0 {
			return given, typed(given, plain, 0)
		}
	}
	return nil, api.Invalid("properties", "invalid_input", "The parameter properties must be a list of property filters.")
}

// typed sets the type of each filter below v that has none to plain.
func typed(v any, plain string, depth int) error {
	if depth > maxFilterDepth {
		return api.Invalid("properties", "invalid_input", "The parameter properties is nested too deep.")
	}
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if err := typed(item, plain, depth+1); err != nil {
				return err
			}
		}
	case map[string]any:
		if values, isGroup := v["values"]; isGroup {
			return typed(values, plain, depth+1)
		}
		if kind, given := v["type"]; !given || kind == nil {
			v["type"] = plain
		}
	}
	return nil
}

// scopesOfFilters are the scopes that a key needs, besides person:read, for each type of filter on people. Types that are not listed need the scope of
// queries.
var scopesOfFilters = map[string]string{"person": "", "person_metadata": "", "cohort": "cohort:read"}

// mayFilter refuses filters on people that would reveal more than a key may read.
func mayFilter(c *api.Caller, v any) error {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if err := mayFilter(c, item); err != nil {
				return err
			}
		}
	case map[string]any:
		if values, isGroup := v["values"]; isGroup {
			return mayFilter(c, values)
		}
		kind := fmt.Sprint(v["type"])
		scope, listed := scopesOfFilters[kind]
		if !listed {
			scope = result.QueryScope
		}
		if scope != "" && !c.Key.Allows(scope) && !c.Key.Allows(result.QueryScope) {
			return api.MissingScope(scope)
		}
	}
	return nil
}
