package cohort

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// This file reads the field groups, the older form of filters: a list of groups, at least one of which must be satisfied.

// FromGroups converts groups to filters, as JSON; without groups the filters are empty. The error is a *diag.Error.
func FromGroups(groups json.RawMessage) (json.RawMessage, error) {
	tree, err := treeOfGroups(groups)
	if err != nil {
		return nil, err
	}
	if tree == nil {
		tree = map[string]any{}
	}
	out, err := json.Marshal(map[string]any{"properties": tree})
	if err != nil {
		return nil, fmt.Errorf("writing the filters of groups: %w", err)
	}
	return out, nil
}

// treeOfGroups returns the decoded field properties of the filters equivalent to groups; nil for none.
func treeOfGroups(raw json.RawMessage) (map[string]any, error) {
	if !given(raw) {
		return nil, nil
	}
	v, err := query.Decode(raw)
	if err != nil {
		return nil, err
	}
	list, ok := v.([]any)
	if !ok {
		return nil, diag.Field(diag.InvalidInput, "groups", "Input should be a valid list")
	}
	if len(list) == 0 {
		return nil, nil
	}
	values := make([]any, len(list))
	for i, item := range list {
		at := "groups." + strconv.Itoa(i)
		group, ok := item.(map[string]any)
		if !ok {
			return nil, diag.Field(diag.InvalidInput, at, "A group of a cohort is an object")
		}
		if values[i], err = treeOfGroup(group, at); err != nil {
			return nil, err
		}
	}
	return map[string]any{"type": "OR", "values": values}, nil
}

// treeOfGroup returns the node equivalent to one group.
func treeOfGroup(group map[string]any, at string) (map[string]any, error) {
	switch properties := group["properties"].(type) {
	case []any:
		if len(properties) > 0 {
			return allOf(eachOf(properties)), nil
		}
	case map[string]any:
		switch {
		case properties["values"] != nil: // a tree of its own
			return properties, nil
		case len(properties) > 0:
			return allOf(equalities(properties)), nil
		}
	}
	for _, typ := range []string{"action", "event"} {
		if key := group[typ+"_id"]; key != nil && key != "" {
			return allOf([]any{occurrences(group, key, typ+"s")}), nil
		}
	}
	return nil, diag.Field(diag.InvalidInput, at, "A group of a cohort needs properties, an action_id or an event_id")
}

func allOf(values []any) map[string]any { return map[string]any{"type": "AND", "values": values} }

// eachOf sets the default type and operator of filters without them.
func eachOf(properties []any) []any {
	out := make([]any, len(properties))
	for i, item := range properties {
		out[i] = item
		filter, ok := item.(map[string]any)
		if !ok {
			continue
		}
		if typ := filter["type"]; typ == nil || typ == "event" {
			filter["type"] = "person"
		}
		if filter["type"] == "person" && filter["operator"] == nil {
			filter["operator"] = "exact"
		}
	}
	return out
}

// equalities returns the filters that an object of values stands for, sorted by key.
func equalities(properties map[string]any) []any {
	var out []any
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		out = append(out, map[string]any{"type": "person", "key": key, "value": properties[key], "operator": "exact"})
	}
	return out
}

// occurrences returns the filter for a group that asks for an event or an action.
func occurrences(group map[string]any, key any, typ string) map[string]any {
	leaf := map[string]any{
		"type": "behavioral", "key": key, "event_type": typ, "value": string(Performed), "time_value": json.Number("365"), "time_interval": string(Day),
	}
	if days := group["days"]; days != nil && days != "" {
		leaf["time_value"] = days
	}
	if n, ok := whole(group["count"]); ok && n > 0 {
		leaf["value"], leaf["operator_value"] = string(Multiple), group["count"]
		if operator := group["count_operator"]; operator != nil {
			leaf["operator"] = operator
		}
	}
	return leaf
}
