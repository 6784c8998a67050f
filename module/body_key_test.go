package module

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestKeyInBody checks where a key is looked for, and that only the first that is found is tried: contract section 6.1.
func TestKeyInBody(t *testing.T) {
	w := newWorld(t)
	_, secret := w.newKey(t, w.project.ID, registry.Secret, "endpoint:read")
	_, reader := w.newKey(t, w.project.ID, registry.Personal, "insight:read")
	other := w.newProject(t)
	_, stranger := w.newKey(t, other.ID, registry.Personal, "*")
	w.newEndpoint(t, "e", "select 1")
	const (
		variables = "insight_variables/"
		none      = "401 not_authenticated: Authentication credentials were not provided."
		badHeader = "401 authentication_failed: Personal API key found in request Authorization header is invalid."
		badBody   = "401 authentication_failed: Personal API key found in request body is invalid."
	)
	with := func(key string) string { return fmt.Sprintf(`{"personal_api_key": %q, "default_value": "x"}`, key) }
	alone := `{"personal_api_key": "` + w.secret + `"}`
	tests := []struct {
		name, header, method, path, body, want string
	}{
		{"no key", "", "POST", variables, `{}`, none},
		{"null", "", "POST", variables, `{"personal_api_key": null}`, none},
		{"in the body", "", "POST", variables, with(w.secret), "400 required: This field is required."},
		{"beside another scheme", "Basic YTpi", "POST", variables, with(w.secret), "400 required: This field is required."},
		{"nobody's", "", "POST", variables, with("phx_nobody"), badBody},
		{"empty", "", "POST", variables, with(""), badBody},
		{"no text", "", "POST", variables, `{"personal_api_key": ["` + w.secret + `"]}`, badBody},
		{"a secret key", "", "POST", "endpoints/e/run", with(secret), badBody},
		{"a secret key's own field", "", "POST", "endpoints/e/run", `{"secret_api_key": "` + secret + `"}`, none},
		{"without the scope", "", "POST", variables, with(reader), "403 permission_denied: API key missing required scope 'insight_variable:write'"},
		{"of another project", "", "POST", variables, with(stranger), fmt.Sprintf("403 permission_denied: API key does not have access to the requested project: ID %d.", w.project.ID)},
		{"a bad one in the header", "Bearer phx_nobody", "POST", variables, with(w.secret), badHeader},
		{"a good one in both", "Bearer   " + w.secret, "POST", "query/", alone, "400 parse_error: JSON parse error - 1 validation error for QueryRequest\npersonal_api_key\n  Extra inputs are not permitted [type=extra_forbidden]"},
		{"beside the fields of a closed body", "", "POST", "query/", alone, "400 parse_error: JSON parse error - 1 validation error for QueryRequest\nquery\n  Field required [type=missing]"},
		{"with GET", "", "GET", "endpoints/e/versions/?version=x&limit=x", with(w.secret), "400 invalid_input: Invalid limit parameter: x"},
		{"of another method", "", "DELETE", "query/", with(w.secret), `405 method_not_allowed: Method "DELETE" not allowed.`},
		{"in a broken body", "", "POST", variables, with(w.secret) + "}", none},
		{"in a list", "", "POST", variables, "[" + with(w.secret) + "]", none},
		{"deeper", "", "POST", variables, `{"query": ` + with(w.secret) + `}`, none},
		{"in the query string", "", "GET", "endpoints/?personal_api_key=" + w.secret, "", none},
		{"at the end of what is read", "", "POST", variables, with(w.secret) + strings.Repeat(" ", maxKeyBody-len(with(w.secret))), "400 required: This field is required."},
		{"one byte behind it", "", "POST", variables, with(w.secret) + strings.Repeat(" ", maxKeyBody-len(with(w.secret))+1), none},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			answer := w.send(t, tt.method, fmt.Sprintf("/api/projects/%d/%s", w.project.ID, tt.path), tt.body, "Authorization", tt.header)
			got := fmt.Sprintf("%d %v: %v", answer.Code, fieldOf(t, answer, "code"), fieldOf(t, answer, "detail"))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTakeKey checks what is left of a body for the route that reads it.
func TestTakeKey(t *testing.T) {
	tests := []struct {
		name, body, contentType, key, rest string
		chunked                            bool
	}{
		{name: "first", body: `{"personal_api_key": "k", "b": [1.0, "<"], "a": {"personal_api_key": "in"}}`, key: "k", rest: `{"a":{"personal_api_key":"in"},"b":[1.0,"<"]}`},
		{name: "alone", body: `{"personal_api_key": "k"}`, key: "k", rest: `{}`},
		{name: "twice", body: `{"personal_api_key": "j", "personal_api_key": "k"}`, key: "k", rest: `{}`},
		{name: "of a length that is not told", body: `{"personal_api_key": "k", "a": 1}`, key: "k", rest: `{"a":1}`, chunked: true},
		{name: "longer than that", body: `{"personal_api_key": "k"}` + strings.Repeat(" ", maxKeyBody), chunked: true},
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

// FuzzTakeKey: whatever the body is, what is left of it is an object without the key.
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
		fields, err := decodeObject(rest)
		if _, again := fields[keyField]; err != nil || again {
			t.Errorf("%q leaves %q: %v", body, rest, err)
		}
	})
}
