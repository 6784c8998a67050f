package complete

import (
	"slices"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

// cursor is the place in a tree where a name is being typed.
type cursor struct {
	field *hogql.Field     // nil in the name of a table
	table *hogql.TableName // nil in a field
	index int              // of the name in its chain
	name  hogql.Name

	around  *hogql.Select // the innermost SELECT
	beside  hogql.Expr    // the operand that the field is compared with; nil for none
	hole    bool          // the field is in a placeholder
	with    []string      // the tables of WITH in scope, nearest first
	aliased []string      // the aliases of the tables of around; empty if its first table has none
	others  []string      // the aliases of its tables if its first table has none
}

// find finds the name that covers the bytes from start to end; nil if no name of a field or table does. In the program's own text around an
// expression, names have no places, or places of another text: the first name found is the one in the user's text.
func find(q hogql.Query, start, end int) *cursor {
	f := &finder{start: start, end: end}
	f.walk.Expr, f.walk.Query, f.walk.Table = f.expr, f.query, f.table
	f.query(q)
	if f.found != nil && f.found.around != nil {
		names, first := aliasesOf(f.found.around.From)
		if first {
			f.found.aliased = names
		} else {
			f.found.others = names
		}
	}
	return f.found
}

// finder walks a tree from the top.
type finder struct {
	walk       hogql.Rewriter
	start, end int
	selects    []*hogql.Select
	ctes       [][]*hogql.CTE
	beside     hogql.Expr
	holes      int
	found      *cursor
}

// expr visits an expression and everything below it.
func (f *finder) expr(e hogql.Expr) hogql.Expr {
	beside := f.beside
	f.beside = nil
	if n, ok := e.(*hogql.Field); ok {
		if i := f.at(n.Chain); i >= 0 && f.found == nil {
			f.found = &cursor{field: n, index: i, name: n.Chain[i], around: f.nearest(), beside: beside, hole: f.holes > 0, with: f.tables()}
		}
		return e
	}
	if n, ok := e.(*hogql.Compare); ok {
		f.beside = n.Right
		f.expr(n.Left)
		f.beside = n.Left
		f.expr(n.Right)
		f.beside = beside
		return e
	}
	_, hole := e.(*hogql.Placeholder)
	if hole {
		f.holes++
	}
	f.walk.ExprChildren(e)
	if hole {
		f.holes--
	}
	f.beside = beside
	return e
}

func (f *finder) query(q hogql.Query) hogql.Query {
	beside := f.beside
	f.beside = nil
	switch n := q.(type) {
	case *hogql.Select:
		f.selects, f.ctes = append(f.selects, n), append(f.ctes, n.With)
		f.walk.QueryChildren(q)
		f.selects, f.ctes = f.selects[:len(f.selects)-1], f.ctes[:len(f.ctes)-1]
	case *hogql.SetQuery:
		f.ctes = append(f.ctes, n.With)
		f.walk.QueryChildren(q)
		f.ctes = f.ctes[:len(f.ctes)-1]
	case *hogql.QueryPlaceholder:
		f.holes++
		f.walk.QueryChildren(q)
		f.holes--
	}
	f.beside = beside
	return q
}

func (f *finder) table(t hogql.Table) hogql.Table {
	switch n := t.(type) {
	case *hogql.TableName:
		if i := f.at(n.Chain); i >= 0 && f.found == nil {
			f.found = &cursor{table: n, index: i, name: n.Chain[i], around: f.nearest(), with: f.tables()}
		}
		f.walk.TableChildren(t)
	case *hogql.TablePlaceholder:
		f.holes++
		f.walk.TableChildren(t)
		f.holes--
	case *hogql.TableFunc, *hogql.Derived, *hogql.Join:
		f.walk.TableChildren(t)
	}
	return t
}

// at returns the index of the name in a chain that covers the place; -1 for none.
func (f *finder) at(chain []hogql.Name) int {
	return slices.IndexFunc(chain, func(n hogql.Name) bool { return n.Pos.Start <= f.start && f.end <= n.Pos.End && !n.Index })
}

func (f *finder) nearest() *hogql.Select {
	if len(f.selects) == 0 {
		return nil
	}
	return f.selects[len(f.selects)-1]
}

// tables returns the tables of WITH in scope: not those that enclose the place, or that come after it.
func (f *finder) tables() []string {
	var out []string
	for _, list := range slices.Backward(f.ctes) {
		for _, cte := range list {
			if cte.Query != nil && cte.Pos.End <= f.start {
				out = append(out, cte.Name.Text)
			}
		}
	}
	return out
}

// aliasesOf returns the aliases of the tables in FROM, and reports whether the first table has one.
func aliasesOf(t hogql.Table) (names []string, first bool) {
	add := func(alias hogql.Name) ([]string, bool) {
		if alias.Text == "" {
			return nil, false
		}
		return []string{alias.Text}, true
	}
	switch n := t.(type) {
	case *hogql.TableName:
		return add(n.Alias)
	case *hogql.TableFunc:
		return add(n.Alias)
	case *hogql.Derived:
		return add(n.Alias)
	case *hogql.TablePlaceholder:
		return add(n.Alias)
	case *hogql.Join:
		left, first := aliasesOf(n.Left)
		right, _ := aliasesOf(n.Right)
		return append(left, right...), first
	}
	return nil, false
}
