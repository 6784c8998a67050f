package sql

import (
	"strings"

	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
)

// aliases notes the names that a SELECT defines itself, not those of its subqueries. It is a separate walk because every SELECT is walked when
// it is printed.
func (p *printer) aliases(s *resolved.Select) {
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
	if s.Interpolate != nil {
		for _, c := range s.Interpolate.Columns {
			p.aliasesOf(s, c.X)
		}
	}
	if s.LimitBy != nil {
		p.aliasesIn(s, s.LimitBy.Keys...)
	}
}

func (p *printer) aliasesOfTable(s *resolved.Select, t resolved.Table) {
	if j, ok := t.(*resolved.Join); ok {
		p.aliasesOfTable(s, j.Left)
		p.aliasesOfTable(s, j.Right)
		p.aliasesOf(s, j.On)
	}
}

func (p *printer) aliasesOfOrder(s *resolved.Select, keys []*resolved.Order) {
	for _, key := range keys {
		p.aliasesOf(s, key.X)
	}
}

func (p *printer) aliasesOfWindow(s *resolved.Select, w *resolved.Window) {
	if w != nil {
		p.aliasesIn(s, w.PartitionBy...)
		p.aliasesOfOrder(s, w.OrderBy)
	}
}

func (p *printer) aliasesIn(s *resolved.Select, list ...resolved.Expr) {
	for _, e := range list {
		p.aliasesOf(s, e)
	}
}

func (p *printer) aliasesOf(s *resolved.Select, e resolved.Expr) {
	p.spend.Nodes(1)
	switch e := e.(type) {
	case *resolved.Alias:
		if !ownName(s, e) {
			p.alsoNamed(e.Name)
		}
		p.aliasesOf(s, e.X)
	case *resolved.Lambda:
		for _, name := range e.Params {
			p.alsoNamed(name)
		}
		p.aliasesOf(s, e.Body)
	case *resolved.Native:
		p.aliasesIn(s, e.Params...)
		p.aliasesIn(s, e.Args...)
		p.aliasesOfWindow(s, e.Over)
	case *resolved.Logic:
		p.aliasesIn(s, e.Args...)
	case *resolved.Tuple:
		p.aliasesIn(s, e.Items...)
	case *resolved.Array:
		p.aliasesIn(s, e.Items...)
	case *resolved.AliasRef:
		p.refs++
	case *resolved.Const, *resolved.Subquery, *resolved.Column, *resolved.LambdaParam, nil: // nothing, or a separate SELECT
	}
}

// alsoNamed notes a name, and its part before the first dot.
func (p *printer) alsoNamed(name string) {
	p.names = append(p.names, name)
	if head, _, dotted := strings.Cut(name, "."); dotted {
		p.names = append(p.names, head)
	}
}
