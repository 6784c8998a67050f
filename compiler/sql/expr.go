package sql

import (
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// level returns how tightly an expression binds when printed.
func level(e resolved.Expr) schema.Level {
	switch e := e.(type) {
	case *resolved.Lambda, *resolved.Alias:
		return schema.LevelWhole
	case *resolved.Logic:
		if e.Or {
			return schema.LevelOr
		}
		return schema.LevelAnd
	case *resolved.Native:
		if op := operator(e); op != nil {
			return op.Level
		}
	case *resolved.Const, *resolved.Tuple, *resolved.Array, *resolved.Subquery, *resolved.Column, *resolved.LambdaParam, *resolved.AliasRef:
	}
	return schema.LevelTight
}

// operator returns the operator that a call is printed as, nil if it is printed as a call.
func operator(n *resolved.Native) *schema.Operator {
	op := schema.NativeOperator(n.Name)
	if op == nil || len(n.Args) != op.Operands || n.Over != nil || n.Params != nil || n.Distinct {
		return nil
	}
	return op
}

// operand writes an expression, without parentheses if it binds more tightly than its surroundings.
func (p *printer) operand(e resolved.Expr, around schema.Level) {
	if level(e) > around {
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

// exprs writes a list separated by commas. Parentheses separate an alias from the comma after it.
func (p *printer) exprs(list []resolved.Expr) {
	for i, e := range list {
		if i > 0 {
			p.str(", ")
		}
		if _, aliased := e.(*resolved.Alias); aliased {
			p.operand(e, schema.LevelWhole)
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
	p.operand(a.X, schema.LevelWhole)
	p.str(" AS ")
	p.ident(a.Name)
}

// checkAlias refuses an alias that could shadow the column that guards compare.
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
	operator, lowest := " AND ", schema.LevelAnd
	if l.Or {
		operator, lowest = " OR ", schema.LevelOr
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
	p.operand(l.Body, schema.LevelWhole)
}

// native writes a call of a ClickHouse function.
func (p *printer) native(n *resolved.Native) {
	if !schema.NativeFunction(n.Name) {
		p.bug("function %q is not allowed", n.Name)
	}
	if op := operator(n); op != nil {
		p.operation(n, op)
		return
	}
	if op := schema.NativeOperator(n.Name); op != nil && op.Set {
		p.bug("%s that is not an operator", n.Name)
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

// call writes a function's name. The allow-list only contains words; this is a second check.
func (p *printer) call(name string) {
	for i := range len(name) {
		c := name[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9' || i == 0) {
			p.bug("function name %q is not a word", name)
		}
	}
	p.str(name)
}

func (p *printer) operation(n *resolved.Native, op *schema.Operator) {
	if op.Operands == 1 {
		p.str(op.Sign)
		p.byte(' ')
		p.operand(n.Args[0], op.Level)
		return
	}
	left := op.Level
	if left != schema.LevelCompare {
		left-- // left-associative, as in ClickHouse
	}
	p.operand(n.Args[0], left)
	p.byte(' ')
	p.str(op.Sign)
	p.byte(' ')
	if op.Set {
		p.members(n.Args[1])
	} else {
		p.operand(n.Args[1], op.Level)
	}
}

// members writes the right side of IN. There, ClickHouse reads a bare name as a table, so none is ever written.
func (p *printer) members(right resolved.Expr) {
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
		p.operand(right, schema.LevelCompare)
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
