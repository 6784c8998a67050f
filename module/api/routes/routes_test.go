package routes_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/api/apitest"
	"github.com/caddy-analytics/caddy-analytics/tests/harness"
)

// TestAllScopes: the keys of black-box tests have exactly the scopes that routes require.
func TestAllScopes(t *testing.T) {
	required := map[string]bool{}
	for _, r := range apitest.New(t).API.Routes() {
		if r.Scope != api.AnyScope {
			required[r.Scope] = true
		}
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(required)), strings.Split(harness.AllScopes, ",")); diff != "" {
		t.Errorf("AllScopes (-required +has):\n%s", diff)
	}
}

// TestRoutesNeedScopes: the only routes open to every key are those that describe the key itself and revoke it.
func TestRoutesNeedScopes(t *testing.T) {
	for _, r := range apitest.New(t).API.Routes() {
		at := r.Address()
		if at.Resource == api.KeysResource && r.Scope == api.AnyScope && (r.Method == http.MethodGet || r.Method == http.MethodDelete) {
			continue
		}
		if !strings.HasSuffix(r.Scope, ":read") && !strings.HasSuffix(r.Scope, ":write") {
			t.Errorf("%s %v has the scope %q", r.Method, at, r.Scope)
		}
		if run, _, _ := strings.Cut(at.Action, "."); r.SecretKeys && run != "run" && at.Resource != "endpoint_tokens" {
			t.Errorf("%s %v is open to secret keys", r.Method, at)
		}
	}
}
