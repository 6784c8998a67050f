package resolve

import (
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

// groupsByProperty reports whether a property itself is a key of a SELECT's GROUP BY. After such a GROUP BY, the property is only available in the
// form of the key.
func (s *scope) groupsByProperty(sel *hogql.Select) bool {
	if sel.GroupBy == nil {
		return false
	}
	isKey := func(e hogql.Expr) bool {
		if c, ok := e.(*hogql.Const); ok {
			if n, ok := c.Value.(int64); ok && n > 0 && n <= int64(len(sel.Columns)) {
				e = sel.Columns[n-1]
			}
		}
		if a, ok := e.(*hogql.Alias); ok {
			e = a.X
		}
		return isAccess(e) && s.document(e) != nil
	}
	if slices.ContainsFunc(sel.GroupBy.Keys, isKey) || slices.ContainsFunc(sel.GroupBy.Sets, func(set []hogql.Expr) bool { return slices.ContainsFunc(set, isKey) }) {
		return true
	}
	return sel.GroupBy.Mode == hogql.GroupAll && slices.ContainsFunc(sel.Columns, isKey)
}

// anyForm reports whether the current clause may read a property in a form other than its default: that is everywhere except after a GROUP BY with a
// property among its keys.
func (s *scope) anyForm() bool {
	return !s.byProperty || s.aggregate != "" || s.clause != "" && s.clause != "GROUP BY"
}
