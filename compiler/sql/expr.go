package sql

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
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
func level(e hogql.Expr) int {
	core, _ := e.(hogql.Core)
	switch e := core.(type) {
	case *hogql.Lambda, *hogql.Alias:
		return loose
	case *hogql.Logic:
		if e.Or {
			return orLevel
		}
		return andLevel
	case *hogql.Native:
		if !operator(e) {
			return tight
		}
		if e.Name == "not" {
			return notLevel
		}
		_, level := infix(e.Name)
		return level
	case *hogql.Const, *hogql.Tuple, *hogql.Array, *hogql.Subquery, *hogql.Column, *hogql.LambdaParam, *hogql.AliasRef:
	}
	return tight
}

// operator reports whether a call is written as an operator.
func operator(n *hogql.Native) bool {
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
func (p *printer) operand(e hogql.Expr, min int) {
	if level(e) > min {
		p.expr(e)
		return
	}
	p.byte('(')
	p.expr(e)
	p.byte(')')
}

func (p *printer) expr(e hogql.Expr) {
	p.checkSize(e.At())
	core, ok := e.(hogql.Core)
	if !ok {
		p.bug("an expression of type %T is not core", e)
	}
	switch e := core.(type) {
	case *hogql.Const:
		p.constant(e)
	case *hogql.Column:
		p.column(e)
	case *hogql.LambdaParam:
		p.ident(e.Name)
	case *hogql.AliasRef:
		p.ident(e.Name)
	case *hogql.Native:
		p.native(e)
	case *hogql.Logic:
		p.logic(e)
	case *hogql.Tuple:
		p.str("tuple")
		p.args(e.Items)
	case *hogql.Array:
		if values, ok := constants(e); ok {
			p.list(values, e.Pos)
			return
		}
		p.byte('[')
		p.exprs(e.Items)
		p.byte(']')
	case *hogql.Lambda:
		p.lambda(e)
	case *hogql.Subquery:
		p.byte('(')
		p.query(e.Query)
		p.byte(')')
	case *hogql.Alias:
		p.alias(e)
	}
}

// exprs writes a list, with commas. Parentheses keep an alias apart from the comma behind it.
func (p *printer) exprs(list []hogql.Expr) {
	for i, e := range list {
		if i > 0 {
			p.str(", ")
		}
		if _, aliased := e.(*hogql.Alias); aliased {
			p.operand(e, loose)
			continue
		}
		p.expr(e)
	}
}

func (p *printer) args(list []hogql.Expr) {
	p.byte('(')
	p.exprs(list)
	p.byte(')')
}

func (p *printer) alias(a *hogql.Alias) {
	p.checkAlias(a)
	if column, ok := a.X.(*hogql.Column); ok && column.Name == a.Name.Text && len(column.Path) == 0 && !p.needsTable(column, p.source(column)) {
		p.column(column)
		return
	}
	p.operand(a.X, loose)
	p.str(" AS ")
	p.ident(a.Name.Text)
}

// checkAlias refuses an alias that could take the place of the column which guards hold on to.
func (p *printer) checkAlias(a *hogql.Alias) {
	if a.Name.Text != guardColumn {
		return
	}
	if column, ok := a.X.(*hogql.Column); !ok || column.Name != guardColumn || len(column.Path) > 0 {
		p.bug("something else is named %s", guardColumn)
	}
}

func (p *printer) logic(l *hogql.Logic) {
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

func (p *printer) lambda(l *hogql.Lambda) {
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
func (p *printer) native(n *hogql.Native) {
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
	if len(n.OrderBy) > 0 {
		p.bug("%s with an ORDER BY in its arguments", n.Name)
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

func (p *printer) infix(n *hogql.Native) {
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
func (p *printer) membership(n *hogql.Native) {
	operator, _ := infix(n.Name)
	p.operand(n.Args[0], compareLevel)
	p.str(operator)
	right := n.Args[1]
	if values, ok := constants(right); ok {
		p.set(values, right.At())
		return
	}
	core, _ := right.(hogql.Core)
	switch right := core.(type) {
	case *hogql.Tuple:
		p.args(right.Items)
	case *hogql.Array:
		p.args(right.Items)
	case *hogql.Const:
		p.byte('(')
		p.constant(right)
		p.byte(')')
	case *hogql.Subquery, *hogql.Native:
		p.operand(right, compareLevel)
	case *hogql.Column, *hogql.LambdaParam, *hogql.AliasRef, *hogql.Alias, *hogql.Logic, *hogql.Lambda, nil:
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
