package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
)

// maxBody is the most that a request body may hold, in bytes: contract section 0.
const maxBody = 20 << 20

// bodies lends buffers to request bodies, so that a cached run allocates none.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// keepBody is the size above which a lent buffer is given to the garbage collector instead of back to the pool.
const keepBody = 64 << 10

// ReturnBody gives back what ReadBody lent.
func ReturnBody(b *bytes.Buffer) {
	if b.Cap() <= keepBody {
		b.Reset()
		bodies.Put(b)
	}
}

// ReadBody reads the whole JSON body into a lent buffer, which the caller gives back with returnBody. A request without a
// body gives an empty buffer.
func ReadBody(r *http.Request) (*bytes.Buffer, error) {
	buf, _ := bodies.Get().(*bytes.Buffer)
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return buf, nil
	}
	if err := fillBody(buf, r); err != nil {
		ReturnBody(buf)
		return nil, err
	}
	return buf, nil
}

func fillBody(buf *bytes.Buffer, r *http.Request) error {
	if err := checkMediaType(r.Header); err != nil {
		return err
	}
	if r.ContentLength > maxBody {
		return bodyTooLarge(maxBody)
	}
	// One byte more than may come, so that a longer body shows.
	if _, err := buf.ReadFrom(io.LimitReader(r.Body, maxBody+1)); err != nil {
		return BodyError(err)
	}
	if buf.Len() > maxBody {
		return bodyTooLarge(maxBody)
	}
	return nil
}

// checkMediaType refuses bodies that say that they are no JSON, or that it is compressed. A body without a type counts as JSON.
func checkMediaType(h http.Header) error {
	for _, coding := range h["Content-Encoding"] {
		if !strings.EqualFold(coding, "identity") {
			refused := unsupportedMedia(fmt.Sprintf("Unsupported content encoding %q in request. Send the body uncompressed.", coding))
			refused.Header = map[string]string{"Accept-Encoding": "identity"}
			return refused
		}
	}
	header := h.Get("Content-Type")
	if header == "" || header == "application/json" {
		return nil
	}
	typ, _, err := mime.ParseMediaType(header)
	if err == nil && (typ == "application/json" || strings.HasSuffix(typ, "+json")) {
		return nil
	}
	return unsupportedMedia(fmt.Sprintf("Unsupported media type %q in request.", header))
}

// ReadObject reads the body as a JSON object. Nothing of the result shares the body's memory.
func (in Input) ReadObject() (map[string]json.RawMessage, error) {
	body, err := ReadBody(in.Request)
	if err != nil {
		return nil, err
	}
	defer ReturnBody(body)
	return DecodeObject(body.Bytes())
}

// ReadFields reads the body as an object that may have these fields and no others.
func (in Input) ReadFields(allowed ...string) (map[string]json.RawMessage, error) {
	fields, err := in.ReadObject()
	if err != nil {
		return nil, err
	}
	for _, name := range SortedNames(fields) {
		if !slices.Contains(allowed, name) {
			return nil, Invalid(name, "invalid_input", "Extra inputs are not permitted")
		}
	}
	return fields, nil
}

// DecodeObject reads a JSON object as its fields, which share no memory with it. An empty body counts as an empty object.
func DecodeObject(body []byte) (map[string]json.RawMessage, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return map[string]json.RawMessage{}, nil
	}
	if err := CheckJSON(body); err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil || fields == nil {
		return nil, Invalid("non_field_errors", "invalid_input", "Invalid data. Expected a dictionary.")
	}
	return fields, nil
}

// CheckJSON tells in the contract's form where a body stops being JSON. Bytes that are no UTF-8 are refused: the decoder
// would put other characters in their place without a word.
func CheckJSON(body []byte) error {
	if !utf8.Valid(body) {
		offset := 0
		for r, size := utf8.DecodeRune(body); r != utf8.RuneError || size > 1; r, size = utf8.DecodeRune(body[offset:]) {
			offset += size
		}
		return jsonMistake(body, offset, fmt.Sprintf("invalid UTF-8 byte 0x%02x", body[offset]))
	}
	if json.Valid(body) {
		return nil
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return jsonMistake(body, 0, "the body is empty")
	}
	var discarded json.RawMessage
	err := json.Unmarshal(body, &discarded)
	offset := len(body)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset = int(max(syntax.Offset-1, 0))
	}
	return jsonMistake(body, offset, err.Error())
}

func jsonMistake(body []byte, offset int, words string) *Error {
	at := diag.Locate(string(body), offset)
	return ParseError(fmt.Sprintf("JSON parse error - %s: line %d column %d (char %d)", words, at.Line, at.Column, offset))
}

// Field reads one field of a decoded object into out, and names the field when its type is wrong. It reports whether the
// field was there and not null.
func Field(fields map[string]json.RawMessage, name string, out any) (bool, error) {
	raw, ok := fields[name]
	if !ok || IsNull(raw) {
		return false, nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		if n, ok := out.(*int); ok && wholeNumber(raw, n) {
			return true, nil
		}
		want := "value"
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			want = jsonTypeName(wrong.Type.Kind())
		}
		return false, Invalid(name, "invalid_input", "Not a valid %s.", want)
	}
	return true, nil
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

// IsNull reports whether a value is null.
func IsNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }

// SortedNames are the names of fields, so that of several mistakes the same is told each time.
func SortedNames(fields map[string]json.RawMessage) []string {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
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

// Deref returns what p points to, or the zero value.
func Deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
