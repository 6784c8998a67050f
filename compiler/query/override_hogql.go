package query

import (
	"maps"
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
)

// ParseVariables parses a variables_override: variables in the form of a HogQLQuery, by the same keys. Mistakes are a *diag.Error, a ParseError
// that lists all of them.
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

// WithVariables returns the query with its variables replaced by those in over with the same keys. Other variables are ignored: contract api.md,
// section 1.2. q is not modified.
func (q *HogQL) WithVariables(over map[string]Variable) *HogQL {
	out := *q
	out.Variables = maps.Clone(q.Variables)
	for id, given := range over {
		if v, known := out.Variables[id]; known {
			given.VariableID, given.CodeName = v.VariableID, v.CodeName
			out.Variables[id] = given
		}
	}
	return &out
}

// WithSavedVariables is WithVariables for the query of a saved insight, where a variable is also replaced by one of the same code name whose key
// no variable of the query has.
func (q *HogQL) WithSavedVariables(over map[string]Variable) *HogQL {
	out := *q
	out.Variables = maps.Clone(q.Variables)
	code := func(v Variable) string { return v.CodeName }
	for id, by := range replacements(q.Variables, over, code) {
		v, given := q.Variables[id], over[by]
		given.VariableID, given.CodeName = v.VariableID, v.CodeName
		out.Variables[id] = given
	}
	return &out
}

// replacements returns the keys of the variables that others replace, and for each the key of that other: see WithSavedVariables. A variable that was
// deleted and defined again has a new id, which is what a saved query shows; its stored text has the old one.
func replacements[V any](own, over map[string]V, code func(V) string) map[string]string {
	byName := map[string]string{} // of several with one code name, the last
	for _, by := range slices.Sorted(maps.Keys(over)) {
		if _, same := own[by]; !same {
			byName[code(over[by])] = by
		}
	}
	delete(byName, "")
	out := map[string]string{}
	for id, v := range own {
		if _, same := over[id]; same {
			out[id] = id
		} else if by, given := byName[code(v)]; given {
			out[id] = by
		}
	}
	return out
}

// ApplyHogQL returns the query with the overrides applied to its filters, which take effect where its text says {filters}: properties are added
// to its own, either date replaces both. q is not modified. The filters of SQL are joined by AND: any other group is a *diag.Error. A breakdown
// or interval has no effect.
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

// all appends the filters of a condition that requires all of them.
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
