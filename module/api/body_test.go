package api

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"
)

// TestReadBody checks what is refused before it is parsed as JSON.
func TestReadBody(t *testing.T) {
	tests := []struct {
		name, body string
		header     []string
		limit      int64 // of the site, if any
		want       string
	}{
		{name: "JSON", body: "{}", header: []string{"Content-Type", "application/json; charset=utf-8"}},
		{name: "a kind of JSON", body: "{}", header: []string{"Content-Type", "application/vnd.x+json"}},
		{name: "no type", body: "{}"},
		{name: "another type", body: "{}", header: []string{"Content-Type", "text/plain"}, want: `415 unsupported_media_type: Unsupported media type "text/plain" in request.`},
		{name: "no type at all", body: "{}", header: []string{"Content-Type", ";;"}, want: `415 unsupported_media_type: Unsupported media type ";;" in request.`},
		{name: "another type of nothing", header: []string{"Content-Type", "text/plain"}},
		{name: "compressed", body: "{}", header: []string{"Content-Encoding", "gzip"}, want: `415 unsupported_media_type: Unsupported content encoding "gzip" in request. Send the body uncompressed.`},
		{name: "not compressed", body: "{}", header: []string{"Content-Encoding", "Identity"}},
		{name: "the most", body: strings.Repeat(" ", maxBody)},
		{name: "one byte more", body: strings.Repeat(" ", maxBody+1), want: "413 request_too_large: The request body is larger than 20971520 bytes."},
		{name: "more than the site takes", body: "{    }", limit: 5, want: "413 request_too_large: The request body is larger than 5 bytes."},
	}
	for _, tt := range tests {
		for _, chunked := range []bool{false, true} {
			if chunked && tt.body == "" {
				continue
			}
			t.Run(tt.name, func(t *testing.T) {
				r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(tt.body))
				if chunked {
					r.ContentLength = -1
				}
				if tt.limit > 0 {
					r.Body = http.MaxBytesReader(httptest.NewRecorder(), r.Body, tt.limit)
				}
				for i := 0; i < len(tt.header); i += 2 {
					r.Header.Set(tt.header[i], tt.header[i+1])
				}
				body, err := ReadBody(r)
				got := ""
				if err != nil {
					got = ErrorOf(err).Error()
				} else {
					if body.String() != tt.body {
						t.Errorf("%d bytes of %d", body.Len(), len(tt.body))
					}
					ReturnBody(body)
				}
				if got != tt.want {
					t.Errorf("refusal %q, want %q", got, tt.want)
				}
			})
		}
	}
}

// TestDeclaredTooLarge: a body whose declared length is too large is refused before any of it is read.
func TestDeclaredTooLarge(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/", http.NoBody)
	r.Body, r.ContentLength = io.NopCloser(unreadable{t}), maxBody+1
	if _, err := ReadBody(r); err == nil || ErrorOf(err).Status != http.StatusRequestEntityTooLarge {
		t.Errorf("readBody: %v", err)
	}
}

type unreadable struct{ t *testing.T }

func (u unreadable) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

// TestReadObjectOwnsItsFields: the next request reuses the body's buffer.
func TestReadObjectOwnsItsFields(t *testing.T) {
	read := func(body string) map[string]json.RawMessage {
		in := &Input{Request: httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))}
		fields, err := in.ReadObject()
		if err != nil {
			t.Fatal(err)
		}
		return fields
	}
	first := read(`{"name": "first"}`)
	for range 10 {
		read(`{"name": "other"}`)
	}
	if got := string(first["name"]); got != `"first"` {
		t.Errorf("the name became %s", got)
	}
}

// TestStalledBodyIsRefused: when the server gives up waiting for a body, it does not tell the client that its JSON is invalid.
func TestStalledBodyIsRefused(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/", io.MultiReader(strings.NewReader(`{"query"`), iotest.ErrReader(fmt.Errorf("reading: %w", os.ErrDeadlineExceeded))))
	_, err := ReadBody(r)
	if answer := ErrorOf(err); answer.Status != http.StatusRequestTimeout || answer.Code != "request_timeout" || answer.Header["Connection"] != "close" {
		t.Errorf("answered %d %s", answer.Status, answer.Detail)
	}
}
