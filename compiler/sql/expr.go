package sql

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// How tightly the operators bind that are written between their operands. An operand is put in parentheses unless it binds
// more tightly than its operator.
const (
	loose = iota // whole expressions: no parentheses needed
	orLevel
	andLevel
	notLevel
	compareLevel
	sumLevel
	productLevel
	tight // names, literals, calls
)

// infix are the functions that read better as operators. ClickHouse turns the operators back into these very functions.
func infix(name string) (operator string, level int) {
	switch name {
	case "equals":
		return " = ", compareLevel
	case "notEquals":
		return " != ", compareLevel
	case "less":
		return " < ", compareLevel
	case "lessOrEquals":
		return " <= ", compareLevel
	case "greater":
		return " > ", compareLevel
	case "greaterOrEquals":
		return " >= ", compareLevel
	case "like":
		return " LIKE ", compareLevel
	case "notLike":
		return " NOT LIKE ", compareLevel
	case "ilike":
		return " ILIKE ", compareLevel
	case "notILike":
		return " NOT ILIKE ", compareLevel
	case "in":
		return " IN ", compareLevel
	case "notIn":
		return " NOT IN ", compareLevel
	case "plus":
		return " + ", sumLevel
	case "minus":
		return " - ", sumLevel
	case "multiply":
		return " * ", productLevel
	case "divide":
		return " / ", productLevel
	case "modulo":
		return " % ", productLevel
	case "and":
		return " AND ", andLevel
	case "or":
		return " OR ", orLevel
	}
	return "", tight
}

// level reports how tightly an expression binds as it is printed.
func level(e resolved.Expr) int {
	switch e := e.(type) {
	case *resolved.Lambda, *resolved.Alias:
		return loose
	case *resolved.Logic:
		if e.Or {
			return orLevel
		}
		return andLevel
	case *resolved.Native:
		if !operator(e) {
			return tight
		}
		if e.Name == "not" {
			return notLevel
		}
		_, level := infix(e.Name)
		return level
	case *resolved.Const, *resolved.Tuple, *resolved.Array, *resolved.Subquery, *resolved.Column, *resolved.LambdaParam, *resolved.AliasRef:
	}
	return tight
}

// operator reports whether a call is written as an operator.
func operator(n *resolved.Native) bool {
	if n.Over != nil || n.Params != nil || n.Distinct {
		return false
	}
	if n.Name == "not" {
		return len(n.Args) == 1
	}
	_, level := infix(n.Name)
	return level != tight && len(n.Args) == 2
}

// operand writes an expression where only what binds more tightly than min can stand bare.
func (p *printer) operand(e resolved.Expr, min int) {
	if level(e) > min {
		p.expr(e)
		return
	}
	p.byte('(')
	p.expr(e)
	p.byte(')')
}

func (p *printer) expr(e resolved.Expr) {
	p.checkSize(e.At())
	switch e := e.(type) {
	case *resolved.Const:
		p.constant(e)
	case *resolved.Column:
		p.column(e)
	case *resolved.LambdaParam:
		p.ident(e.Name)
	case *resolved.AliasRef:
		p.ident(e.Name)
	case *resolved.Native:
		p.native(e)
	case *resolved.Logic:
		p.logic(e)
	case *resolved.Tuple:
		p.str("tuple")
		p.args(e.Items)
	case *resolved.Array:
		if values, ok := constants(e); ok {
			p.list(values, e.Pos)
			return
		}
		p.byte('[')
		p.exprs(e.Items)
		p.byte(']')
	case *resolved.Lambda:
		p.lambda(e)
	case *resolved.Subquery:
		p.byte('(')
		p.query(e.Query)
		p.byte(')')
	case *resolved.Alias:
		p.alias(e)
	}
}

// exprs writes a list, with commas. Parentheses keep an alias apart from the comma behind it.
func (p *printer) exprs(list []resolved.Expr) {
	for i, e := range list {
		if i > 0 {
			p.str(", ")
		}
		if _, aliased := e.(*resolved.Alias); aliased {
			p.operand(e, loose)
			continue
		}
		p.expr(e)
	}
}

func (p *printer) args(list []resolved.Expr) {
	p.byte('(')
	p.exprs(list)
	p.byte(')')
}

