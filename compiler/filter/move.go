package filter

import (
	"reflect"

	"github.com/caddy-analytics/caddy-analytics/compiler/budget"
	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

var (
	spanType  = reflect.TypeFor[diag.Span]()
	treesPath = reflect.TypeFor[hogql.Const]().PkgPath()
)

// moved returns a copy of an expression parsed from another text, with all nodes at one place of this text, so that mistakes do not point at
// places that it does not have. It is for the rare expressions inside of values.
func moved(e hogql.Expr, to hogql.Span, spend *budget.Budget) hogql.Expr {
	m := mover{reflect.ValueOf(to), spend}
	out, _ := reflect.TypeAssert[hogql.Expr](m.value(reflect.ValueOf(&e).Elem()))
	return out
}

// mover copies a tree.
type mover struct {
	to    reflect.Value // the place of the copied nodes
	spend *budget.Budget
}

func (m mover) value(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return v
		}
		inner := m.value(v.Elem())
		if v.Kind() == reflect.Interface {
			return inner
		}
		m.spend.Nodes(1)
		out := reflect.New(inner.Type())
		out.Elem().Set(inner)
		return out
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(m.value(v.Index(i)))
		}
		return out
	case reflect.Struct:
		if v.Type() == spanType {
			return m.to
		}
		if v.Type().PkgPath() != treesPath {
			return v
		}
		out := reflect.New(v.Type()).Elem()
		for i := range v.NumField() {
			out.Field(i).Set(m.value(v.Field(i)))
		}
		return out
	default:
		return v
	}
}
