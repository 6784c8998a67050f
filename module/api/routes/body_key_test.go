package routes_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestKeyInBody checks where a key is looked for, and that only the first one found is tried: contract api.md, section 6.1.
func TestKeyInBody(t *testing.T) {
	w := apitest.New(t)
	_, secret := w.NewKey(t, w.Project.ID, registry.Secret, "endpoint:read")
	_, reader := w.NewKey(t, w.Project.ID, registry.Personal, "insight:read")
	other := w.NewProject(t)
	_, stranger := w.NewKey(t, other.ID, registry.Personal, "*")
	w.NewEndpoint(t, "e", "select 1")
	const (
		variables = "insight_variables/"
		none      = "401 not_authenticated: Authentication credentials were not provided."
		badHeader = "401 authentication_failed: Personal API key found in request Authorization header is invalid."
		badBody   = "401 authentication_failed: Personal API key found in request body is invalid."
	)
	with := func(key string) string { return fmt.Sprintf(`{"personal_api_key": %q, "default_value": "x"}`, key) }
	alone := `{"personal_api_key": "` + w.Secret + `"}`
	tests := []struct {
		name, header, method, path, body, want string
	}{
		{"no key", "", "POST", variables, `{}`, none},
		{"null", "", "POST", variables, `{"personal_api_key": null}`, none},
		{"in the body", "", "POST", variables, with(w.Secret), "400 required: This field is required."},
		{"with another scheme", "Basic YTpi", "POST", variables, with(w.Secret), "400 required: This field is required."},
		{"nobody's", "", "POST", variables, with("phx_nobody"), badBody},
		{"empty", "", "POST", variables, with(""), badBody},
		{"no text", "", "POST", variables, `{"personal_api_key": ["` + w.Secret + `"]}`, badBody},
		{"a secret key", "", "POST", "endpoints/e/run", with(secret), badBody},
		{"a secret key's own field", "", "POST", "endpoints/e/run", `{"secret_api_key": "` + secret + `"}`, none},
		{"without the scope", "", "POST", variables, with(reader), "403 permission_denied: API key missing required scope 'insight_variable:write'"},
		{"of another project", "", "POST", variables, with(stranger), fmt.Sprintf("403 permission_denied: API key does not have access to the requested project: ID %d.", w.Project.ID)},
		{"a bad one in the header", "Bearer phx_nobody", "POST", variables, with(w.Secret), badHeader},
		{"a good one in both", "Bearer   " + w.Secret, "POST", "query/", alone, "400 parse_error: JSON parse error - 1 validation error for QueryRequest\npersonal_api_key\n  Extra inputs are not permitted [type=extra_forbidden]"},
		{"with the fields of a closed body", "", "POST", "query/", alone, "400 parse_error: JSON parse error - 1 validation error for QueryRequest\nquery\n  Field required [type=missing]"},
		{"with GET", "", "GET", "endpoints/e/versions/?version=x&limit=x", with(w.Secret), "400 invalid_input: Invalid limit parameter: x"},
		{"of another method", "", "DELETE", "query/", with(w.Secret), `405 method_not_allowed: Method "DELETE" not allowed.`},
		{"in a broken body", "", "POST", variables, with(w.Secret) + "}", none},
		{"in a list", "", "POST", variables, "[" + with(w.Secret) + "]", none},
		{"deeper", "", "POST", variables, `{"query": ` + with(w.Secret) + `}`, none},
		{"in the query string", "", "GET", "endpoints/?personal_api_key=" + w.Secret, "", none},
		{"at the end of what is read", "", "POST", variables, with(w.Secret) + strings.Repeat(" ", api.MaxKeyBody-len(with(w.Secret))), "400 required: This field is required."},
		{"one byte behind it", "", "POST", variables, with(w.Secret) + strings.Repeat(" ", api.MaxKeyBody-len(with(w.Secret))+1), none},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			answer := w.Send(t, tt.method, fmt.Sprintf("/api/projects/%d/%s", w.Project.ID, tt.path), tt.body, "Authorization", tt.header)
			got := fmt.Sprintf("%d %v: %v", answer.Code, apitest.FieldOf(t, answer, "code"), apitest.FieldOf(t, answer, "detail"))
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
		})
	}
}
