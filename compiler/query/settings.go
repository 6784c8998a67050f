package query

import (
	"cmp"
	"slices"
	"strconv"
)

// This file reads the project settings that affect queries.

// ParseTestAccounts parses the field test_account_filters of a project: a list of property filters that must all hold for an event that is not
// from a test account. It returns nil for an empty list. The error is a *diag.Error.
func ParseTestAccounts(raw []byte) (*Condition, error) {
	const name = "test_account_filters"
	r, o, err := settings(name, raw)
	if err != nil {
		return nil, err
	}
	out := &Condition{At: name}
	for i, item := range o.List(name) {
		count := 0
		c := r.condition(item, o.Field(name).Below(strconv.Itoa(i), true), &count)
		switch {
		case len(out.All) == maxConditions:
			r.Add(o.Field(name), "value_error", "There are more than "+strconv.Itoa(maxConditions)+" property filters")
			return nil, r.err()
		case c.Filter != nil:
			out.All = append(out.All, c)
			if list, isList := c.Filter.Value.([]any); needsValue(c.Filter) && (c.Filter.Value == nil || isList && len(list) == 0) {
				r.Add(o.Field(name).Below(strconv.Itoa(i), true).Below("value", true), "missing", "Field required")
			}
		case len(c.All) > 0:
			r.Add(o.Field(name).Below(strconv.Itoa(i), true), "value_error", "Input should be a property filter, not a group of them")
		}
	}
	if len(out.All) == 0 {
		out = nil
	}
	return out, r.err()
}

// needsValue reports whether a filter is meaningless without a value.
func needsValue(p *Property) bool {
	return p.Type != "hogql" && p.Operator != "is_set" && p.Operator != "is_not_set"
}

// ParsePathCleaning parses the field path_cleaning_filters of a project: a list of rules, which it returns in the order in which they are applied:
// by their field order, otherwise in list order. The error is a *diag.Error.
func ParsePathCleaning(raw []byte) ([]PathCleaning, error) {
	const name = "path_cleaning_filters"
	r, o, err := settings(name, raw)
	if err != nil {
		return nil, err
	}
	rules, orders := r.pathCleaning(o, name)
	places := make([]int, len(rules))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(orders[a], orders[b]) })
	var out []PathCleaning
	for _, i := range places {
		out = append(out, rules[i])
	}
	return out, r.err()
}

// settings starts reading a field on its own.
func settings(name string, raw []byte) (*Reader, *Object, error) {
	v, err := decode(raw)
	if err != nil {
		return nil, nil, err
	}
	r := &Reader{model: "Project"}
	return r, r.Object(map[string]any{name: v}, Place{path: "project"}), nil
}
