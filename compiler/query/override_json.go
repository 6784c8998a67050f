package query

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Overlaid returns the JSON of a query with overrides applied: what Apply, ApplyHogQL and WithSavedVariables make of the parsed query, in a form that
// clients can send. raw must be a query that k.Parse accepts; filters and variables are a filters_override and a variables_override, either of
// which may be empty. Kinds that take no overrides are returned unchanged. Mistakes in the overrides are a *diag.Error.
func (k Kinds) Overlaid(raw, filters, variables []byte) ([]byte, error) {
	node, err := k.Parse(raw)
	if err != nil {
		return nil, err
	}
	var over members
	var given map[string]members
	parsed := &Overrides{}
	if len(filters) > 0 {
		if parsed, err = ParseOverrides(filters); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(filters, &over); err != nil {
			return nil, fmt.Errorf("reading overrides that were parsed: %w", err)
		}
	}
	if len(variables) > 0 {
		if _, err = ParseVariables(variables); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(variables, &given); err != nil {
			return nil, fmt.Errorf("reading overrides that were parsed: %w", err)
		}
	}
	var outer members
	if err := json.Unmarshal(raw, &outer); err != nil {
		return nil, fmt.Errorf("reading a query that was parsed: %w", err)
	}
	var change func(members) error
	switch n := bottom(node).(type) {
	case Insight:
		change = func(q members) error { return q.overlayInsight(n, over, parsed) }
	case *HogQL:
		change = func(q members) error { return q.overlayFilters(over) }
		if n == node {
			change = func(q members) error { return errors.Join(q.overlayFilters(over), q.overlayVariables(given)) }
		}
	case EventLister:
		change = func(q members) error { return q.overlayEvents(n, over, parsed) }
	}
	if change == nil {
		return raw, nil
	}
	err = outer.inner(func(q members) error { return q.below(bottom(node) != node, change) })
	if err != nil {
		return nil, fmt.Errorf("putting overrides over a query: %w", err)
	}
	return json.Marshal(outer) // it was read from JSON
}

// members are the members of a JSON object.
type members map[string]json.RawMessage

// object returns a member that is an object; an empty one if it is missing or null.
func (m members) object(name string) (members, error) {
	out := members{}
	if !m.has(name) {
		return out, nil
	}
	return out, json.Unmarshal(m[name], &out) // Overlaid wraps it
}

// has reports whether a member is present and not null.
func (m members) has(name string) bool { return len(m[name]) > 0 && string(m[name]) != "null" }

// set writes a member.
func (m members) set(name string, v any) error {
	raw, err := json.Marshal(v)
	m[name] = raw
	return err // Overlaid wraps it
}

// inner changes the displayed query, which is below its wrappers.
func (m members) inner(change func(members) error) error {
	var kind string
	if err := json.Unmarshal(m["kind"], &kind); err != nil {
		return err // Overlaid wraps it
	}
	if _, wraps := wrappers[kind]; !wraps {
		return change(m)
	}
	source, err := m.object("source")
	if err != nil {
		return err
	}
	return errors.Join(source.inner(change), m.set("source", source))
}

// bottom returns the query that overrides apply to: the insight or the SQL that a node is about, or the node itself.
func bottom(n Node) Node {
	if people, ok := n.(PeopleSource); ok {
		return people.Behind()
	}
	if _, lists := n.(EventLister); lists {
		return n
	}
	if _, ok := n.(Overridable); ok {
		if about, ok := n.(interface{ Around() (Modifiers, Node) }); ok {
			_, source := about.Around()
			return bottom(source)
		}
	}
	return n
}

// below changes the query that a node is about, at the end of all members source, or the node itself.
func (m members) below(sources bool, change func(members) error) error {
	if !sources || !m.has("source") {
		return change(m)
	}
	source, err := m.object("source")
	if err != nil {
		return err
	}
	return errors.Join(source.below(true, change), m.set("source", source))
}

// overlayDates applies the dates of overrides to a member dateRange: either replaces both.
func (m members) overlayDates(over members) error {
	dates, err := m.object("dateRange")
	if err != nil {
		return err
	}
	if over.has("date_from") || over.has("date_to") {
		for _, name := range []string{"date_from", "date_to", "explicitDate"} {
			delete(dates, name)
		}
		for _, name := range []string{"date_from", "date_to"} {
			if over.has(name) {
				dates[name] = over[name]
			}
		}
	}
	if over.has("explicitDate") {
		dates["explicitDate"] = over["explicitDate"]
	}
	if len(dates) == 0 {
		return nil
	}
	return m.set("dateRange", dates)
}

