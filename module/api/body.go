package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"sort"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/caddy-analytics/caddy-analytics/compiler/diag"
	"github.com/caddy-analytics/caddy-analytics/compiler/query"
)

// maxBody is the largest request body, in bytes: contract api.md, section 0.
const maxBody = 20 << 20

// Body is a request's body as read, in a pooled buffer.
type Body struct {
	bytes.Buffer
}

// bodies is the pool of body buffers: with it, a cached run allocates none.
var bodies = sync.Pool{New: func() any { return new(Body) }}

// keepBody is the capacity above which a buffer is left to the garbage collector instead of returned to the pool.
const keepBody = 64 << 10

// ReturnBody returns the buffer of ReadBody to the pool.
func ReturnBody(b *Body) {
	if b.Cap() <= keepBody {
		b.Reset()
		bodies.Put(b)
	}
}

// ReadBody reads the whole JSON body, which the caller returns with ReturnBody. It is empty for a request without one.
func ReadBody(r *http.Request) (*Body, error) {
	b, _ := bodies.Get().(*Body)
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return b, nil
	}
	err := checkBody(r)
	if err != nil {
		return nil, err // without a buffer that has grown, which is all that is worth returning
	}
	// Reading the body takes more than 1 KB of stack over HTTP/2, so there is no helper in between.
	for err == nil && b.Len() <= maxBody {
		b.Grow(bytes.MinRead)
		room := b.AvailableBuffer()
		var n int
		n, err = r.Body.Read(room[:cap(room)])
		_, _ = b.Write(room[:n]) // never fails
	}
	if !errors.Is(err, io.EOF) || b.Len() > maxBody {
		ReturnBody(b)
		return nil, unreadBody(err)
	}
	return b, nil
}

// checkBody refuses a body because of its headers.
func checkBody(r *http.Request) error {
	if err := checkMediaType(r.Header); err != nil {
		return err
	}
	if r.ContentLength > maxBody {
		return BodyTooLarge(maxBody)
	}
	return nil
}

// unreadBody explains why a body was not read to its end. The error is that of the last Read.
func unreadBody(err error) *Error {
	if err == nil || errors.Is(err, io.EOF) {
		return BodyTooLarge(maxBody)
	}
	return BodyError(err)
}

// checkMediaType refuses bodies that are declared as something other than JSON or as compressed. A body without a type counts as JSON.
func checkMediaType(h http.Header) error {
	if err := checkEncoding(h); err != nil {
		return err
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

// checkEncoding refuses compressed bodies.
func checkEncoding(h http.Header) error {
	for _, coding := range h["Content-Encoding"] {
		if !strings.EqualFold(coding, "identity") {
			refused := unsupportedMedia(fmt.Sprintf("Unsupported content encoding %q in request. Send the body uncompressed.", coding))
			refused.Header = map[string]string{"Accept-Encoding": "identity"}
			return refused
		}
	}
	return nil
}

// ReadObject reads the body as a JSON object, or as a form, whose texts [Fields] converts to the types it reads. The result shares no memory with the body.
func (in *Input) ReadObject() (map[string]json.RawMessage, error) {
	if form, isForm, err := in.ReadForm(); isForm {
		return form.Fields, err
	}
	body, err := ReadBody(in.Request)
	if err != nil {
		return nil, err
	}
	defer ReturnBody(body)
	return DecodeObject(body.Bytes())
}

// ReadFields reads the body like ReadObject, and refuses fields other than those allowed.
func (in *Input) ReadFields(allowed ...string) (map[string]json.RawMessage, error) {
	fields, err := in.ReadObject()
	if err != nil {
		return nil, err
	}
	return fields, CheckFields(fields, allowed...)
}

// CheckFields refuses fields other than those allowed.
func CheckFields(fields map[string]json.RawMessage, allowed ...string) error {
	for _, name := range SortedNames(fields) {
		if !slices.Contains(allowed, name) {
			return Invalid(name, "invalid_input", "Extra inputs are not permitted")
		}
	}
	return nil
}

// The bounds on one field of a body, unless it is a query, which has bounds of its own. A value can take 50 times its text in memory once it is decoded.
const (
	maxFieldValues  = 200_000
	maxFieldObjects = 20_000
)

// DecodeObject reads the fields of a JSON object, each of which is small enough to be decoded. They share no memory with body. An empty body counts as an
// empty object.
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
	return fields, CheckDecoded(fields)
}

// CheckDecoded refuses fields of a body that would take too much memory once they are decoded, or are nested too deeply.
func CheckDecoded(fields map[string]json.RawMessage) error {
	for _, name := range SortedNames(fields) {
		if name == "query" {
			continue
		}
		switch values, objects, depth := query.Count(fields[name]); {
		case values > maxFieldValues || objects > maxFieldObjects:
			return Invalid(name, "invalid_input", "A field can have %d values and %d objects, and this one has more.", maxFieldValues, maxFieldObjects)
		case depth > query.MaxDepth:
			return Invalid(name, "invalid_input", "A field can be nested %d levels deep, and this one is deeper.", query.MaxDepth)
		}
	}
	return nil
}

// CheckJSON reports the position at which a body stops being JSON. Invalid UTF-8 is refused: the decoder would replace it silently. So is JSON with more
// values than a query may have.
func CheckJSON(body []byte) error {
	if !utf8.Valid(body) {
		offset := 0
		for r, size := utf8.DecodeRune(body); r != utf8.RuneError || size > 1; r, size = utf8.DecodeRune(body[offset:]) {
			offset += size
		}
		return jsonMistake(body, offset, fmt.Sprintf("invalid UTF-8 byte 0x%02x", body[offset]))
	}
	if json.Valid(body) {
		if values, objects, _ := query.Count(body); values > query.MaxValues || objects > query.MaxObjects {
			return ParseError(fmt.Sprintf("JSON parse error - more than %d values or %d objects", query.MaxValues, query.MaxObjects))
		}
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

// IsNull reports whether a value is null.
func IsNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }

// SortedNames returns the names of fields in order, so that the same mistake is reported each time if there are several.
func SortedNames(fields map[string]json.RawMessage) []string {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// Deref returns what p points to, or the zero value.
func Deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
