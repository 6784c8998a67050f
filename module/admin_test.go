package module

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/caddy-analytics/caddy-analytics/clickhouse"
	"github.com/caddy-analytics/caddy-analytics/module/admission"
	"github.com/caddy-analytics/caddy-analytics/module/api"
	"github.com/caddy-analytics/caddy-analytics/module/deletions"
	"github.com/caddy-analytics/caddy-analytics/module/warehouse"
	"github.com/caddy-analytics/caddy-analytics/registry"
)

// TestCreateKeyNumbersLabels: an operator may reuse a label, and a project's secret keys get distinct ones.
func TestCreateKeyNumbersLabels(t *testing.T) {
	w := newWorld(t)
	other := w.newProject(t)
	tests := []struct {
		name    string
		project int64
		kind    registry.KeyKind
		label   string
		want    string
	}{
		{"the first", w.project.ID, registry.Secret, "backend", "backend"},
		{"the second", w.project.ID, registry.Secret, "backend", "backend 2"},
		{"the third", w.project.ID, registry.Secret, " backend ", "backend 3"},
		{"a personal one", w.project.ID, registry.Personal, "backend", "backend"},
		{"one of another project", other.ID, registry.Secret, "backend", "backend"},
		{"a long one", w.project.ID, registry.Secret, strings.Repeat("ä", 40), strings.Repeat("ä", 40)},
		{"a long one again", w.project.ID, registry.Secret, strings.Repeat("ä", 40), strings.Repeat("ä", 38) + " 2"},
		{"none", w.project.ID, registry.Secret, "", ""},
		{"none again", w.project.ID, registry.Secret, "", ""},
	}
	for _, tt := range tests {
		wanted := registry.NewKey{Project: tt.project, Kind: tt.kind, Label: tt.label, Scopes: []string{"endpoint:read"}}
		key, _, err := createKey(t.Context(), w.rt.registry, wanted, began)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if diff := cmp.Diff(tt.want, key.Label); diff != "" {
			t.Errorf("%s: label (-want +got):\n%s", tt.name, diff)
		}
	}
	_, _, err := createKey(t.Context(), w.rt.registry, registry.NewKey{Project: w.project.ID, Kind: registry.Secret, Label: "x", Scopes: []string{"*"}}, began)
	if got := api.ErrorOf(err); got.Status != 400 || got.Attr != "scopes" {
		t.Errorf("another mistake is answered with %v", got)
	}
}

// TestAdminErrors: an operator's request that could not be done now says so, as the API does.
func TestAdminErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want int
	}{
		"a mistake":                      {badRequest("no such thing"), http.StatusBadRequest},
		"a project that is not there":    {registry.ErrNotFound, http.StatusNotFound},
		"a registry that is away":        {registry.ErrUnavailable, http.StatusServiceUnavailable},
		"a ClickHouse that is away":      {&clickhouse.Error{Kind: clickhouse.Unavailable}, http.StatusServiceUnavailable},
		"a ClickHouse that is not known": {warehouse.ErrStillLooking, http.StatusServiceUnavailable},
		"a full queue":                   {admission.ErrQueueFull, http.StatusServiceUnavailable},
		"rows that can't be deleted":     {&deletions.RefusedError{Reason: "a view"}, http.StatusConflict},
		"anything else":                  {errors.New("a bug"), http.StatusInternalServerError},
	} {
		answer, ok := errors.AsType[caddy.APIError](adminError(fmt.Errorf("doing it: %w", tt.err)))
		if !ok || answer.HTTPStatus != tt.want || !strings.Contains(answer.Message, tt.err.Error()) {
			t.Errorf("%s: %d %s, want %d", name, answer.HTTPStatus, answer.Message, tt.want)
		}
	}
}
