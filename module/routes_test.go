package module

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestRoutesNeedScopes: the only routes open to every key are those that describe the key itself and revoke it.
func TestRoutesNeedScopes(t *testing.T) {
	for _, r := range newWorld(t).API.Routes() {
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

// TestFlagDefinitions: at both paths, SDKs with a personal key get no flags, and the existing group types.
func TestFlagDefinitions(t *testing.T) {
	w := newWorld(t)
	if err := w.Registry.Learn(t.Context(), w.Project.ID, nil, []registry.GroupType{{Name: "company", Index: 0}}); err != nil {
		t.Fatal(err)
	}
	_, sdk := w.NewKey(t, w.Project.ID, registry.Personal, "feature_flag:read")
	_, other := w.NewKey(t, w.Project.ID, registry.Personal, "query:read")
	_, secret := w.NewKey(t, w.Project.ID, registry.Secret, "feature_flag:read")
	for _, path := range []string{"/api/feature_flag/local_evaluation/?token=phc_x&send_cohorts", "/api/feature_flag/local_evaluation", "/flags/definitions?token=phc_x&send_cohorts", "/flags/definitions/"} {
		answer := w.as(t, sdk, http.MethodGet, path, "")
		if got := strings.TrimSpace(answer.Body.String()); answer.Code != http.StatusOK || got != `{"cohorts":{},"flags":[],"group_type_mapping":{"0":"company"}}` {
			t.Errorf("%s: %d %s", path, answer.Code, got)
		}
		for key, want := range map[string]int{other: http.StatusForbidden, secret: http.StatusUnauthorized, "phc_x": http.StatusUnauthorized} {
			if answer := w.as(t, key, http.MethodGet, path, ""); answer.Code != want {
				t.Errorf("%s with another key: %d %s, want %d", path, answer.Code, answer.Body, want)
			}
		}
	}
	if answer := w.as(t, sdk, http.MethodGet, "/flags/definitions/more", ""); answer.Code != http.StatusTeapot { // from the next handler
		t.Errorf("below it: %d %s", answer.Code, answer.Body)
	}
}
