package query

import "github.com/caddy-analytics/caddy-analytics/compiler/diag"

// Decode parses JSON that is not a query, within the same limits, to maps, slices, strings, bools, nils and json.Numbers. The error is a
// *diag.Error.
func Decode(raw []byte) (any, error) { return decode(raw) }

// Filter reads one property filter found at attr in decoded JSON. The error is a *diag.Error that names the field.
func Filter(v map[string]any, attr string) (*Condition, error) {
	r, count := &Reader{}, 0
	c := r.condition(v, Place{path: attr, Attr: attr}, &count)
	if err := r.firstErr(); err != nil {
		return nil, err
	}
	if c.Filter == nil {
		return nil, diag.Field(diag.InvalidInput, attr, "Input should be a property filter")
	}
	return &c, nil
}
