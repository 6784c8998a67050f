package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

func TestCheckVariable(t *testing.T) {
	list := &registry.Variable{Type: registry.VariableList, Values: []any{"eu", "us", int64(3)}}
	multi := &registry.Variable{Type: registry.VariableList, IsMulti: true}
	of := func(typ registry.VariableType) *registry.Variable { return &registry.Variable{Type: typ} }
	tests := []struct {
		name    string
		def     *registry.Variable
		value   string // JSON
		want    any
		mistake string
	}{
		{"string", of(registry.VariableString), `"' OR 1=1 --"`, "' OR 1=1 --", ""},
		{"string from number", of(registry.VariableString), `5`, nil, `5 is not a string`},
		{"number", of(registry.VariableNumber), `2023`, json.Number("2023"), ""},
		{"number as text", of(registry.VariableNumber), `"2023.5"`, json.Number("2023.5"), ""},
		{"number from SQL", of(registry.VariableNumber), `"1 or 1=1"`, nil, `"1 or 1=1" is not a number`},
		{"number from infinity", of(registry.VariableNumber), `"inf"`, nil, `"inf" is not a number`},
		{"number from object", of(registry.VariableNumber), `{"a": 1}`, nil, `{"a":1} is not a number`},
		{"boolean", of(registry.VariableBoolean), `true`, true, ""},
		{"boolean as text", of(registry.VariableBoolean), `"false"`, false, ""},
		{"boolean from number", of(registry.VariableBoolean), `1`, nil, `1 is not a boolean`},
		{"date", of(registry.VariableDate), `"2026-01-31"`, "2026-01-31", ""},
		{"time", of(registry.VariableDate), `"2026-01-31T10:00:00+02:00"`, "2026-01-31T10:00:00+02:00", ""},
		{"invalid date", of(registry.VariableDate), `"2026-02-31"`, nil, `"2026-02-31" is not a valid date (want, for example, 2026-01-31 or 2026-01-31T10:00:00Z)`},
		{"list", list, `"eu"`, "eu", ""},
		{"list, number", list, `3`, json.Number("3"), ""},
		{"list, other value", list, `"asia"`, nil, `"asia" is not one of its values`},
		{"list, several", list, `["eu"]`, nil, `["eu"] is a list; the variable takes one value`},
		{"multi list", multi, `["a", "b"]`, []any{"a", "b"}, ""},
		{"multi list of lists", multi, `[["a"]]`, nil, `["a"] is not a plain value`},
		{"deleted definition", nil, `{"a": 1}`, map[string]any{"a": json.Number("1")}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			value, err := DecodeValue(json.RawMessage(tt.value))
			if err != nil {
				t.Fatal(err)
			}
			got, err := CheckVariable(tt.def, value)
			if err == nil {
				err = errors.New("")
			}
			if diff := cmp.Diff(tt.mistake, err.Error()); diff != "" {
				t.Fatalf("mistake (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.want, got); tt.mistake == "" && diff != "" {
				t.Errorf("value (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCheckManyItems checks as many items as a run can give against as many values. Comparing each with each would take longer than the test may run.
func TestCheckManyItems(t *testing.T) {
	def := &registry.Variable{Type: registry.VariableList, IsMulti: true}
	items := make([]any, maxListItems)
	for i := range items {
		def.Values = append(def.Values, int64(i))
		items[len(items)-1-i] = json.Number(strconv.Itoa(i))
	}
	if _, err := CheckVariable(def, items); err != nil {
		t.Error(err)
	}
	_, err := CheckVariable(def, append(items, items[0]))
	if diff := cmp.Diff("a list of 100001 items is longer than the limit of 100000", fmt.Sprint(err)); diff != "" {
		t.Errorf("one more (-want +got):\n%s", diff)
	}
}
