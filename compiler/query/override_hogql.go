package query

import (
	"maps"
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
)

// ParseVariables reads a variables_override: variables as a HogQLQuery holds them, by the same keys. Mistakes are a
// *diag.Error, a ParseError that lists all of them.
func ParseVariables(raw []byte) (map[string]Variable, error) {
	v, err := decode(raw)
	if err != nil {
		return nil, err
	}
	const name = "variables_override"
	r, at := &Reader{}, Place{path: name, Attr: name}
	given, ok := v.(map[string]any)
	if !ok {
		r.Add(at, "dict_type", "Input should be a valid dictionary")
	}
	return r.variableMap(given, at), r.err()
}

// WithVariables gives the query with those of its variables replaced that over holds too; others in over mean nothing to
// it. It leaves q as it is.
func (q *HogQL) WithVariables(over map[string]Variable) *HogQL {
	out := *q
	out.Variables = maps.Clone(q.Variables)
	for id, v := range out.Variables {
		if given, ok := over[id]; ok {
			given.VariableID, given.CodeName = v.VariableID, v.CodeName
			out.Variables[id] = given
		}
	}
	return &out
}

// ApplyHogQL gives the query with the overrides put over its filters, which show where its text says {filters}: properties
// are added to its own, either date replaces both. It leaves q as it is. The filters of SQL are joined by AND: a group of
// others is a *diag.Error. A breakdown or interval means nothing to it.
func (ov *Overrides) ApplyHogQL(q *HogQL) (*HogQL, error) {
	out := *q
	var filters Filters
	if q.Filters != nil {
		filters = *q.Filters
	}
	if ov.DateFrom != "" || ov.DateTo != "" {
		filters.DateFrom, filters.DateTo = ov.DateFrom, ov.DateTo
	}
	more, err := ov.Properties.all(nil)
	if err != nil {
		return nil, err
	}
	filters.Properties = append(slices.Clip(filters.Properties), more...)
	if ov.FilterTestAccounts != nil {
		filters.FilterTestAccounts = *ov.FilterTestAccounts
	}
	out.Filters = &filters
	return &out, nil
}

// all appends the filters of a condition that holds when all of them do.
func (c *Condition) all(dst []Property) ([]Property, error) {
	switch {
	case c == nil:
		return dst, nil
	case c.Filter != nil:
		return append(dst, *c.Filter), nil
	case c.Or && len(c.All) > 1:
		return nil, diag.Field(diag.InvalidInput, c.At, "Property groups of type OR are not supported in the filters of a HogQLQuery.")
	}
	for i := range c.All {
		var err error
		if dst, err = c.All[i].all(dst); err != nil {
			return nil, err
		}
	}
	return dst, nil
}