// overlayInsight changes the JSON of an insight as Apply changes n.
func (m members) overlayInsight(n Insight, over members, parsed *Overrides) error {
	parts := n.Parts()
	if err := m.overlayDates(over); err != nil {
		return err
	}
	if parts.Compare != nil && (over.has("compareFilter") || string(over["date_from"]) == `"all"`) {
		if err := m.overlayCompare(over); err != nil {
			return err
		}
	}
	if over.has("filterTestAccounts") {
		m["filterTestAccounts"] = over["filterTestAccounts"]
	}
	if over.has("interval") && parts.Interval != nil {
		m["interval"] = over["interval"]
	}
	if over.has("breakdown_filter") && parts.Breakdowns != nil {
		m["breakdownFilter"] = over["breakdown_filter"]
	}
	return m.overlayProperties(parts.Properties, over, parsed)
}

// overlayCompare applies the comparison of overrides, after their dates.
func (m members) overlayCompare(over members) error {
	dates, err := m.object("dateRange")
	switch {
	case err != nil:
		return err
	case string(dates["date_from"]) == `"all"`:
		delete(m, "compareFilter")
	default:
		m["compareFilter"] = over["compareFilter"]
	}
	return nil
}

// overlayProperties adds the properties of overrides to those of a query.
func (m members) overlayProperties(own *Condition, over members, parsed *Overrides) error {
	switch { // a list or group without filters counts as none
	case parsed.Properties == nil:
		return nil
	case own == nil:
		m["properties"] = over["properties"]
		return nil
	}
	return m.set("properties", map[string]any{"type": "AND", "values": []any{group(m["properties"]), group(over["properties"])}})
}

// overlayEvents changes the JSON of a list of events as Overridden changes n.
func (m members) overlayEvents(n EventLister, over members, parsed *Overrides) error {
	if over.has("date_from") || over.has("date_to") {
		for name, given := range map[string]string{"after": "date_from", "before": "date_to"} {
			delete(m, name)
			if over.has(given) {
				m[name] = over[given]
			}
		}
	}
	if over.has("filterTestAccounts") {
		m["filterTestAccounts"] = over["filterTestAccounts"]
	}
	return m.overlayProperties(n.Filters(), over, parsed)
}

// group returns a list of property filters as a group; a group is returned unchanged.
func group(raw json.RawMessage) any {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		return map[string]any{"type": "AND", "values": list}
	}
	return raw
}

// overlayFilters changes the JSON of a HogQLQuery as ApplyHogQL changes the query.
func (m members) overlayFilters(over members) error {
	if len(over) == 0 {
		return nil
	}
	filters, err := m.object("filters")
	if err != nil {
		return err
	}
	if err := filters.overlayDates(members{"date_from": over["date_from"], "date_to": over["date_to"]}); err != nil {
		return err
	}
	if over.has("filterTestAccounts") {
		filters["filterTestAccounts"] = over["filterTestAccounts"]
	}
	own, more := leaves(filters["properties"]), leaves(over["properties"])
	if len(more) > 0 {
		if err := filters.set("properties", slices.Concat(own, more)); err != nil {
			return err
		}
	}
	return m.set("filters", filters)
}

// leaves returns the filters in a list, or in a tree of groups joined by AND.
func leaves(raw json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		var tree struct {
			Values []json.RawMessage `json:"values"`
		}
		if json.Unmarshal(raw, &tree) != nil {
			return nil
		}
		list = tree.Values
	}
	var out []json.RawMessage
	for _, item := range list {
		var m members
		if json.Unmarshal(item, &m) == nil && m.has("values") {
			out = append(out, leaves(item)...)
		} else {
			out = append(out, item)
		}
	}
	return out
}

// overlayVariables changes the JSON of a HogQLQuery as WithSavedVariables changes the query.
func (m members) overlayVariables(given map[string]members) error {
	variables, err := m.object("variables")
	if err != nil {
		return err
	}
	all := map[string]members{}
	for id := range variables {
		if all[id], err = variables.object(id); err != nil {
			return err
		}
	}
	changed := false
	for id, by := range replacements(all, given, members.codeName) {
		own, v := all[id], given[by]
		for _, name := range []string{"value", "isNull"} {
			if own[name] = v[name]; own[name] == nil {
				delete(own, name)
			}
		}
		if err := variables.set(id, own); err != nil {
			return err
		}
		changed = true
	}
	if !changed {
		return nil
	}
	return m.set("variables", variables)
}

// codeName returns the code name of a variable.
func (m members) codeName() string {
	var name string
	_ = json.Unmarshal(m["code_name"], &name) // parsed before: a text
	return name
}
