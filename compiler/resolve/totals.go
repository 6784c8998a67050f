package resolve

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
)

// totals resolves WITH TOTALS, after the rest of its SELECT. ClickHouse keeps totals separate from the rows, and most of its formats drop them; here
// they are the last row, with the default values of the keys' types, as its native clients show them. So an empty grouping set is added to the
// keys, which sorts after all other rows and is not counted by a LIMIT.
func (s *scope) totals(sel *hogql.Select) {
	g := s.tree.GroupBy
	refuse := func(why string) { s.r.mistake(sel.GroupBy.Pos, "WITH TOTALS %s", why) }
	switch {
	case s.r.depth > 1:
		refuse("is only allowed in the outermost SELECT: a query around it would not see the totals")
	case g.Mode != hogql.GroupKeys || len(g.Keys) == 0:
		refuse("needs plain keys: the other forms of GROUP BY give the totals themselves")
	case s.tree.Having != nil:
		refuse("is not supported together with HAVING: filter in a subquery")
	case s.tree.LimitBy != nil || s.tree.Limit != nil && s.tree.Limit.Offset != nil:
		refuse("is not supported together with OFFSET or LIMIT BY")
	default:
		beyond := native(intType, sel.GroupBy.Pos, "grouping", g.Keys[0])
		s.tree.GroupBy = &resolved.GroupBy{Mode: hogql.GroupSets, Sets: [][]resolved.Expr{g.Keys, nil}}
		s.tree.OrderBy = append([]*resolved.Order{{X: beyond}}, s.tree.OrderBy...)
		if l := s.tree.Limit; l != nil {
			s.tree.LimitBy = &resolved.LimitBy{N: l.N, Keys: []resolved.Expr{beyond}}
			s.tree.Limit = nil
		}
	}
}
