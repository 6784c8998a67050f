package sql

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
)

// maxUnweighedRefs is how many uses of aliases a SELECT may have without being weighed: ClickHouse itself bounds what so few expand to.
const maxUnweighedRefs = 16

// weigh refuses a SELECT whose aliases expand to too much. ClickHouse inlines the expression of an alias at each use, so a chain of aliases that each
// use the previous one twice doubles with every link.
func (p *printer) weigh(s *resolved.Select) {
	w := weigher{printer: p, aliases: map[string]*weight{}}
	w.collect = true
	w.selection(s)
	w.collect = false
	if w.selection(s) > budget.MaxExpanded {
		panic(mistake{diag.New(diag.QueryError, s.Pos, "The query is too large: it grows beyond %d parts once its aliases are put in place of their names.",
			budget.MaxExpanded)})
	}
}

// weigher counts the nodes of expressions after the aliases in them are inlined. Weights are capped just above the bound.
type weigher struct {
	*printer
	collect bool // collect the aliases instead of counting
	aliases map[string]*weight
}

// weight is the weight of an alias.
type weight struct {
	x     resolved.Expr
	parts int
	known bool // or being counted: an alias that uses its own name means a column
}

func (w *weigher) selection(s *resolved.Select) int {
	n := w.list(s.Columns) + w.expr(s.Where) + w.expr(s.Having) + w.order(s.OrderBy)
	if s.ArrayJoin != nil {
		for _, array := range s.ArrayJoin.Arrays {
			n += w.expr(array)
		}
	}
	if g := s.GroupBy; g != nil {
		n += w.list(g.Keys)
		for _, set := range g.Sets {
			n += w.list(set)
		}
	}
	for _, window := range s.Windows {
		n += w.window(window.Window)
	}
	if s.LimitBy != nil {
		n += w.list(s.LimitBy.Keys)
	}
	return min(n, budget.MaxExpanded+1)
}

func (w *weigher) list(list []resolved.Expr) int {
	n := 0
	for _, e := range list {
		n = min(n+w.expr(e), budget.MaxExpanded+1)
	}
	return n
}

func (w *weigher) order(keys []*resolved.Order) int {
	n := 0
	for _, key := range keys {
		n = min(n+w.expr(key.X), budget.MaxExpanded+1)
	}
	return n
}

func (w *weigher) window(window *resolved.Window) int {
	if window == nil {
		return 0
	}
	return w.list(window.PartitionBy) + w.order(window.OrderBy)
}

func (w *weigher) expr(e resolved.Expr) int {
	w.spend.Work(1)
	switch e := e.(type) {
	case *resolved.Alias:
		if w.collect && w.aliases[e.Name] == nil {
			w.aliases[e.Name] = &weight{x: e.X}
		}
		return 1 + w.expr(e.X)
	case *resolved.AliasRef:
		return 1 + w.alias(e.Name)
	case *resolved.Lambda:
		return 1 + w.expr(e.Body)
	case *resolved.Native:
		return 1 + w.list(e.Params) + w.list(e.Args) + w.window(e.Over)
	case *resolved.Logic:
		return 1 + w.list(e.Args)
	case *resolved.Tuple:
		return 1 + w.list(e.Items)
	case *resolved.Array:
		return 1 + w.list(e.Items)
	case nil:
		return 0
	case *resolved.Const, *resolved.Subquery, *resolved.Column, *resolved.LambdaParam: // a subquery is a separate SELECT
	}
	return 1
}

func (w *weigher) alias(name string) int {
	a := w.aliases[name]
	if w.collect || a == nil {
		return 0
	}
	if !a.known {
		a.known = true
		a.parts = min(w.expr(a.x), budget.MaxExpanded+1)
	}
	return a.parts
}
