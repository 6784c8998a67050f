package query

import (
	"encoding/json"
	"maps"
	"slices"
)

// Equal reports whether two queries are the same JSON, regardless of the order of keys (contract: api.md, section 5.3). The error is a *diag.Error
// if one of them is not JSON.
func Equal(a, b []byte) (bool, error) {
	x, err := decode(a)
	if err != nil {
		return false, err
	}
	y, err := decode(b)
	if err != nil {
		return false, err
	}
	return equal(x, y), nil
}

func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equal)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	case json.Number:
		b, ok := b.(json.Number)
		return ok && sameNumber(a, b)
	}
	return a == b
}

// exact is the bound below which a float64 represents every integer exactly.
const exact = 1 << 53

// sameNumber compares numbers by value, so that 1 equals 1.0 and large integers are not rounded.
func sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}
	x, errX := a.Float64()
	y, errY := b.Float64()
	return errX == nil && errY == nil && x == y && x < exact && x > -exact
}
