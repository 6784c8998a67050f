package api

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTakeKey checks what remains of a body for the route that reads it.
func TestTakeKey(t *testing.T) {
	tests := []struct {
		name, body, contentType, key, rest string
		chunked                            bool
	}{
		{name: "first", body: `{"personal_api_key": "k", "b": [1.0, "<"], "a": {"personal_api_key": "in"}}`, key: "k", rest: `{"a":{"personal_api_key":"in"},"b":[1.0,"<"]}`},
		{name: "alone", body: `{"personal_api_key": "k"}`, key: "k", rest: `{}`},
		{name: "twice", body: `{"personal_api_key": "j", "personal_api_key": "k"}`, key: "k", rest: `{}`},
		{name: "of a length that is not told", body: `{"personal_api_key": "k", "a": 1}`, key: "k", rest: `{"a":1}`, chunked: true},
		{name: "longer than that", body: `{"personal_api_key": "k"}` + strings.Repeat(" ", MaxKeyBody), chunked: true},
		{name: "no JSON", body: `{"personal_api_key": "k"}`, contentType: "text/plain"},
		{name: "no UTF-8", body: "{\"personal_api_key\": \"k\", \"a\": \"\xff\"}"},
		{name: "no body"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(tt.body))
			if tt.chunked {
				r.ContentLength = -1
			}
			r.Header.Set("Content-Type", tt.contentType)
			key, found := takeKey(r)
			if key != tt.key || found != (tt.key != "") {
				t.Fatalf("takeKey gives %q, %v; want %q", key, found, tt.key)
			}
			if !found {
				return
			}
			rest, err := io.ReadAll(r.Body)
			if err != nil || r.ContentLength != int64(len(rest)) {
				t.Errorf("%d bytes are left of %d: %v", len(rest), r.ContentLength, err)
			}
			if diff := cmp.Diff(tt.rest, string(rest)); diff != "" {
				t.Errorf("what is left (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzTakeKey: whatever the body is, the rest of it is an object without the key.
func FuzzTakeKey(f *testing.F) {
	for _, body := range []string{
		``, `{}`, `[]`, `null`, `{"personal_api_key": "k"}`, `{"personal_api_key": {"a": 1}, "b": "\ud800"}`, `{"personal_api_key": "j", "a": {}, "personal_api_key": "k"}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
		key, found := takeKey(r)
		if !found {
			if key != "" {
				t.Errorf("no key, but %q", key)
			}
			return
		}
		rest, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		fields, err := DecodeObject(rest)
		if _, again := fields[keyField]; err != nil || again {
			t.Errorf("%q leaves %q: %v", body, rest, err)
		}
	})
}
