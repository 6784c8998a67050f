package resolve

import (
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
)

// byName reorders the columns in the members of a set whose operators are BY NAME, so that columns of the same name are at the same position. A union
// has the columns of all members, NULL where a member lacks one; INTERSECT and EXCEPT require the same names.
func (r *resolver) byName(q *hogql.SetQuery, members []*relation) []*relation {
	var names []string
	known := map[string]bool{}
	union := true
	for i, m := range members {
		if i > 0 {
			union = union && (q.Ops[i-1] == hogql.UnionAll || q.Ops[i-1] == hogql.UnionDistinct)
			if !q.ByName[i-1] {
				r.mistake(q.Members[i].At(), "Either all set operators are BY NAME or none")
				return members
			}
		}
		seen := map[string]bool{}
		for _, c := range m.columns {
			if seen[c.name] {
				r.mistake(q.Members[i].At(), "BY NAME needs columns of different names, found two called %s", c.name)
				return members
			}
			seen[c.name] = true
			if !known[c.name] {
				known[c.name] = true
				names = append(names, c.name)
			}
		}
	}
	out := make([]*relation, len(members))
	for i, m := range members {
		if !union && len(m.columns) != len(names) {
			r.mistake(q.Members[max(i, 1)].At(), "INTERSECT and EXCEPT BY NAME need members with the same columns")
			return members
		}
		out[i] = r.arranged(m, names)
	}
	return out
}

// arranged returns a query with its columns in the order of the given names.
func (r *resolver) arranged(rel *relation, wanted []string) *relation {
	if slices.EqualFunc(rel.columns, wanted, func(c *column, name string) bool { return c.name == name }) {
		return rel
	}
	r.spend.Columns(len(wanted))
	at := make(map[string]int, len(rel.columns))
	for i, c := range rel.columns {
		at[c.name] = i
	}
	sel := &resolved.Select{Pos: rel.tree.At(), From: &resolved.Derived{Query: rel.tree, Alias: "q"}}
	out := &relation{tree: sel}
	var printed names
	for _, name := range wanted {
		var value resolved.Expr = literal(nil)
		if i, ok := at[name]; ok {
			c := rel.columns[i]
			value = &resolved.Column{Table: "q", Name: c.printed, Type: c.typ}
		}
		alias := printed.unique(name)
		sel.Columns = append(sel.Columns, named(value, alias))
		out.columns = append(out.columns, &column{name: name, printed: alias, typ: typeOf(value)})
	}
	return out
}
