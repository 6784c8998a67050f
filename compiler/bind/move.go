package bind

import (
	"reflect"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
)

var (
	spanType  = reflect.TypeFor[diag.Span]()
	treesPath = reflect.TypeFor[hogql.Const]().PkgPath()
)

// moved gives a copy of an expression that was parsed from another text, with all of it at one place of this text: so no
// mistake in it points at a place that it does not have. It is for the rare expressions that come inside of values.
func moved(e hogql.Expr, to hogql.Span) hogql.Expr {
	out, _ := reflect.TypeAssert[hogql.Expr](movedValue(reflect.ValueOf(&e).Elem(), reflect.ValueOf(to)))
	return out
}

func movedValue(v, to reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			return v
		}
		inner := movedValue(v.Elem(), to)
		if v.Kind() == reflect.Interface {
			return inner
		}
		out := reflect.New(inner.Type())
		out.Elem().Set(inner)
		return out
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(movedValue(v.Index(i), to))
		}
		return out
	case reflect.Struct:
		if v.Type() == spanType {
			return to
		}
		if v.Type().PkgPath() != treesPath {
			return v
		}
		out := reflect.New(v.Type()).Elem()
		for i := range v.NumField() {
			out.Field(i).Set(movedValue(v.Field(i), to))
		}
		return out
	default:
		return v
	}
}
