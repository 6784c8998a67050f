package complete

import (
	"slices"
	"sync"

	"github.com/caddy-analytics/caddy-analytics/compiler/hogql"
	"github.com/caddy-analytics/caddy-analytics/compiler/schema"
)

// Functions are the HogQL functions as suggestions. They are shared: do not modify them.
type Functions struct {
	List []Suggestion
	json []byte // the list without its brackets
}

// functionsBy holds the functions ranked for comparison with a value of each kind. For an unknown kind they are unranked.
var functionsBy = func() (by [hogql.State + 1]func() *Functions) {
	for kind := range by {
		by[kind] = sync.OnceValue(func() *Functions { return makeFunctions(hogql.Kind(kind)) })
	}
	return by
}()

// functionsComparedWith returns the functions, ranked by how well their results compare with a value of a type; unranked if the type is unknown.
func functionsComparedWith(t hogql.Type) *Functions {
	if t.Kind == hogql.Null {
		t.Kind = hogql.Unknown
	}
	return functionsBy[t.Kind]()
}

func makeFunctions(kind hogql.Kind) *Functions {
	f := new(Functions)
	for _, name := range slices.Sorted(schema.FunctionNames()) {
		s := Suggestion{Label: name, Insert: name + "()", Kind: Function}
		if kind != hogql.Unknown {
			s.Sort = "2-" + rank(kind, name) + "-" + name
		}
		f.List = append(f.List, s)
	}
	f.json = appendAll(nil, f.List)
	return f
}

// The ranks of functions, best first, as texts that sort in this order. The 2 in front makes PostHog's editor sort functions after fields.
const (
	rankSame      = "0"
	rankCheap     = "1"
	rankUnknown   = "2"
	rankExpensive = "3"
	rankNever     = "4"
)

// rank returns how well the result of a function compares with a value of a kind.
func rank(kind hogql.Kind, function string) string {
	f, ok := schema.LookupFunction(function)
	if !ok || f.Result.Kind == hogql.Unknown {
		return rankUnknown
	}
	result := f.Result.Kind
	switch {
	case result == kind && kind == hogql.ArrayKind:
		return rankUnknown // the elements decide
	case result == kind:
		return rankSame
	case isNumber(result) && isNumber(kind), isTime(result) && isTime(kind):
		return rankCheap
	case result == hogql.String && isParsed(kind), kind == hogql.String && isParsed(result):
		return rankExpensive
	}
	return rankNever
}

func isNumber(k hogql.Kind) bool {
	return k == hogql.Int || k == hogql.Float || k == hogql.Decimal || k == hogql.Bool
}

func isTime(k hogql.Kind) bool { return k == hogql.Date || k == hogql.DateTime }

// isParsed reports whether values of a kind can be parsed from text.
func isParsed(k hogql.Kind) bool {
	return isTime(k) || k == hogql.Int || k == hogql.Float || k == hogql.Decimal || k == hogql.UUID
}
