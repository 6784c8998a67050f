package api

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestField checks which values a field accepts, and how it names its type when it refuses one.
func TestField(t *testing.T) {
	type word string
	var (
		n int
		s word
		l []string
		m map[string]string
	)
	tests := []struct {
		name, raw string
		out       any
		want      string // the mistake; else the value
	}{
		{"integer", `7`, &n, "7"},
		{"integer with a fraction of zero", `7.0`, &n, "7"},
		{"integer with an exponent", ` -1e3 `, &n, "-1000"},
		{"fraction", `7.5`, &n, "A valid integer is required."},
		{"integer that floats round", `9007199254740993.0`, &n, "A valid integer is required."},
		{"integer that is too large", `1e300`, &n, "A valid integer is required."},
		{"text for an integer", `"7"`, &n, "7"},
		{"word", `"a"`, &s, "a"},
		{"number for a word", `5`, &s, "Not a valid string."},
		{"number for a list", `5`, &l, "Not a valid list."},
		{"number for an object", `5`, &m, "Not a valid object."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Field(map[string]json.RawMessage{"f": json.RawMessage(tt.raw)}, "f", tt.out)
			got := fmt.Sprint(reflect.ValueOf(tt.out).Elem())
			if err != nil {
				got = ErrorOf(err).Detail
			}
			if got != tt.want {
				t.Errorf("field gives %q, want %q", got, tt.want)
			}
		})
	}
}

// TestFields checks what may be null or missing, and that the first mistake is kept.
func TestFields(t *testing.T) {
	tests := []struct {
		name, raw string
		want      string // the mistake; else the values
	}{
		{"nothing", `{}`, "{ false} {<nil> false} false"},
		{"values", `{"a": "x", "b": 7, "c": true}`, "{x true} {7 true} true"},
		{"null where it is a value", `{"b": null, "c": null}`, "{ false} {<nil> true} false"},
		{"null where it is none", `{"a": null}`, "o.0.a null: This field may not be null."},
		{"two mistakes", `{"a": true, "b": "x"}`, "o.0.a invalid_input: Not a valid string."},
		{"a fraction", `{"b": 7.5}`, "o.0.b invalid_input: A valid integer is required."},
		{"a mistake before", `{"b": [], "c": 1}`, "o.0.b invalid_input: A valid integer is required."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := Fields{Prefix: "o.0."}
			if err := json.Unmarshal([]byte(tt.raw), &f.All); err != nil {
				t.Fatal(err)
			}
			a, b, c := Change[string](&f, "a"), Change[*int](&f, "b"), false
			f.Read("c", &c)
			got := fmt.Sprintf("%v %v %t", a, registry.Field[any]{Value: orNil(b.Value), Given: b.Given}, c)
			if f.Err != nil {
				mistake := ErrorOf(f.Err)
				got = fmt.Sprintf("%v %s: %s", mistake.Attr, mistake.Code, mistake.Detail)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func orNil(n *int) any {
	if n == nil {
		return nil
	}
	return *n
}

func TestPythonType(t *testing.T) {
	for raw, want := range map[string]string{
		`{"a": 1}`: "dict", ` [1]`: "list", `"a"`: "str", `true`: "bool", `null`: "NoneType", `1`: "int", `-1.5`: "float", `1e3`: "float",
	} {
		if got := PythonType(json.RawMessage(raw)); got != want {
			t.Errorf("%s: %s, want %s", raw, got, want)
		}
	}
}
