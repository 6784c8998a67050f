package sql

import (
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

// aliases notes the names that a SELECT defines itself, those of its subqueries left out. It is a walk of its own because
// every SELECT that is printed takes it.
func (p *printer) aliases(s *hogql.Select) {
	p.aliasesIn(s, s.Columns...)
	p.aliasesOfTable(s, s.From)
	if s.ArrayJoin != nil {
		for _, array := range s.ArrayJoin.Arrays {
			p.aliasesOf(s, array)
		}
	}
	p.aliasesOf(s, s.Where)
	p.aliasesOf(s, s.Having)
	if g := s.GroupBy; g != nil {
		p.aliasesIn(s, g.Keys...)
		for _, set := range g.Sets {
			p.aliasesIn(s, set...)
		}
	}
	for _, w := range s.Windows {
		p.aliasesOfWindow(s, w.Window)
	}
	p.aliasesOfOrder(s, s.OrderBy)
	if s.LimitBy != nil {
		p.aliasesIn(s, s.LimitBy.Keys...)
	}
}

func (p *printer) aliasesOfTable(s *hogql.Select, t hogql.Table) {
	if j, ok := t.(*hogql.Join); ok {
		p.aliasesOfTable(s, j.Left)
		p.aliasesOfTable(s, j.Right)
		p.aliasesOf(s, j.On)
	}
}

func (p *printer) aliasesOfOrder(s *hogql.Select, keys []*hogql.Order) {
	for _, key := range keys {
		p.aliasesOf(s, key.X)
	}
}

func (p *printer) aliasesOfWindow(s *hogql.Select, w *hogql.Window) {
	if w != nil {
		p.aliasesIn(s, w.PartitionBy...)
		p.aliasesOfOrder(s, w.OrderBy)
	}
}

func (p *printer) aliasesIn(s *hogql.Select, list ...hogql.Expr) {
	for _, e := range list {
		p.aliasesOf(s, e)
	}
}

func (p *printer) aliasesOf(s *hogql.Select, e hogql.Expr) {
	p.spend.Nodes(1)
	core, _ := e.(hogql.Core) // what is not is refused where it is printed
	switch e := core.(type) {
	case *hogql.Alias:
		if !ownName(s, e) {
			p.alsoNamed(e.Name.Text)
		}
		p.aliasesOf(s, e.X)
	case *hogql.Lambda:
		for _, name := range e.Params {
			p.alsoNamed(name)
		}
		p.aliasesOf(s, e.Body)
	case *hogql.Native:
		p.aliasesIn(s, e.Params...)
		p.aliasesIn(s, e.Args...)
		p.aliasesOfWindow(s, e.Over)
	case *hogql.Logic:
		p.aliasesIn(s, e.Args...)
	case *hogql.Tuple:
		p.aliasesIn(s, e.Items...)
	case *hogql.Array:
		p.aliasesIn(s, e.Items...)
	case *hogql.AliasRef:
		p.refs++
	case *hogql.Const, *hogql.Subquery, *hogql.Column, *hogql.LambdaParam, nil: // nothing, or a SELECT of its own
	}
}

// alsoNamed notes a name, and what stands before the first dot where it holds one.
func (p *printer) alsoNamed(name string) {
	p.names = append(p.names, name)
	if head, _, dotted := strings.Cut(name, "."); dotted {
		p.names = append(p.names, head)
	}
}
