package resolve

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
)

// recursive resolves a CTE that uses itself: a UNION ALL whose first member returns the initial rows, and whose other members continue from the rows
// found so far. Those see the CTE with the columns of the first member.
func (r *resolver) recursive(c *hogql.CTE, env *environment) *cte {
	set, ok := c.Query.(*hogql.SetQuery)
	if !ok || set.OrderBy != nil || set.Limit != nil || !onlyUnionAll(set) {
		r.mistake(c.Pos, "The recursive CTE `%s` must be one query to start from, UNION ALL, and queries that go on from it", c.Name.Text)
	}
	if !ok {
		return &cte{rel: nothing(c.Query.At()), names: &labels{}, open: true}
	}
	env = r.with(set.With, set.Recursive, env)
	first := r.query(set.Members[0], env)
	tree := &resolved.SetQuery{Pos: set.Pos, Ops: set.Ops, Members: []resolved.Query{first.tree}}
	rel := &relation{tree: tree}
	r.spend.Columns(len(first.columns))
	for _, col := range first.columns {
		// No property column can be added to a query that reads itself, so from stays empty.
		rel.columns = append(rel.columns, &column{name: col.name, printed: col.printed, typ: col.typ, aliased: col.aliased})
	}
	out := &cte{rel: rel, names: r.columnNames(rel, c.Columns, c.Name.Pos), ref: r.refs.unique(c.Name.Text), open: true}
	inside := &environment{outer: env, level: &level{outer: env}, name: c.Name.Text, table: out}
	inside.level.known.put(inside.name, inside)
	for _, m := range set.Members[1:] {
		member := r.query(m, inside)
		if len(member.columns) != len(rel.columns) {
			r.unevenMembers(m, len(rel.columns), len(member.columns))
		}
		tree.Members = append(tree.Members, member.tree)
	}
	out.open = false
	r.recurs = true
	return out
}

func onlyUnionAll(set *hogql.SetQuery) bool {
	if set.ByName != nil {
		return false
	}
	for _, op := range set.Ops {
		if op != hogql.UnionAll {
			return false
		}
	}
	return true
}

// uses reports whether a query reads a table of this name anywhere.
func uses(q hogql.Query, name string) bool {
	found := false
	v := hogql.Visitor{Table: func(t hogql.Table) bool {
		if t, ok := t.(*hogql.TableName); ok && single(t.Chain) == name {
			found = true
		}
		return true
	}}
	v.WalkQuery(q)
	return found
}