func (p *printer) alias(a *resolved.Alias) {
	p.checkAlias(a)
	if column, ok := a.X.(*resolved.Column); ok && column.Name == a.Name && len(column.Path) == 0 && !p.needsTable(column, p.source(column)) {
		p.column(column)
		return
	}
	p.operand(a.X, loose)
	p.str(" AS ")
	p.ident(a.Name)
}

// checkAlias refuses an alias that could take the place of the column which guards hold on to.
func (p *printer) checkAlias(a *resolved.Alias) {
	if a.Name != guardColumn {
		return
	}
	if column, ok := a.X.(*resolved.Column); !ok || column.Name != guardColumn || len(column.Path) > 0 {
		p.bug("something else is named %s", guardColumn)
	}
}

func (p *printer) logic(l *resolved.Logic) {
	if len(l.Args) == 0 {
		p.bug("AND or OR of nothing")
	}
	operator, lowest := " AND ", andLevel
	if l.Or {
		operator, lowest = " OR ", orLevel
	}
	for i, arg := range l.Args {
		if i > 0 {
			p.str(operator)
		}
		p.operand(arg, lowest)
	}
}

func (p *printer) lambda(l *resolved.Lambda) {
	if len(l.Params) != 1 {
		p.byte('(')
	}
	for i, name := range l.Params {
		if name == guardColumn {
			p.bug("a lambda parameter is named %s", guardColumn)
		}
		if i > 0 {
			p.str(", ")
		}
		p.ident(name)
	}
	if len(l.Params) != 1 {
		p.byte(')')
	}
	p.str(" -> ")
	p.operand(l.Body, loose)
}

// native writes a call of a function of ClickHouse.
func (p *printer) native(n *resolved.Native) {
	if !schema.NativeFunction(n.Name) {
		p.bug("function %q is not allowed", n.Name)
	}
	membership := n.Name == "in" || n.Name == "notIn"
	switch {
	case operator(n) && n.Name == "not":
		p.str("NOT ")
		p.operand(n.Args[0], notLevel)
		return
	case operator(n) && membership:
		p.membership(n)
		return
	case operator(n):
		p.infix(n)
		return
	case membership:
		p.bug("%s that is no operator", n.Name)
	}
	p.call(n.Name)
	if n.Params != nil {
		p.args(n.Params)
	}
	p.byte('(')
	if n.Distinct {
		p.str("DISTINCT ")
	}
	p.exprs(n.Args)
	p.byte(')')
	if n.Over != nil {
		p.str(" OVER ")
		p.over(n.Over)
	}
}

// call writes a function's name. The allow-list holds words only; this is the second look.
func (p *printer) call(name string) {
	for i := range len(name) {
		c := name[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9' || i == 0) {
			p.bug("function name %q is no word", name)
		}
	}
	p.str(name)
}

func (p *printer) infix(n *resolved.Native) {
	operator, level := infix(n.Name)
	left := level
	switch n.Name {
	case "plus", "minus", "multiply", "divide", "modulo", "and", "or":
		left-- // they group to the left, as ClickHouse reads them
	}
	p.operand(n.Args[0], left)
	p.str(operator)
	p.operand(n.Args[1], level)
}

// membership writes IN. ClickHouse takes a bare name on its right side for a table, so a name never stands there.
func (p *printer) membership(n *resolved.Native) {
	operator, _ := infix(n.Name)
	p.operand(n.Args[0], compareLevel)
	p.str(operator)
	right := n.Args[1]
	if values, ok := constants(right); ok {
		p.set(values, right.At())
		return
	}
	switch right := right.(type) {
	case *resolved.Tuple:
		p.args(right.Items)
	case *resolved.Array:
		p.args(right.Items)
	case *resolved.Const:
		p.byte('(')
		p.constant(right)
		p.byte(')')
	case *resolved.Subquery, *resolved.Native:
		p.operand(right, compareLevel)
	case *resolved.Column, *resolved.LambdaParam, *resolved.AliasRef, *resolved.Alias, *resolved.Logic, *resolved.Lambda:
		p.bug("%T on the right side of IN", right)
	}
}

// set writes the constants on the right side of IN.
func (p *printer) set(values []any, at hogql.Span) {
	if typ, text, ok := p.arrayParam(values); ok && len(values) > 1 {
		p.bind(typ, text)
		return
	}
	p.byte('(')
	p.values(values, at)
	p.byte(')')
}
