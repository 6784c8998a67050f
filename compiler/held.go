package compiler

import (
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// maxHeldText is the longest text of a query or filter, in bytes, that is searched for held tables.
const maxHeldText = 64 << 10

// HeldTables returns the sorted names of the held tables (schema.HeldTable) in a HogQL query and in the expressions among its filters. It is empty for
// other kinds of queries, and it leaves out texts with a mistake and those longer than 64 KiB.
func HeldTables(n query.Node) []string {
	q, ok := n.(*query.HogQL)
	if !ok {
		return nil
	}
	var names []string
	v := hogql.Visitor{Table: func(t hogql.Table) bool {
		if named, ok := t.(*hogql.TableName); ok {
			name := schema.Root(chainText(named.Chain))
			if _, held := schema.LookupHeld(name); held {
				names = append(names, name)
			}
		}
		return true
	}}
	if mayHold(q.Query) {
		if parsed, err := hogql.Parse(q.Query); err == nil {
			v.WalkQuery(parsed)
		}
	}
	if q.Filters != nil {
		walkFilters(&v, q.Filters.Properties)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// walkFilters visits the expressions among property filters.
func walkFilters(v *hogql.Visitor, filters []query.Property) {
	for i := range filters {
		f := &filters[i]
		if f.Behavior != nil {
			walkFilters(v, f.Behavior.Filters)
		}
		if f.Type == "hogql" && mayHold(f.Key) {
			if e, err := hogql.ParseExpr(f.Key); err == nil {
				v.WalkExpr(e)
			}
		}
	}
}

// mayHold reports whether a text is searched for held tables.
func mayHold(text string) bool {
	return len(text) <= maxHeldText && (strings.Contains(text, "system") || strings.Contains(text, "query_log"))
}
