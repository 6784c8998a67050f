package compiler

import (
	"slices"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// maxHeldText is the longest query, in bytes, that is searched for held tables.
const maxHeldText = 64 << 10

// HeldTables returns the sorted names of the held tables (schema.HeldTable) in a HogQL query. It is empty for other kinds of queries, for
// queries with a mistake and for texts longer than 64 KiB.
func HeldTables(n query.Node) []string {
	q, ok := n.(*query.HogQL)
	if !ok || len(q.Query) > maxHeldText || !strings.Contains(q.Query, "system") && !strings.Contains(q.Query, "query_log") {
		return nil
	}
	parsed, err := hogql.Parse(q.Query)
	if err != nil {
		return nil
	}
	var names []string
	v := hogql.Visitor{Table: func(t hogql.Table) bool {
		if named, ok := t.(*hogql.TableName); ok {
			name := chainText(named.Chain)
			if _, held := schema.LookupHeld(name); held {
				names = append(names, name)
			}
		}
		return true
	}}
	v.WalkQuery(parsed)
	slices.Sort(names)
	return slices.Compact(names)
}
