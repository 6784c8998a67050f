package resolve

import "github.com/caddy-analytics/caddy-analytics/compiler/hogql"

// totals resolves WITH TOTALS, once the rest of its SELECT is. ClickHouse keeps totals apart from the rows, and most of its
// formats drop them; here they are the last row, with the default values of the keys' types, as its native clients show
// them. So they are grouped beside the keys as a set without keys, which sorts behind all else and which a LIMIT does not
// count.
func (s *scope) totals(sel *hogql.Select) {
	g := s.core.GroupBy
	refuse := func(why string) { s.r.mistake(sel.GroupBy.Pos, "WITH TOTALS %s", why) }
	switch {
	case s.r.depth > 1:
		refuse("can stand only in the outermost SELECT: a query around it would not see the totals")
	case g.Mode != hogql.GroupKeys || len(g.Keys) == 0:
		refuse("needs plain keys: the other forms of GROUP BY give the totals themselves")
	case s.core.Having != nil:
		refuse("is not supported together with HAVING: filter in a subquery")
	case s.core.LimitBy != nil || s.core.Limit != nil && s.core.Limit.Offset != nil:
		refuse("is not supported together with OFFSET or LIMIT BY")
	default:
		beyond := native(intType, g.Pos, "grouping", g.Keys[0])
		s.core.GroupBy = &hogql.GroupBy{Pos: g.Pos, Mode: hogql.GroupSets, Sets: [][]hogql.Expr{g.Keys, nil}}
		s.core.OrderBy = append([]*hogql.Order{{Pos: g.Pos, X: beyond}}, s.core.OrderBy...)
		if l := s.core.Limit; l != nil {
			s.core.LimitBy = &hogql.LimitBy{Pos: l.Pos, N: l.N, Keys: []hogql.Expr{beyond}}
			s.core.Limit = nil
		}
	}
}
