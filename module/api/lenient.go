package api

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/caddy-analytics/caddy-analytics/module/jsontext"
)

// words are the texts that stand for true and false, in any case: those of Django REST framework, which PostHog is built on.
var words = map[string]bool{
	"true": true, "t": true, "yes": true, "y": true, "on": true, "1": true,
	"false": false, "f": false, "no": false, "n": false, "off": false, "0": false,
}

// maxNumberText is the longest text, in bytes, that is read as a number.
const maxNumberText = 1000

// wrongValue says why a value can't be read as the type wanted.
type wrongValue struct{ want, code, detail string }

// wrongly holds the error message for each type, as worded by PostHog's framework.
var wrongly = map[string]string{"boolean": "Must be a valid boolean.", "integer": "A valid integer is required.", "number": "A valid number is required."}

// wrong returns the mistake of a value that is not of the type want.
func wrong(want string) *wrongValue {
	detail, ok := wrongly[want]
	if !ok {
		detail = "Not a valid " + want + "."
	}
	return &wrongValue{want, "invalid_input", detail}
}

// Decode reads a value into out as leniently as fields are read, and reports whether it fits. Booleans are also read from words and numbers, numbers from
// texts, and texts from numbers.
func Decode(raw json.RawMessage, out any) bool { return decode(raw, out, false) == nil }

// decode is Decode. If strict, it does not read texts from numbers.
func decode(raw json.RawMessage, out any, strict bool) *wrongValue {
	if texts, ok := formTexts(raw); ok {
		return decodeTexts(texts, reflect.ValueOf(out).Elem(), strict)
	}
	err := json.Unmarshal(raw, out)
	if err == nil {
		return nil
	}
	into := reflect.ValueOf(out).Elem()
	if into.Kind() == reflect.Pointer {
		value := reflect.New(into.Type().Elem())
		mistake := decode(raw, value.Interface(), strict)
		if mistake == nil {
			into.Set(value)
		}
		return mistake
	}
	raw = bytes.TrimSpace(raw)
	if into.Kind() == reflect.Slice && len(raw) > 0 && raw[0] == '[' {
		return decodeItems(raw, into, strict)
	}
	var text string
	switch isText := json.Unmarshal(raw, &text) == nil; {
	case isText && isScalar(into.Kind()):
		return decodeWord(text, into)
	case !isText && into.Kind() == reflect.Bool && isNumber(raw):
		return decodeNumber(raw, into)
	case !isText && isInteger(into.Kind()) && isNumber(raw):
		return decodeWhole(raw, into)
	case !isText && into.Kind() == reflect.String && isNumber(raw) && !strict:
		into.SetString(string(raw))
		return nil
	}
	return wrong(typeName(into.Kind(), err))
}

// decodeItems reads a list that has an item which the decoder does not take.
func decodeItems(raw json.RawMessage, into reflect.Value, strict bool) *wrongValue {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		return wrong("list")
	}
	list := reflect.MakeSlice(into.Type(), len(items), len(items))
	for i, item := range items {
		if mistake := decode(item, list.Index(i).Addr().Interface(), strict); mistake != nil {
			return mistake
		}
	}
	into.Set(list)
	return nil
}

// decodeTexts reads the texts of a form field.
func decodeTexts(texts []string, into reflect.Value, strict bool) *wrongValue {
	last := texts[len(texts)-1]
	switch kind := into.Kind(); {
	case kind == reflect.Pointer:
		elem := into.Type().Elem().Kind()
		if isScalar(elem) && (last == "" || elem == reflect.Bool && strings.EqualFold(last, "null")) {
			into.SetZero()
			return nil
		}
		value := reflect.New(into.Type().Elem())
		mistake := decodeTexts(texts, value.Elem(), strict)
		if mistake == nil {
			into.Set(value)
		}
		return mistake
	case isScalar(kind):
		return decodeWord(last, into)
	case kind == reflect.String:
		return decode(jsontext.Append(nil, last), into.Addr().Interface(), strict)
	case into.Type() == reflect.TypeFor[json.RawMessage]():
		into.SetBytes(jsonOf(last))
		return nil
	case kind == reflect.Slice:
		return decode(listOf(texts), into.Addr().Interface(), strict)
	}
	return decode(jsonOf(last), into.Addr().Interface(), strict)
}

// decodeWord reads a text as a boolean or a number.
func decodeWord(text string, into reflect.Value) *wrongValue {
	kind := into.Kind()
	switch {
	case kind == reflect.Bool:
		value, ok := words[strings.ToLower(text)]
		if !ok {
			return wrong("boolean")
		}
		into.SetBool(value)
		return nil
	case len(text) > maxNumberText:
		return &wrongValue{typeName(kind, nil), "max_string_length", "String value too large."}
	case kind == reflect.Float64:
		f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
			return wrong("number")
		}
		into.SetFloat(f)
		return nil
	}
	whole, fraction, _ := strings.Cut(strings.TrimSpace(text), ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || strings.Trim(fraction, "0") != "" || into.OverflowInt(n) {
		return wrong("integer")
	}
	into.SetInt(n)
	return nil
}

// decodeNumber reads 1 and 0 as booleans.
func decodeNumber(raw json.RawMessage, into reflect.Value) *wrongValue {
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f != 0 && f != 1 {
		return wrong("boolean")
	}
	into.SetBool(f == 1)
	return nil
}

// decodeWhole reads an integer written as 1.0 or 1e3, as some languages do.
func decodeWhole(raw json.RawMessage, into reflect.Value) *wrongValue {
	f, err := strconv.ParseFloat(string(raw), 64)
	const exact = 1 << 53 // below it every integer has its own float
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= exact || into.OverflowInt(int64(f)) {
		return wrong("integer")
	}
	into.SetInt(int64(f))
	return nil
}

func isInteger(kind reflect.Kind) bool { return kind == reflect.Int || kind == reflect.Int64 }

// isScalar reports whether a text can stand for a value of this kind: a boolean or a number.
func isScalar(kind reflect.Kind) bool {
	return kind == reflect.Bool || kind == reflect.Float64 || isInteger(kind)
}

// isNumber reports whether a JSON value is a number.
func isNumber(raw json.RawMessage) bool {
	return len(raw) > 0 && (raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9')
}

// jsonOf returns a text that is valid JSON as it is, and any other as a JSON string.
func jsonOf(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return jsontext.Append(nil, text)
}

// listOf returns texts as a JSON list. A single text that is a JSON list is returned as it is.
func listOf(texts []string) json.RawMessage {
	if len(texts) == 1 && strings.HasPrefix(strings.TrimSpace(texts[0]), "[") && json.Valid([]byte(texts[0])) {
		return json.RawMessage(texts[0])
	}
	return jsontext.Append(nil, texts)
}
