package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// FixedValues reads the variables that a key fixes.
func FixedValues(key *registry.Key) (map[string]json.RawMessage, error) {
	var fixed map[string]json.RawMessage
	if err := json.Unmarshal([]byte(key.Fixed), &fixed); err != nil || len(fixed) == 0 {
		return nil, fmt.Errorf("reading the fixed variables of key %s: %w", key.ID, errors.Join(err, errFixedNotObject))
	}
	return fixed, nil
}

var errFixedNotObject = errors.New("they are not an object of values")

// CompactJSON returns JSON as jsontext.Append writes it.
func CompactJSON(raw json.RawMessage) []byte {
	value, err := DecodeValue(raw)
	if err != nil {
		panic("BUG: a fixed variable that is not JSON: " + err.Error())
	}
	return jsontext.Append(nil, value)
}

// DecodeValue reads a value and keeps its numbers as written.
func DecodeValue(raw json.RawMessage) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("reading its value: %w", err)
	}
	return value, nil
}

// SameValue reports whether a caller's value for a variable equals the one that the key fixes.
func (c *Caller) SameValue(name string, given, fixed json.RawMessage) bool {
	value, err := DecodeValue(given)
	if err != nil || value == nil {
		return false
	}
	if def := c.Snapshot.VariableByCode(c.Project.ID, name); def != nil {
		if typed, err := CheckVariable(def, OnlyItem(def, value)); err == nil {
			value = typed
		}
	}
	return bytes.Equal(jsontext.Append(nil, value), CompactJSON(fixed))
}

// OutsideFence refuses a request that a key's fixed variables rule out.
func OutsideFence(attr, detail string) *Error {
	refused := Forbidden("%s", detail)
	refused.Attr = attr
	return refused
}
