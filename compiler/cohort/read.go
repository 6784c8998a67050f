package cohort

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// The limits of a definition.
const (
	maxDepth  = 10  // of groups
	maxLeaves = 200 // conditions that are not groups
)

// Read reads the fields filters and groups of a cohort (contract: cohorts.md, sections 2 and 3). Both may be empty or null, and filters take
// precedence over groups. The caller checks whether cohorts and actions exist. The error is a *diag.Error that names the field.
func Read(filters, groups json.RawMessage) (*Definition, error) {
	if given(filters) {
		return readFilters(filters)
	}
	tree, err := treeOfGroups(groups)
	if err != nil || tree == nil {
		return &Definition{}, err
	}
	return define(&reader{older: true}, tree, "groups")
}

// given reports whether a field has a value.
func given(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

func readFilters(raw json.RawMessage) (*Definition, error) {
	v, err := query.Decode(raw)
	if err != nil {
		return nil, err
	}
	fields, _ := v.(map[string]any)
	root, ok := fields["properties"].(map[string]any)
	if !ok {
		return nil, diag.Field(diag.InvalidInput, "filters", "Must contain a 'properties' key with type and values")
	}
	r := &reader{}
	switch fields["filterTestAccounts"] {
	case nil, false:
	case true:
		r.refuse("filters.filterTestAccounts", "A cohort cannot exclude test accounts. Add filters that exclude them to 'properties'")
	default:
		r.refuse("filters.filterTestAccounts", "filterTestAccounts must be a boolean")
	}
	r.only(fields, "filters", "the filters of a cohort", "properties", "filterTestAccounts")
	return define(r, root, "filters.properties")
}

// define reads a tree found at a place in the JSON.
func define(r *reader, root map[string]any, at string) (*Definition, error) {
	d := &Definition{Root: r.group(root, at, 1)}
	switch {
	case r.mistake != nil:
		return nil, r.mistake
	case negative(d.Root):
		return nil, diag.Field(diag.InvalidInput, at, "Top level condition cannot be negated")
	}
	return d, nil
}

// negative reports whether people who satisfy no leaf are in the set. Such a set can only be subtracted from others.
func negative(n Node) bool {
	switch n := n.(type) {
	case *Group:
		if n.Or {
			return slices.ContainsFunc(n.All, negative)
		}
		return !slices.ContainsFunc(n.All, func(n Node) bool { return !negative(n) })
	case *Person:
		return n.Negated
	case *Created:
		return n.Negated
	case *Member:
		return n.Negated
	case *Behavior:
		return n.Negated
	}
	return false
}

// reader keeps the first mistake. What it reads after that is meaningless.
type reader struct {
	mistake *diag.Error
	leaves  int
	older   bool // the tree was made of groups
}

// below returns the place of a member of a group. In older groups, places end with the level below the root.
func (r *reader) below(at string, i, depth int) string {
	switch {
	case !r.older:
		return at + ".values." + strconv.Itoa(i)
	case depth == 1:
		return at + "." + strconv.Itoa(i)
	}
	return at
}

func (r *reader) refuse(attr, format string, args ...any) {
	if r.mistake == nil {
		r.mistake = diag.Field(diag.InvalidInput, attr, format, args...)
	}
}

// take keeps the mistake found by another reader.
func (r *reader) take(err error) {
	if mistake, ok := errors.AsType[*diag.Error](err); ok && r.mistake == nil {
		r.mistake = mistake
	}
}

// only refuses fields other than those named; what is the name of the object for messages.
func (r *reader) only(fields map[string]any, at, what string, names ...string) {
	var others []string
	for name := range fields {
		if !slices.Contains(names, name) {
			others = append(others, name)
		}
	}
	if len(others) > 0 {
		name := diag.Shown(slices.Min(others))
		r.refuse(at+"."+name, "Unknown key '%s' in %s", name, what)
	}
}

// group reads a group. It returns nil after a mistake.
func (r *reader) group(fields map[string]any, at string, depth int) Node {
	if depth > maxDepth {
		r.refuse(at, "Groups of filters may be nested %d levels deep", maxDepth)
		return nil
	}
	typ, _ := fields["type"].(string)
	if typ != "AND" && typ != "OR" {
		r.refuse(at+".type", "The type of a group of filters is 'AND' or 'OR'")
		return nil
	}
	r.only(fields, at, "a group of filters", "type", "values")
	values, ok := fields["values"].([]any)
	if !ok || len(values) == 0 {
		r.refuse(at+".values", "A group of filters needs at least one filter")
		return nil
	}
	out := &Group{Or: typ == "OR"}
	for i, v := range values {
		if r.mistake != nil {
			return nil
		}
		out.All = append(out.All, r.node(v, r.below(at, i, depth), depth))
	}
	return out
}

// node reads a group or a leaf.
func (r *reader) node(v any, at string, depth int) Node {
	fields, ok := v.(map[string]any)
	if !ok {
		r.refuse(at, "A filter of a cohort is an object")
		return nil
	}
	if typ := fields["type"]; typ == "AND" || typ == "OR" {
		return r.group(fields, at, depth+1)
	}
	if r.leaves++; r.leaves > maxLeaves {
		r.refuse(at, "A cohort can have at most %d filters", maxLeaves)
		return nil
	}
	return r.leaf(fields, at)
}
