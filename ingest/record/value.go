package record

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/caddy-analytics/caddy-analytics/internal/chjson"
	"github.com/caddy-analytics/caddy-analytics/internal/shorten"
)

// Value is a JSON value in the form that ClickHouse's JSON columns accept: valid UTF-8, without blanks, each key of an object once. Nil means no value.
type Value []byte

// TextValue returns a text as a value.
func TextValue(s string) Value { return chjson.AppendString(nil, s) }

// Text returns a string, or the digits of a number.
func (v Value) Text() (string, bool) {
	if s, ok := v.unquote(); ok {
		return s, true
	}
	if v.isNumber() {
		return string(v), true
	}
	return "", false
}

// Object returns the value as an object; nil if it is not one.
func (v Value) Object() Object {
	if len(v) == 0 || v[0] != '{' {
		return nil
	}
	o, err := parseObject(v)
	if err != nil {
		panic("BUG: a canonical JSON object does not parse: " + err.Error())
	}
	return o
}

// Keys returns the strings of a list, or the keys of an object. Other items of a list are no keys.
func (v Value) Keys() (keys []string) {
	for _, item := range v.items() {
		if key, ok := item.unquote(); ok {
			keys = append(keys, key)
		}
	}
	for _, m := range v.Object() {
		keys = append(keys, m.Key)
	}
	return keys
}

// Type returns the type of property that the value suggests: String, Numeric, Boolean or DateTime.
func (v Value) Type() string {
	switch {
	case v[0] == 't' || v[0] == 'f':
		return "Boolean"
	case v.isNumber():
		return "Numeric"
	}
	if s, ok := v.unquote(); ok {
		if _, ok := parseTime(s); ok {
			return "DateTime"
		}
	}
	return "String"
}

// IsNull reports whether the value is null.
func (v Value) IsNull() bool { return string(v) == "null" }

// colons counts the colons outside of strings: there are no more names than that.
func (v Value) colons() (n int) {
	if len(v) == 0 || v[0] != '{' && v[0] != '[' {
		return 0
	}
	inString := false
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case c == ':' && !inString:
			n++
		}
	}
	return n
}

func (v Value) isNumber() bool { return len(v) > 0 && (v[0] == '-' || v[0] >= '0' && v[0] <= '9') }

// given reports whether a field has a value other than null.
func (v Value) given() bool { return v != nil && !v.IsNull() }

func (v Value) unquote() (string, bool) {
	if len(v) < 2 || v[0] != '"' {
		return "", false
	}
	if bytes.IndexByte(v, '\\') < 0 {
		return string(v[1 : len(v)-1]), true
	}
	var s string
	if err := json.Unmarshal(v, &s); err != nil {
		panic("BUG: a canonical JSON string does not parse: " + err.Error())
	}
	return s, true
}

// Texts returns the items of a list of texts that are not empty; nil if it is anything else.
func (v Value) Texts() []string {
	var list []string
	for _, item := range v.items() {
		text, ok := item.Text()
		if !ok || text == "" {
			return nil
		}
		list = append(list, text)
	}
	return list
}

// items returns the items of a list; nil if it is not one.
func (v Value) items() []Value {
	if len(v) == 0 || v[0] != '[' {
		return nil
	}
	var raw []json.RawMessage
	if err := json.Unmarshal(v, &raw); err != nil {
		panic("BUG: a canonical JSON array does not parse: " + err.Error())
	}
	items := make([]Value, len(raw))
	for i := range raw {
		items[i] = Value(raw[i])
	}
	return items
}

// Quoted quotes a text for a message, and shortens a long one.
func Quoted(s string) string {
	return fmt.Sprintf("%q", shorten.Text(s, 60))
}
