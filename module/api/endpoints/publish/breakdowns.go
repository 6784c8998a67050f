package publish

import (
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/module/api"
)

// CheckOptionalBreakdowns checks optional_breakdown_properties: only breakdowns of the query can be optional.
func CheckOptionalBreakdowns(node query.Node, names []string) error {
	if len(names) == 0 {
		return nil
	}
	const attr = "optional_breakdown_properties"
	known, ok := breakdowns(node)
	if !ok {
		supported := compiler.KindNames(func(k *compiler.Kind) bool { return k.OptionalBreakdowns })
		slices.Sort(supported)
		return api.Invalid(attr, "invalid_input", "Query kind '%s' does not support optional breakdowns. Supported: %s.", node.Kind(), strings.Join(supported, ", "))
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return api.Invalid(attr, "invalid_input", "Unknown breakdown property: '%s'. Known: [%s].", name, strings.Join(known, ", "))
		}
	}
	return nil
}

// breakdowns returns the breakdowns of a query that can be optional; ok is false if its kind has none.
func breakdowns(node query.Node) (names []string, ok bool) {
	insight, ok := node.(query.Insight)
	if !ok || !compiler.KindOf(node).OptionalBreakdowns {
		return nil, false
	}
	return slices.DeleteFunc(query.VariableNames(insight), func(name string) bool { return name == "date_from" || name == "date_to" }), true
}

// HasBreakdown reports whether the query has a breakdown that can be optional.
func (q *Query) HasBreakdown(name string) bool {
	names, _ := breakdowns(q.Node)
	return slices.Contains(names, name)
}
