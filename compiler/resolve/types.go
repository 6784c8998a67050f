package resolve

import (
	"time"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/resolved"
)

// Common result types.
var (
	boolType   = hogql.Type{Kind: hogql.Bool}
	intType    = hogql.Type{Kind: hogql.Int}
	stringType = hogql.Type{Kind: hogql.String}
	timeType   = hogql.Type{Kind: hogql.DateTime}
)

func nullable(t hogql.Type) hogql.Type {
	t.Nullable = true
	return t
}

// typeOf returns the type of an expression, as far as it is known.
func typeOf(e resolved.Expr) hogql.Type {
	switch e := e.(type) {
	case *resolved.Const:
		return constType(e.Value)
	case *resolved.Column:
		return e.Type
	case *resolved.LambdaParam:
		return e.Type
	case *resolved.AliasRef:
		return e.Type
	case *resolved.Native:
		return e.Type
	case *resolved.Alias:
		return typeOf(e.X)
	case *resolved.Logic:
		t := boolType
		for _, arg := range e.Args {
			t.Nullable = t.Nullable || typeOf(arg).MayBeNull()
		}
		return t
	case *resolved.Tuple:
		return hogql.Type{Kind: hogql.TupleKind}
	case *resolved.Array:
		return arrayType(e.Items)
	case *resolved.Subquery:
		return e.Type
	case *resolved.Lambda: // unknown
	}
	return hogql.Type{}
}

func constType(v any) hogql.Type {
	switch v := v.(type) {
	case nil:
		return hogql.Type{Kind: hogql.Null, Nullable: true}
	case bool:
		return boolType
	case int64, uint64:
		return intType
	case float64:
		return hogql.Type{Kind: hogql.Float}
	case string:
		return stringType
	case time.Time:
		return timeType
	case []any:
		items := make([]resolved.Expr, len(v))
		for i := range v {
			items[i] = &resolved.Const{Value: v[i]}
		}
		return arrayType(items)
	}
	return hogql.Type{}
}

func arrayType(items []resolved.Expr) hogql.Type {
	if len(items) == 0 {
		return hogql.Type{Kind: hogql.ArrayKind}
	}
	elem := common(items...)
	return hogql.Type{Kind: hogql.ArrayKind, Elem: &elem}
}

// common returns the type of a value that is one of several.
func common(values ...resolved.Expr) hogql.Type {
	var t hogql.Type
	for i, v := range values {
		if next := typeOf(v); i == 0 {
			t = next
		} else {
			t = merged(t, next)
		}
	}
	return t
}

// merged returns the type that can hold the values of both. Of times in two zones, ClickHouse chooses the zone by their precision and order.
func merged(a, b hogql.Type) hogql.Type {
	null := a.Nullable || b.Nullable
	switch {
	case a.Kind == hogql.Null:
		a = b
	case isMoment(a) && isMoment(b) && (a.Kind != b.Kind || a.Zone != b.Zone):
		a = hogql.Type{Time: true}
	case b.Kind == hogql.Null:
	case a.Kind == b.Kind:
		a.Time = a.Time && b.Time
	case numeric(a.Kind) && numeric(b.Kind):
		a = hogql.Type{Kind: max(a.Kind, b.Kind)}
	default:
		a = hogql.Type{}
	}
	a.Nullable = null
	return a
}

func isMoment(t hogql.Type) bool { return t.Kind == hogql.DateTime || t.Time }

func numeric(k hogql.Kind) bool {
	return k == hogql.Bool || k == hogql.Int || k == hogql.Float || k == hogql.Decimal
}

// isNull reports whether an expression is the constant NULL.
func isNull(e resolved.Expr) bool {
	c, ok := e.(*resolved.Const)
	return ok && c.Value == nil
}

// text returns the value of a constant string.
func text(e resolved.Expr) (string, bool) {
	c, ok := e.(*resolved.Const)
	if !ok {
		return "", false
	}
	s, ok := c.Value.(string)
	return s, ok
}

// writtenText returns the value of a constant string that is written in the query.
func writtenText(e hogql.Expr) (string, bool) {
	c, ok := e.(*hogql.Const)
	if !ok {
		return "", false
	}
	return text((*resolved.Const)(c))
}

// truth returns the value of a constant condition.
func truth(e resolved.Expr) (value, known bool) {
	c, ok := e.(*resolved.Const)
	if !ok {
		return false, false
	}
	switch v := c.Value.(type) {
	case bool:
		return v, true
	case int64:
		return v != 0, true
	}
	return false, false
}

// constant reports whether an expression depends on no rows, so that ClickHouse knows its value beforehand.
func constant(e resolved.Expr) bool {
	if t, ok := e.(*resolved.Tuple); ok {
		return allConstant(t.Items)
	}
	if a, ok := e.(*resolved.Array); ok {
		return allConstant(a.Items)
	}
	if n, ok := e.(*resolved.Native); ok {
		return n.Over == nil && n.Params == nil && allConstant(n.Args)
	}
	return is[*resolved.Const](e)
}

// is reports whether an expression is a node of type N.
func is[N resolved.Expr](e resolved.Expr) bool {
	_, ok := e.(N)
	return ok
}

// isWritten is is for an unresolved expression.
func isWritten[N hogql.Expr](e hogql.Expr) bool {
	_, ok := e.(N)
	return ok
}

// isAccess reports whether an expression is a name or an access below one, so that it may be a property.
func isAccess(e hogql.Expr) bool {
	return isWritten[*hogql.Field](e) || isWritten[*hogql.Index](e) || isWritten[*hogql.Member](e) || isWritten[*hogql.Element](e)
}

func allConstant(items []resolved.Expr) bool {
	for _, item := range items {
		if !constant(item) {
			return false
		}
	}
	return true
}

// native returns a call of a ClickHouse function.
func native(typ hogql.Type, at hogql.Span, name string, args ...resolved.Expr) *resolved.Native {
	return &resolved.Native{Pos: at, Name: name, Args: args, Type: typ}
}

// ofKind changes the kind of a call's result. Only a time has a zone.
func ofKind(e resolved.Expr, k hogql.Kind) resolved.Expr {
	if n, ok := e.(*resolved.Native); ok {
		n.Type.Kind = k
		if k != hogql.DateTime {
			n.Type.Zone = ""
		}
	}
	return e
}

func literal(v any) *resolved.Const { return &resolved.Const{Value: v} }
