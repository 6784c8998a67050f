package filter

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Number reads a JSON number as the integer that it is, or as a float.
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

// Numeric gives numbers as int64, uint64 or float64, and all else as it is.
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

// Float gives what Numeric gives for a number as a float64, and false for all else.
func Float(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}
