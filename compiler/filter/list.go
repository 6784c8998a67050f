package filter

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// textLists are the event properties that hold a list of texts, which PostHog uses for exceptions. Filters apply to their members.
var textLists = map[string]bool{"$exception_types": true, "$exception_values": true, "$exception_sources": true, "$exception_functions": true}

// members returns the condition that a member of the list in field satisfies the filter. A filter that excludes texts requires a member that is
// none of them, so an event without the property does not pass. It returns false as build does.
func (c propertyCondition) members(f Property) (hogql.Expr, bool) {
	switch f.Operator {
	case "is_set", "is_not_set":
		return c.build(f)
	case "not_icontains", "not_icontains_multi", "not_starts_with", "not_ends_with", "not_regex":
		if values := listed(f.Value); len(values) > 1 { // otherwise each could be satisfied by another member
			return c.each(values, false, func(v any) (hogql.Expr, bool) {
				one := f
				one.Value = v
				return c.members(one)
			})
		}
	}
	const member = "member"
	one := c
	one.field = &hogql.Field{Pos: c.at, Chain: []hogql.Name{{Pos: c.at, Text: member}}}
	one.typ = schema.StringProperty
	condition, ok := one.build(f)
	text := c.call("ifNull", c.text(), &hogql.Const{Pos: c.at, Value: ""})
	list := c.call("JSONExtract", text, &hogql.Const{Pos: c.at, Value: "Array(String)"})
	return c.call("arrayExists", &hogql.Lambda{Pos: c.at, Params: []string{member}, Body: condition}, list), ok
}

// isTextList reports whether a filter applies to the members of a list.
func (s Subject) isTextList(f Property) bool {
	return f.Type == "event" && textLists[f.Key] && !s.People
}
