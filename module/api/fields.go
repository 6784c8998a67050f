package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strconv"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Fields reads the fields of a JSON object. Its first mistake is Err; what is read after it counts as not given.
type Fields struct {
	All    map[string]json.RawMessage
	Prefix string // of the names in mistakes, such as tiles.0.
	// Wrong makes the mistake of a value that is not of the type that is wanted, such as "string". Nil for "Not a valid string."
	Wrong func(name, want string) error
	Err   error
}

// Take returns a field, and reports whether it is given. Null is a mistake unless the field may be null.
func (f *Fields) Take(name string, mayBeNull bool) (json.RawMessage, bool) {
	raw, given := f.All[name]
	if !given || f.Err != nil {
		return nil, false
	}
	if !mayBeNull && IsNull(raw) {
		f.Fail(name, "null", "This field may not be null.")
		return nil, false
	}
	return raw, true
}

// Read decodes a field into out, and reports whether it is given and not null.
func (f *Fields) Read(name string, out any) bool {
	raw, given := f.Take(name, true)
	return given && !IsNull(raw) && f.decode(name, raw, out)
}

// Change reads a field that is changed where it is given. It may be null if T is a pointer.
func Change[T any](f *Fields, name string) registry.Field[T] {
	raw, given := f.Take(name, reflect.TypeFor[T]().Kind() == reflect.Pointer)
	var value T
	if !given || !f.decode(name, raw, &value) {
		return registry.Field[T]{}
	}
	return registry.To(value)
}

// Fail keeps the mistake of a field, unless there was one before.
func (f *Fields) Fail(name, code, format string, args ...any) {
	if f.Err == nil {
		f.Err = Invalid(f.Prefix+name, code, format, args...)
	}
}

func (f *Fields) decode(name string, raw json.RawMessage, out any) bool {
	err := json.Unmarshal(raw, out)
	if err == nil {
		return true
	}
	if n, ok := out.(*int); ok && wholeNumber(raw, n) {
		return true
	}
	want := "value"
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		want = jsonTypeName(wrong.Type.Kind())
	}
	if f.Wrong == nil {
		f.Fail(name, "invalid_input", "Not a valid %s.", want)
	} else {
		f.Err = f.Wrong(f.Prefix+name, want)
	}
	return false
}

// wholeNumber reads an integer that is written as 1.0 or 1e3, as some languages do.
func wholeNumber(raw json.RawMessage, n *int) bool {
	f, err := strconv.ParseFloat(string(bytes.TrimSpace(raw)), 64)
	const exact = 1 << 53 // below it each integer has a float of its own
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= exact {
		return false
	}
	*n = int(f)
	return true
}

func jsonTypeName(kind reflect.Kind) string {
	switch kind { //nolint:exhaustive // those that fields have
	case reflect.Int, reflect.Int64:
		return "integer"
	case reflect.Slice, reflect.Array:
		return "list"
	case reflect.Map, reflect.Struct:
		return "object"
	case reflect.Bool:
		return "boolean"
	case reflect.String:
		return "string"
	}
	return "value"
}

// Field reads one field alone: see Fields.Read.
func Field(fields map[string]json.RawMessage, name string, out any) (bool, error) {
	f := Fields{All: fields}
	given := f.Read(name, out)
	return given, f.Err
}

// BoolField reads a boolean; none is false.
func BoolField(fields map[string]json.RawMessage, name string) (value bool, err error) {
	_, err = Field(fields, name, &value)
	return value, err
}

// Optional reads a field into *out where it is given and not null.
func Optional[T any](fields map[string]json.RawMessage, name string, out **T) error {
	var value T
	given, err := Field(fields, name, &value)
	if given {
		*out = &value
	}
	return err
}
