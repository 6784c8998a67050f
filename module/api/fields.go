package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// Fields reads the fields of a JSON object or a form, as leniently as [Decode]. Err is the first mistake; every field read after it counts as not given.
type Fields struct {
	All    map[string]json.RawMessage
	Prefix string // of field names in mistakes, such as tiles.0.
	// Wrong makes the error for a value that is not of the type want, such as "string". Nil stands for "Not a valid string." and the like. If set, numbers
	// are not accepted as texts.
	Wrong func(name, want string) error
	Err   error

	strict bool // numbers are not accepted as texts
}

// Take returns a field as JSON, and reports whether it is given. Null is a mistake unless mayBeNull.
func (f *Fields) Take(name string, mayBeNull bool) (json.RawMessage, bool) {
	raw, given := f.take(name, mayBeNull)
	if texts, ok := formTexts(raw); ok {
		raw = jsonOf(texts[len(texts)-1])
	}
	return raw, given
}

// TakeList returns a field that is a list, like Take. The texts of a form field are its items.
func (f *Fields) TakeList(name string, mayBeNull bool) (json.RawMessage, bool) {
	raw, given := f.take(name, mayBeNull)
	if texts, ok := formTexts(raw); ok {
		raw = listOf(texts)
	}
	return raw, given
}

func (f *Fields) take(name string, mayBeNull bool) (json.RawMessage, bool) {
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
	raw, given := f.take(name, true)
	return given && !IsNull(raw) && !isBlank(raw, reflect.TypeOf(out).Elem().Kind()) && f.decode(name, raw, out)
}

// Change reads a field that is changed if given. It may be null if T is a pointer.
func Change[T any](f *Fields, name string) registry.Field[T] {
	kind := reflect.TypeFor[T]().Kind()
	raw, given := f.take(name, kind == reflect.Pointer)
	var value T
	if !given || isBlank(raw, kind) || !f.decode(name, raw, &value) {
		return registry.Field[T]{}
	}
	return registry.To(value)
}

// Text is Change for a text that a person writes, such as a name: like PostHog, it drops white space around it.
func Text(f *Fields, name string) registry.Field[string] {
	field := Change[string](f, name)
	field.Value = strings.TrimSpace(field.Value)
	return field
}

// TextOrNull is Text for a text that may be null.
func TextOrNull(f *Fields, name string) registry.Field[*string] {
	field := Change[*string](f, name)
	if field.Value != nil {
		field.Value = new(strings.TrimSpace(*field.Value))
	}
	return field
}

// Fail records the mistake in a field, unless there was one before.
func (f *Fields) Fail(name, code, format string, args ...any) {
	if f.Err == nil {
		f.Err = Invalid(f.Prefix+name, code, format, args...)
	}
}

func (f *Fields) decode(name string, raw json.RawMessage, out any) bool {
	mistake := decode(raw, out, f.strict || f.Wrong != nil)
	switch {
	case mistake == nil:
		return true
	case f.Wrong == nil:
		f.Fail(name, mistake.code, "%s", mistake.detail)
	default:
		f.Err = f.Wrong(f.Prefix+name, mistake.want)
	}
	return false
}

// typeName names the JSON type wanted. If a nested value is wrong, the decoder's error knows the type wanted there.
func typeName(kind reflect.Kind, err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		kind = wrong.Type.Kind()
	}
	switch kind { //nolint:exhaustive // fields have only these
	case reflect.Int, reflect.Int64:
		return "integer"
	case reflect.Float64:
		return "number"
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

// isBlank reports whether a form leaves a field of this kind empty, which counts as not given unless the field is a text.
func isBlank(raw json.RawMessage, kind reflect.Kind) bool {
	texts, ok := formTexts(raw)
	return ok && texts[len(texts)-1] == "" && isScalar(kind)
}

// Field reads a single field: see Fields.Read. Numbers are not accepted as texts.
func Field(fields map[string]json.RawMessage, name string, out any) (bool, error) {
	f := Fields{All: fields, strict: true}
	given := f.Read(name, out)
	return given, f.Err
}

// BoolField reads a boolean; it is false if not given.
func BoolField(fields map[string]json.RawMessage, name string) (value bool, err error) {
	_, err = Field(fields, name, &value)
	return value, err
}

// Optional reads a field into *out if it is given and not null.
func Optional[T any](fields map[string]json.RawMessage, name string, out **T) error {
	var value T
	given, err := Field(fields, name, &value)
	if given {
		*out = &value
	}
	return err
}

// PythonType names the type of a JSON value as PostHog does.
func PythonType(raw json.RawMessage) string {
	switch bytes.TrimSpace(raw)[0] {
	case '{':
		return "dict"
	case '[':
		return "list"
	case '"':
		return "str"
	case 't', 'f':
		return "bool"
	case 'n':
		return "NoneType"
	}
	if bytes.ContainsAny(raw, ".eE") {
		return "float"
	}
	return "int"
}
