package module

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
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

func returnBody(b *bytes.Buffer) {
	if b.Cap() <= keepBody {
		b.Reset()
		bodies.Put(b)
	}
}

// readBody reads the whole JSON body into a lent buffer, which the caller gives back with returnBody. A request without a
// body gives an empty buffer.
func readBody(r *http.Request) (*bytes.Buffer, error) {
	buf, _ := bodies.Get().(*bytes.Buffer)
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return buf, nil
	}
	if err := fillBody(buf, r); err != nil {
		returnBody(buf)
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
		if limit, ok := errors.AsType[*http.MaxBytesError](err); ok { // the site's own request_body limit
			return bodyTooLarge(limit.Limit)
		}
		return parseError("The request body could not be read.")
	}
	if buf.Len() > maxBody {
		return bodyTooLarge(maxBody)
	}
	return nil
}

func bodyTooLarge(most int64) *apiError {
	return &apiError{
		Status: http.StatusRequestEntityTooLarge, Type: "invalid_request", Code: "request_too_large",
		Detail: fmt.Sprintf("The request body is larger than %d bytes.", most),
	}
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

func unsupportedMedia(detail string) *apiError {
	return &apiError{Status: http.StatusUnsupportedMediaType, Type: "invalid_request", Code: "unsupported_media_type", Detail: detail}
}

// decodeObject reads a JSON object as its fields. An empty body counts as an empty object.
func decodeObject(body []byte) (map[string]json.RawMessage, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return map[string]json.RawMessage{}, nil
	}
	if err := checkJSON(body); err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil || fields == nil {
		return nil, &apiError{
			Status: http.StatusBadRequest, Type: "validation_error", Code: "invalid_input",
			Detail: "Invalid data. Expected a dictionary.", Attr: "non_field_errors",
		}
	}
	return fields, nil
}

// checkJSON tells in the contract's form where a body stops being JSON. Bytes that are no UTF-8 are refused: the decoder
// would put other characters in their place without a word.
func checkJSON(body []byte) error {
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
	var discarded json.RawMessage
	err := json.Unmarshal(body, &discarded)
	offset := len(body)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset = int(max(syntax.Offset-1, 0))
	}
	return jsonMistake(body, offset, err.Error())
}

func jsonMistake(body []byte, offset int, words string) *apiError {
	at := diag.Locate(string(body), offset)
	return parseError(fmt.Sprintf("JSON parse error - %s: line %d column %d (char %d)", words, at.Line, at.Column, offset))
}

// field reads one field of a decoded object into out, and names the field when its type is wrong. It tells whether the
// field was there and not null.
func field(fields map[string]json.RawMessage, name string, out any) (bool, error) {
	raw, ok := fields[name]
	if !ok || isNull(raw) {
		return false, nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		want := "value"
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			want = wrong.Type.String()
		}
		return false, validation(name, "invalid_input", "Not a valid %s.", jsonTypeName(want))
	}
	return true, nil
}

func jsonTypeName(goType string) string {
	switch {
	case strings.HasPrefix(goType, "int"):
		return "integer"
	case strings.HasPrefix(goType, "["):
		return "list"
	case strings.HasPrefix(goType, "map"):
		return "object"
	case goType == "bool":
		return "boolean"
	}
	return goType
}

func isNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }
