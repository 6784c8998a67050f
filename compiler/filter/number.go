package filter

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Number converts a JSON number to an integer if it is one, otherwise to a float.
func Number(n json.Number) (any, error) {
	if i, err := n.Int64(); err == nil {
		return i, nil
	}
	if u, err := strconv.ParseUint(string(n), 10, 64); err == nil {
		return u, nil
	}
	f, err := n.Float64()
	if err != nil {
		return nil, fmt.Errorf("%s is out of range", n)
	}
	return f, nil
}

// Numeric converts numbers to int64, uint64 or float64, and returns anything else unchanged.
func Numeric(v any) any {
	switch n := v.(type) {
	case int:
		return int64(n)
	case json.Number:
		if c, err := Number(n); err == nil {
			return c
		}
	}
	return v
}
